from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Origin
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import TWIN_FAILED, Judged, Record, Result, RunVerdict, SkipReason
from aclnn_cts.store.counts import ConstraintCount, CoverageCount
from aclnn_cts.store.run_verdict import RunPlan, Terms, headline
from aclnn_cts.store.summary import Summary, result_line, summary_from_json, summary_to_json
from tests.support.build_records import EMBEDDING, SOFTMAX, make_record

PASSED = make_record(0)
FAILED = make_record(1, result=Result.FAILED, kind=Fault.VALUE)
WAIVED = make_record(2, result=Result.FAILED, kind=Fault.VALUE, waiver="known")
ERROR = make_record(3, result=Result.ERROR, kind="lost device")
SKIPPED = make_record(4, result=Result.SKIPPED, kind=SkipReason.OPEN)
UNJUDGED = make_record(6, result=Result.SKIPPED, kind=SkipReason.INEXPRESSIBLE)
OUTSIDE = make_record(7, result=Result.OUT_OF_SCOPE, kind="dtype BF16")


def covered(**counts: tuple[int, int]) -> Summary:
    """The counts of a batch whose cases held and broke constraints so often."""
    summary = Summary()
    for identifier, (held, broken) in counts.items():
        summary.operator(SOFTMAX).constraints[identifier] = ConstraintCount(held=held, broken=broken)
    return summary


def summary_of(*records: Record, missing: int = 0) -> Summary:
    summary = Summary(terms=Terms(RunPlan.CASES), finished=True)
    summary.plan(SOFTMAX, "valid", number=len(records) + missing)
    for record in records:
        summary.add(record)
    return summary


@pytest.mark.parametrize(
    ("records", "line", "code"),
    [
        ((), "inconclusive judged=0% cases=0 passed=0 failed=0 waived=0 errors=0 skipped=0 out_of_scope=0", 3),
        ((SKIPPED,), "inconclusive judged=0% cases=1 passed=0 failed=0 waived=0 errors=0 skipped=1 out_of_scope=0", 3),
        ((OUTSIDE,), "inconclusive judged=0% cases=1 passed=0 failed=0 waived=0 errors=0 skipped=0 out_of_scope=1", 3),
        ((PASSED,), "conforms judged=100% cases=1 passed=1 failed=0 waived=0 errors=0 skipped=0 out_of_scope=0", 0),
        (
            (PASSED, SKIPPED, OUTSIDE),
            "conforms judged=100% cases=3 passed=1 failed=0 waived=0 errors=0 skipped=1 out_of_scope=1",
            0,
        ),
        (
            (PASSED, UNJUDGED),
            "inconclusive judged=50% cases=2 passed=1 failed=0 waived=0 errors=0 skipped=1 out_of_scope=0",
            3,
        ),
        (
            (WAIVED,),
            "conforms-with-waivers judged=100% cases=1 passed=0 failed=1 waived=1 errors=0 skipped=0 out_of_scope=0",
            0,
        ),
        (
            (PASSED, WAIVED),
            "conforms-with-waivers judged=100% cases=2 passed=1 failed=1 waived=1 errors=0 skipped=0 out_of_scope=0",
            0,
        ),
        (
            (PASSED, ERROR),
            "inconclusive judged=50% cases=2 passed=1 failed=0 waived=0 errors=1 skipped=0 out_of_scope=0",
            3,
        ),
        (
            (WAIVED, ERROR),
            "inconclusive judged=50% cases=2 passed=0 failed=1 waived=1 errors=1 skipped=0 out_of_scope=0",
            3,
        ),
        ((FAILED, ERROR), "fails judged=50% cases=2 passed=0 failed=1 waived=0 errors=1 skipped=0 out_of_scope=0", 1),
        (
            (FAILED, WAIVED, PASSED),
            "fails judged=100% cases=3 passed=1 failed=2 waived=1 errors=0 skipped=0 out_of_scope=0",
            1,
        ),
    ],
)
def test_result_lines_and_exit_codes(records: tuple[Record, ...], line: str, code: int) -> None:
    for order in itertools.permutations(records):
        summary = summary_of(*order)
        assert result_line(summary, Path("runs/a b")) == f"RESULT verdict={line} run=runs/a b"
        assert result_line(summary, None) == f"RESULT verdict={line} run=-"
        assert summary.exit_code == code


@pytest.mark.parametrize("missing", [1, -1])
def test_a_total_that_does_not_add_up_is_no_pass(missing: int) -> None:
    summary = summary_of(PASSED, PASSED, missing=missing)
    assert summary.discrepancies() == (f"{SOFTMAX}, valid: {2 + missing} planned, 2 ended",)
    assert (summary.verdict, summary.exit_code) == (RunVerdict.INCONCLUSIVE, 3)


def test_one_kinds_surplus_does_not_hide_anothers_hole() -> None:
    summary = summary_of(PASSED, PASSED)
    summary.plan(EMBEDDING, "valid")
    summary.add(make_record(9))
    assert summary.total.cases == summary.total.ended
    assert len(summary.discrepancies()) == 2
    assert summary.verdict == RunVerdict.INCONCLUSIVE


def test_a_fault_outranks_a_total_that_does_not_add_up() -> None:
    assert summary_of(FAILED, missing=3).exit_code == 1


def test_what_is_wrong_with_the_run_itself() -> None:
    summary = summary_of(PASSED)
    summary.problems.append("x never broken")
    assert (summary.verdict, summary.exit_code) == (RunVerdict.INCONCLUSIVE, 3)
    summary.violations.append("waiver w expired")
    assert (summary.verdict, summary.exit_code) == (RunVerdict.FAILS, 1)


def test_skips_without_a_record_count_by_their_reason() -> None:
    summary = summary_of(PASSED)
    summary.plan(EMBEDDING, "valid", number=3)
    summary.skip(EMBEDDING, "valid", reason=SkipReason.UNSUPPORTED, number=3)
    assert summary.verdict == RunVerdict.CONFORMS
    assert summary.total.skipped_by_reason == {SkipReason.UNSUPPORTED: 3}
    with pytest.raises(HarnessError, match="a trial is skipped without a reason"):
        summary.add(make_record(result=Result.SKIPPED))
    with pytest.raises(HarnessError, match="result 'fine'; expected passed, failed, error, skipped or"):
        summary.add(make_record(result="fine"))


def test_counts_by_operator_kind_and_constraint() -> None:
    unjudged = make_record(2, case_kind="invalid", result=Result.SKIPPED, kind=SkipReason.NOT_JUDGED)
    summary = summary_of(make_record(0), make_record(1))
    summary.include(covered(a=(2, 0), b=(2, 0), c=(0, 2)))
    summary.include(covered(a=(0, 1)))
    summary.plan(SOFTMAX, "invalid")
    summary.add(unjudged)
    document = summary_to_json(summary)
    assert document["cases"] == 3
    assert document["skipped_by_reason"] == {"not judged": 1}
    [(name, operator)] = document["operators"].items()
    assert name == SOFTMAX
    assert operator["passed"] == 2
    assert {kind: counts["cases"] for kind, counts in operator["kinds"].items()} == {"valid": 2, "invalid": 1}
    assert operator["constraints"] == {
        "a": {"held": 2, "broken": 1},
        "b": {"held": 2, "broken": 0},
        "c": {"held": 0, "broken": 2},
    }
    assert tuple(note.text for note in summary.one_sided({SOFTMAX: ["a", "b", "c", "d"]})) == (
        f"{SOFTMAX}: b never broken",
        f"{SOFTMAX}: c never held",
        f"{SOFTMAX}: d never held",
        f"{SOFTMAX}: d never broken",
    )


def test_parts_add_up_to_the_whole_and_json_keeps_all() -> None:
    records = [
        PASSED,
        FAILED,
        WAIVED,
        ERROR,
        SKIPPED,
        UNJUDGED,
        OUTSIDE,
        make_record(5, operator=EMBEDDING, case_kind="boundary", facts={"held": ["x"]}),
    ]
    whole = Summary()
    parts = Summary()
    for record in records:
        kind, operator = record.trial.case.origin.kind, record.trial.case.operator
        part = Summary()
        for summary in (whole, part):
            summary.plan(operator, kind)
            summary.add(record)
        part.problems.append("p")
        parts.include(part)
    whole.problems.append("p")
    assert parts == whole
    again = summary_from_json(json.loads(json.dumps(summary_to_json(whole))), where="summary.json")
    assert again == whole
    assert summary_to_json(again) == summary_to_json(whole)


def test_a_summary_that_was_changed_is_named() -> None:
    with pytest.raises(HarnessError, match=r"summary\.json: .*operators"):
        summary_from_json({"operators": {"a": {"kinds": {"valid": {"passed": "many"}}}}}, where="summary.json")


def test_no_summary_shares_its_counts_with_another() -> None:
    summary_of(FAILED)
    assert Summary().operators == {}
    assert summary_of(PASSED).total.failed == 0


def test_a_summary_apart_counts_on_alone() -> None:
    first = summary_of(PASSED, FAILED, SKIPPED, UNJUDGED, OUTSIDE, WAIVED)
    name = PASSED.trial.case.operator
    first.demand(name, dtypes=["x FLOAT"], rules=["r"], cells=["tiny"])
    first.include(covered(a=(2, 1)))
    first.operator(name).coverage["limits"] = CoverageCount(met=1, of=2)
    before = copy.deepcopy(first)
    second = first.apart({name})
    assert second == first
    for record in (FAILED, SKIPPED, UNJUDGED, WAIVED):
        second.add(record)
    second.include(covered(a=(2, 0), b=(1, 0)))
    second.operator(name).reach({"tiny": 1})
    second.problems.append("p")
    assert first == before
    assert second.total.failed == first.total.failed + 2


@pytest.mark.parametrize(
    ("plan", "waiver", "verdict"),
    [
        (RunPlan.CHECK, "accepted", RunVerdict.CONFORMS_WITH_WAIVERS),
        (RunPlan.CHECK, "", RunVerdict.FAILS),
        (RunPlan.CASES, "accepted", RunVerdict.INCONCLUSIVE),
    ],
)
def test_what_hangs_on_a_waived_failure_keeps_a_test_of_the_gate_from_nothing(
    plan: RunPlan, waiver: str, verdict: RunVerdict
) -> None:
    summary = Summary(terms=Terms(plan), finished=True)
    twins = {"result": Result.FAILED, "kind": Fault.REJECTED, "facts": {TWIN_FAILED: "rejected"}, "waiver": waiver}
    records = [make_record(0), *(make_record(number, **twins) for number in range(1, 5))]  # type: ignore[arg-type]
    summary.plan(SOFTMAX, "valid", number=len(records))
    for record in records:
        summary.add(record)
    assert summary.conclusion.verdict == verdict


def at_corner(item: Record, *corners: str, judged: str = Judged.VALUES) -> Record:
    case = msgspec.structs.replace(item.trial.case, origin=Origin(kind="valid", corners=corners))
    verdict = msgspec.structs.replace(item.verdict, judged=judged)
    return msgspec.structs.replace(item, trial=msgspec.structs.replace(item.trial, case=case), verdict=verdict)


@pytest.mark.parametrize(
    ("left", "every", "verdict", "words"),
    [
        (at_corner(PASSED, "dim: -1"), True, RunVerdict.CONFORMS, "conforms; 3 of 3 corners"),
        (at_corner(PASSED, "dim: -1", judged=Judged.FORM), True, RunVerdict.CONFORMS, "conforms; 3 of 3 corners"),
        (at_corner(PASSED, "dim: -1", judged=Judged.STATUS), True, RunVerdict.INCONCLUSIVE, "inconclusive"),
        (at_corner(UNJUDGED, "dim: -1"), True, RunVerdict.INCONCLUSIVE, "inconclusive"),
        (at_corner(UNJUDGED, "dim: -1"), False, RunVerdict.CONFORMS, "conforms; 2 of 3 corners"),
        (at_corner(SKIPPED, "dim: -1"), True, RunVerdict.CONFORMS, "conforms; 2 of 2 corners"),
        (at_corner(OUTSIDE, "dim: -1"), True, RunVerdict.CONFORMS, "conforms; 2 of 2 corners; dtype BF16 not offered"),
        (None, True, RunVerdict.INCONCLUSIVE, "inconclusive"),
        (None, False, RunVerdict.CONFORMS, "conforms; 2 of 3 corners"),
    ],
)
def test_a_corner_at_which_no_values_were_judged(
    left: Record | None, every: bool, verdict: RunVerdict, words: str
) -> None:
    summary = Summary(terms=Terms(RunPlan.PROFILE, every_corner=every), finished=True)
    summary.demand(SOFTMAX, corners=["dim: 0", "dim: 1", "dim: -1"])
    records = [*(make_record(number) for number in range(10, 20)), at_corner(make_record(20), "dim: 0", "dim: 1")]
    records += [left] if left is not None else []
    summary.plan(SOFTMAX, "valid", number=len(records))
    for item in records:
        summary.add(item)
    assert (summary.verdict, headline(summary.conclusion)) == (verdict, words)
    assert summary_from_json(json.loads(json.dumps(summary_to_json(summary))), where="x").verdict == verdict
    if verdict == RunVerdict.INCONCLUSIVE:
        [cause] = summary.conclusion.causes
        assert cause.values == {"operator": SOFTMAX, "n": 1, "corner": "dim: -1"}
