"""Trials of memory judge values too, and say which of both failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import (
    FAILED_CHECKS,
    UNJUDGED_VALUES,
    VALUE_CHECK,
    Judged,
    Record,
    Result,
    SkipReason,
    Verdict,
)
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge
from aclnn_cts.speclang.evaluate import Evaluation
from aclnn_cts.trials.checks.registry import CHECKS
from aclnn_cts.trials.plan import Part
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.emulated_operators import EMULATIONS
from tests.support.emulated import Emulated
from tests.support.trial_runs import bench, specs

pytestmark = pytest.mark.mechanism

PASSED = Verdict(result=Result.PASSED, judged=Judged.VALUES)
MEMORY = Verdict(result=Result.PASSED, judged=Judged.MEMORY)
OPEN = Verdict(result=Result.SKIPPED, kind=SkipReason.OPEN)
DISPUTE = Verdict(result=Result.SKIPPED, kind=SkipReason.DISPUTE, message="two oracles")
ERROR = Verdict(result=Result.ERROR, message="ours")
STRAY = Verdict(result=Result.FAILED, kind=Fault.GUARD)
WRONG = Verdict(result=Result.FAILED, kind=Fault.VALUE)


@dataclass(frozen=True)
class Stated:
    """A judge that has its verdicts already."""

    of_memory: Verdict
    of_values: Verdict

    def memory(self, performed: object) -> Verdict:
        return self.of_memory

    def values(self, performed: object) -> Verdict:
        return self.of_values


def judged(memory: Verdict, values: Verdict) -> Verdict:
    judge = cast("Judge", Stated(memory, values))
    performed = cast("Sequence[PerformedCall]", [None])
    return CHECKS["memory"].judge(cast("Trial", None), performed, judge, cast("Evaluation", None))


@pytest.mark.parametrize("values", [PASSED, DISPUTE, ERROR])
def test_memory_that_passes_takes_the_verdict_of_values_that_pass_or_cannot_be_decided(values: Verdict) -> None:
    assert judged(MEMORY, values) is values


def test_a_stray_write_outranks_values() -> None:
    assert judged(STRAY, WRONG) is STRAY


def test_wrong_values_are_a_failure_of_values() -> None:
    found = judged(MEMORY, WRONG)
    assert (found.kind, found.facts) == (Fault.VALUE, {FAILED_CHECKS: [VALUE_CHECK]})


def test_values_that_are_not_judged_are_a_fact_of_a_pass() -> None:
    found = judged(MEMORY, OPEN)
    assert (found.result, found.judged, found.facts) == (
        Result.PASSED,
        Judged.MEMORY,
        {UNJUDGED_VALUES: SkipReason.OPEN},
    )


def memory_records(made: TrialRunner, operator: str) -> list[Record]:
    part = Part(operator, "memory", "valid", count=12)
    return [item for judged in made.run(made.expand(part, seed=0)) for item in judged.records]


@pytest.mark.parametrize("operator", sorted(EMULATIONS))
def test_wrong_values_fail_memory_trials(operator: str) -> None:
    found = [item for item in memory_records(bench(Emulated(fault="gain")), operator) if item.verdict.kind]
    wrong = [item for item in found if item.verdict.kind == Fault.VALUE]
    assert wrong
    for item in wrong:
        assert item.trial.check == "memory"
        assert item.fingerprint.check == "values"
        assert item.verdict.facts[FAILED_CHECKS] == ["values"]


@pytest.mark.parametrize("operator", sorted(specs()))
def test_memory_trials_of_a_correct_implementation_pass_on_values(operator: str) -> None:
    verdicts = [item.verdict for item in memory_records(bench(ReferenceAdapter()), operator)]
    assert {verdict.result for verdict in verdicts} == {Result.PASSED}
    assert Judged.VALUES in {verdict.judged for verdict in verdicts}
