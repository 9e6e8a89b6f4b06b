"""The calls are found after which a failure shows, and no others are named."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.trials.batches import BATCH_BYTES
from aclnn_cts.trials.confirm import MOST_CALLS, CallHistory, find_calls_before


def call(number: int, dtype: str = "FLOAT", size: int = 2) -> Case:
    return Case("aclnnAny", {"x": Tensor((size,), dtype, data=Data(recipe="normal", seed=number))})


TRIAL = Trial("values", call(-1))


class Device:
    """Fails after calls that it needs, in that order, and after so many calls of any kind."""

    def __init__(self, needed: Sequence[Case] = (), *, number: int = 1 << 30) -> None:
        self.needed, self.number = list(needed), number
        self.asked: list[int] = []

    def fails(self, trial: Trial) -> bool:
        made = [item.case for item in trial.after for _ in range(item.times)]
        self.asked.append(len(made))
        rest = iter(made)
        return bool(self.needed and all(item in rest for item in self.needed)) or len(made) >= self.number

    def repeated(self, trial: Trial, times: int) -> int | None:
        return next((number for number in range(times) if self._after(trial, number)), None)

    def _after(self, trial: Trial, number: int) -> bool:
        return self.fails(msgspec.structs.replace(trial, after=(EarlierCall(trial.case, number),) if number else ()))

    def found(self, history: Sequence[Case]) -> tuple[EarlierCall, ...]:
        return find_calls_before(TRIAL, history, fails=self.fails, repeated=self.repeated)


@given(st.integers(1, 300), st.data())
def test_the_calls_that_it_needs_and_no_others(length: int, data: st.DataObject) -> None:
    history = [call(number) for number in range(length)]
    places = sorted(data.draw(st.sets(st.integers(0, length - 1), min_size=1, max_size=3)))
    needed = [history[place] for place in places]
    assert Device(needed).found(history) == tuple(map(EarlierCall, needed))


def test_a_call_that_is_alike_is_found_at_once() -> None:
    history = [call(1, size=3), call(2, "FLOAT16"), *(call(number, size=5) for number in range(3, 900))]
    device = Device([history[1]])
    assert device.found(history) == (EarlierCall(history[1]),)
    assert len(device.asked) <= 6


def test_many_calls_of_any_kind_are_the_call_itself_so_often() -> None:
    history = [call(number) for number in range(40)]
    assert Device(number=7).found(history) == (EarlierCall(TRIAL.case, 7),)
    assert Device(number=900).found(history) == (EarlierCall(TRIAL.case, 900),)
    assert Device(number=900).found([]) == (EarlierCall(TRIAL.case, 900),)


def test_nothing_is_named_where_nothing_is_found() -> None:
    history = [call(number) for number in range(40)]
    assert Device([call(50)]).found(history) == ()
    assert Device(number=MOST_CALLS + 1).found(history) == ()


def test_too_many_unlike_calls_show_nothing() -> None:
    history = [call(number) for number in range(40)]
    assert Device(history[:20]).found(history) == ()


def made(number: int, ended: str = CallEnd.RETURNED, *, size: int = 2, twice: bool = False) -> PerformedCall:
    return PerformedCall(case=call(number, size=size), outcome=Outcome(ended=ended), twice=twice)


def test_a_history_holds_what_one_process_was_given() -> None:
    history = CallHistory()
    history.add_batch([made(1, twice=True), made(2), made(3, CallEnd.INEXPRESSIBLE)], [call(9)])
    assert history.latest_calls([]) == [call(1), call(2), call(9), call(1)]
    assert history.latest_calls([made(4)])[-1] == call(4)
    assert history.latest_calls([made(4, CallEnd.SIGNAL), made(5)]) == [call(5)]
    assert len(history.latest_calls([])) == 4
    history.add_batch([made(number) for number in range(2 * MOST_CALLS)], [])
    assert history.latest_calls([]) == [call(number) for number in range(MOST_CALLS, 2 * MOST_CALLS)]


def test_a_history_is_made_again_with_no_more_bytes_than_a_batch() -> None:
    third = BATCH_BYTES // 12
    large = [made(number, size=third) for number in range(5)]
    assert CallHistory().latest_calls(large) == [item.case for item in large[-3:]]
    assert CallHistory().latest_calls([*large, made(6, size=BATCH_BYTES)]) == []


def test_chance_names_no_call() -> None:
    answers = iter([True, False])
    assert find_calls_before(TRIAL, [call(1)], fails=lambda _trial: next(answers), repeated=lambda *_: None) == ()
    answers = iter([True, True, True])
    assert find_calls_before(TRIAL, [call(1)], fails=lambda _trial: next(answers), repeated=lambda *_: None) == ()
