"""Laws and memory trials hold the values of their calls to the bound too, and say which of their checks failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from aclnn_cts.adapters.reference import ReferenceAdapter
from aclnn_cts.checks.laws import with_values
from aclnn_cts.checks.plan import Part
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import FAILED_CHECKS, UNJUDGED_VALUES, Judged, Record, Result, Skip, Verdict
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.emulated_operators import EMULATIONS
from tests.support.emulated_laws import Emulated
from tests.support.laws import bench, pairs, records, specs

PASSED = Verdict(result=Result.PASSED, judged=Judged.VALUES)
OPEN = Verdict(result=Result.SKIPPED, kind=Skip.OPEN)
DISPUTE = Verdict(result=Result.SKIPPED, kind=Skip.DISPUTE, message="two oracles")
ERROR = Verdict(result=Result.ERROR, message="ours")


def failed(kind: Fault) -> Verdict:
    return Verdict(result=Result.FAILED, kind=kind, message=kind.value)


@pytest.mark.parametrize(
    ("own", "values", "kind", "checks"),
    [
        (PASSED, [PASSED, failed(Fault.VALUE)], Fault.VALUE, ["values"]),
        (failed(Fault.LAW), [PASSED, PASSED], Fault.LAW, ["relation"]),
        (failed(Fault.LAW), [failed(Fault.VALUE), PASSED], Fault.VALUE, ["values", "relation"]),
        (failed(Fault.LAW), [failed(Fault.MODEL)], Fault.LAW, ["relation", "values"]),
        (failed(Fault.MODEL), [failed(Fault.MODEL)], Fault.MODEL, ["values", "relation"]),
        (failed(Fault.LAW), [OPEN, OPEN], Fault.LAW, ["relation"]),
        (PASSED, [failed(Fault.MODEL), failed(Fault.VALUE)], Fault.VALUE, ["values"]),
    ],
)
def test_the_graver_fault_decides(own: Verdict, values: Sequence[Verdict], kind: Fault, checks: list[str]) -> None:
    found = with_values(own, values, check="relation")
    assert (found.result, found.kind, found.facts[FAILED_CHECKS]) == (Result.FAILED, kind, checks)


def test_what_was_not_judged_is_no_pass_of_values() -> None:
    assert with_values(PASSED, [PASSED, PASSED], check="relation") == PASSED
    assert with_values(PASSED, [PASSED, OPEN], check="relation").facts == {UNJUDGED_VALUES: Skip.OPEN}
    assert with_values(PASSED, [PASSED, DISPUTE], check="relation") is DISPUTE
    assert with_values(failed(Fault.LAW), [DISPUTE], check="relation").kind == Fault.LAW
    assert with_values(failed(Fault.LAW), [ERROR], check="relation") is ERROR


def memory_records(made: Bench, operator: str) -> list[Record]:
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


def test_a_fault_that_keeps_a_law_fails_its_trials() -> None:
    """Everything is a little too large, in each call alike: the result stays linear."""
    for law, operator in [pair for pair in pairs() if pair[0] == "law/linear" and pair[1] in EMULATIONS]:
        found = records(bench(Emulated(fault="gain")), law, operator, 12)
        assert any(item.verdict.facts.get(FAILED_CHECKS) == ["values"] for item in found), operator
