"""In which process a failure is run again, and what is kept of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import EarlierCall, Trial
from aclnn_cts.core.verdict import ALONE_FACT, CONFORMS, Record, Result
from aclnn_cts.trials.confirm import FRESH, FailureConfirmer
from tests.support.build_records import make_record

PASSED = make_record(1)


def failed(number: int, output: str = "out") -> Record:
    return make_record(number, result=Result.FAILED, kind=Fault.VALUE, output=output)


@dataclass(slots=True)
class Scripted(FailureConfirmer):
    """Answers as it is told, and keeps whether a fresh process was asked for."""

    answers: list[Record] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    searched: int = 0

    def _attempt(self, trial: Trial, *, fresh: bool = True) -> Record:
        self.fresh.append(fresh)
        return msgspec.structs.replace(self.answers.pop(0), trial=trial)

    def calls_before(
        self, trial: Trial, history: Sequence[Case], *, same: Callable[[Record], bool]
    ) -> tuple[EarlierCall, ...]:
        self.searched += 1
        return (EarlierCall(trial.case),)


def scripted(*answers: Record) -> Scripted:
    nothing: Any = None
    return Scripted(host=nothing, specs={}, performer=nothing, verdicts=nothing, answers=[*answers])


def test_what_fails_alone_needs_no_fresh_process_for_the_next() -> None:
    again = scripted(failed(1), failed(2), PASSED)
    found = [again.confirm(failed(number), ()) for number in (1, 2, 3)]
    assert again.fresh == [True, False, False]
    assert [item.verdict.facts[ALONE_FACT] for item in found] == ["fails too", "fails too", CONFORMS]


def test_where_state_is_kept_between_calls_each_failure_has_a_fresh_process() -> None:
    again = scripted(PASSED, failed(2), failed(3))
    found = [again.confirm(failed(number), ()) for number in (1, 2, 3)]
    assert again.fresh == [True, True, True]
    assert [bool(item.after) for item in found] == [True, False, False]


def test_calls_are_looked_for_once_for_failures_that_are_alike() -> None:
    again = scripted(PASSED, PASSED, PASSED)
    found = [again.confirm(failed(1, output), ()) for output in ("dx", "dx", "dgamma")]
    assert [bool(item.after) for item in found] == [True, False, True]
    assert all(item.conforms_alone for item in found)
    assert again.searched == 2


def test_failures_are_not_run_again_where_no_fresh_process_is_left() -> None:
    again = scripted(*[PASSED] * (FRESH + 1))
    found = [again.confirm(failed(number), ()) for number in range(FRESH + 1)]
    assert [ALONE_FACT in item.verdict.facts for item in found] == [True] * FRESH + [False]
    assert found[-1] == failed(FRESH)
