"""How long calls are waited for once calls like them have hung."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Origin, Tensor
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.sandbox.adaptive_timeout import FULL_HANGS, AdaptiveTimeout
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import ProcessHost

HUNG = Outcome(ended=CallEnd.TIME_LIMIT)


def call(
    operator: str = "aclnnDouble",
    dtype: str = "FLOAT",
    *,
    do: str = "double",
    group: int | None = None,
    breaks: str | None = None,
) -> Call:
    case = Case(operator, {"x": Tensor((3,), dtype)}, origin=Origin(constraint=breaks))
    return Call(case, call_mode={"do": do}, group=group)


def returned(seconds: float) -> Outcome:
    return Outcome(seconds=seconds)


def hung(patience: AdaptiveTimeout, times: int = FULL_HANGS) -> AdaptiveTimeout:
    for _ in range(times):
        patience.note_outcome(call(), HUNG)
    return patience


def test_the_first_hangs_are_waited_for_in_full() -> None:
    patience = AdaptiveTimeout(seconds=60.0, least=2.0)
    patience.note_outcome(call(), returned(0.001))
    for _ in range(FULL_HANGS):
        assert patience.seconds(call()) == 60.0
        patience.note_outcome(call(), HUNG)
    assert patience.seconds(call()) == 2.0
    patience.note_fresh_process()
    assert patience.seconds(call()) == 2.0


def test_what_hung_alone_is_not_waited_for_in_full_again() -> None:
    patience = AdaptiveTimeout(seconds=60.0, least=2.0)
    patience.note_outcome(call(), returned(0.001))
    patience.note_fresh_process()
    assert patience.seconds(call()) == 60.0
    patience.note_outcome(call(), HUNG)
    # So are calls like it in the same process, as the smaller ones that shrinking tries.
    other = Call(Case("aclnnDouble", {"x": Tensor((2,), "FLOAT")}))
    assert patience.seconds(call()) == patience.seconds(other) == 2.0
    patience.note_fresh_process()
    assert patience.seconds(call()) == patience.seconds(other) == patience.seconds(call(dtype="BF16")) == 2.0
    assert patience.seconds(call(breaks="x.format")) == 60.0


def test_what_hung_after_other_calls_is_waited_for_in_full_alone() -> None:
    patience = AdaptiveTimeout(seconds=60.0, least=2.0)
    patience.note_outcome(call(), returned(0.001))
    patience.note_outcome(call(), HUNG)
    patience.note_fresh_process()
    assert patience.seconds(call()) == 60.0


def test_other_operators_broken_rules_and_groups_keep_the_whole_limit() -> None:
    patience = hung(AdaptiveTimeout(seconds=60.0, least=2.0))
    patience.note_outcome(call(), returned(0.001))
    assert patience.seconds(call()) == 2.0
    assert patience.seconds(call(dtype="BF16")) == 2.0
    assert patience.seconds(call("aclnnOther")) == 60.0
    assert patience.seconds(call(breaks="x.format")) == 60.0
    assert patience.seconds(call(group=1)) == 60.0


def test_a_hundred_times_the_longest_ordinary_call() -> None:
    patience = hung(AdaptiveTimeout(seconds=60.0, least=2.0))
    assert patience.seconds(call()) == 2.0
    patience.note_outcome(call("aclnnOther"), returned(0.1))
    assert patience.seconds(call()) == 10.0
    patience.note_outcome(call(), returned(0.05))
    assert patience.seconds(call()) == 5.0
    patience.note_outcome(call(), returned(0.3))
    patience.note_outcome(call(), returned(0.2))
    assert patience.seconds(call()) == 30.0


@given(st.floats(0.01, 1000.0), st.floats(0.01, 1000.0), st.lists(st.floats(1e-6, 100.0)), st.integers(0, 9))
def test_a_limit_lies_between_the_least_and_the_whole(
    whole: float, least: float, ordinary: list[float], hangs: int
) -> None:
    patience = hung(AdaptiveTimeout(seconds=whole, least=least), hangs)
    for seconds in ordinary:
        patience.note_outcome(call(), returned(seconds))
    found = patience.seconds(call())
    assert min(least, whole) <= found <= whole
    assert (patience.note(found) == "") == (found == whole)
    if hangs < FULL_HANGS:
        assert found == whole
    elif ordinary:
        assert found >= min(100.0 * max(ordinary), whole)


@pytest.mark.slow
def test_a_batch_that_hangs_costs_little_more_than_its_first_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")
    limits = RunnerLimits(call_seconds=3.0, hung_seconds=0.3)
    with ProcessHost("troublesome_adapter:Troublesome", target=Target(), limits=limits) as host:
        calls = [call(), *(call(do="hang") for _ in range(FULL_HANGS + 2)), call()]
        outcomes = host.run(calls)
        assert [outcome.ended for outcome in outcomes] == [
            CallEnd.RETURNED,
            *[CallEnd.TIME_LIMIT] * (FULL_HANGS + 2),
            CallEnd.RETURNED,
        ]
        messages = [outcome.message.partition(";")[0] for outcome in outcomes[1:-1]]
        assert messages[:FULL_HANGS] == ["no answer within 3 s"] * FULL_HANGS
        assert messages[FULL_HANGS].startswith("no answer within 0.3 s, the limit since calls like it took 3 s")
        host.refresh()
        (alone,) = host.run([call(do="hang")])
        assert alone.message.startswith("no answer within 0.3 s, the limit since calls like it took 3 s")
