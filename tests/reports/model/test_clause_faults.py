"""Which failures speak against a clause: those that it is about, where other calls do not fail alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Origin
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.core.verdict import TWIN_FAILED, Record, Result
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.attribution import OTHER_CALLS, OTHER_FAULT, PLAIN_CALL, is_at_fault
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict, UntestedReason
from aclnn_cts.speclang.load import load_specs
from tests.reports.model.test_clauses import NULLPTR, ONCE, RMS, STREAMS, at_of, broken, clause, judged, report_of
from tests.reports.synthetic import record, renamed, softmax_case
from tests.support.build_records import make_record


@pytest.mark.parametrize(
    ("operator", "formulas"),
    [
        ("aclnnRmsNormGrad", {"dxOut": "function.3", "dgammaOut": "function.4"}),
        (
            "aclnnConvTbcBackward",
            {"gradInput": "function.3", "gradWeight": "function.4", "gradBias": "function.5"},
        ),
    ],
)
def test_a_wrong_value_of_one_output_says_nothing_of_the_formula_of_another(
    operator: str, formulas: dict[str, str]
) -> None:
    assert set(formulas) == set(load_specs()[operator].outputs)
    good = make_record(0, operator=operator)
    for wrong, contradicted in formulas.items():
        bad = make_record(1, operator=operator, result=Result.FAILED, kind=Fault.VALUE, output=wrong)
        rows = judged(operator, good, bad)
        for output, at in formulas.items():
            expected = ClauseVerdict.CONTRADICTED if at == contradicted else ClauseVerdict.MET
            assert rows[at].verdict == rows[f"params.{output}.1"].verdict == expected, (wrong, at)
        assert rows["function.1"].verdict == ClauseVerdict.CONTRADICTED
        assert rows[contradicted].findings == {"F1": 1}
    crashed = make_record(1, operator=operator, result=Result.FAILED, kind=Fault.CRASH)
    rows = judged(operator, good, crashed)
    assert {rows[at].verdict for at in formulas.values()} == {ClauseVerdict.CONTRADICTED}


@pytest.mark.parametrize("kind", [Fault.VALUE, Fault.SPECIAL, Fault.MODEL])
def test_a_wrong_value_that_the_plain_call_has_too_says_nothing_of_how_it_is_made(kind: str) -> None:
    plain = make_record(1, operator=RMS, result=Result.FAILED, kind=kind, output="dgammaOut")
    call_mode = make_record(2, operator=RMS, check=STREAMS, result=Result.FAILED, kind=kind, output="dgammaOut")
    for records in ([plain, call_mode], [call_mode, plain]):
        rows = judged(RMS, *records)
        streams = [row for row in rows.values() if row.clause.interface == "stream.1"]
        assert streams
        for row in streams:
            assert (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.PLAIN_CALL)
            assert (row.said.failed, row.findings, row.said.skipped) == (0, {}, {PLAIN_CALL: 1})
        formula = rows["function.4"]
        assert (formula.verdict, formula.said.failed) == (ClauseVerdict.CONTRADICTED, 2)
        assert rows["function.3"].said.failed == 0
    two = renamed(call_mode, trial=renamed(call_mode.trial, parameters={"other": {}}))
    rows = judged(RMS, plain, two)
    assert {row.reason for row in rows.values() if row.clause.interface == "stream.1"} == {UntestedReason.PLAIN_CALL}
    assert rows["function.4"].said.failed == 1
    rows = judged(RMS, plain, call_mode, make_record(3, operator=RMS, check=STREAMS))
    assert {row.verdict for row in rows.values() if row.clause.interface == "stream.1"} == {ClauseVerdict.MET}


@pytest.mark.parametrize(
    "plain",
    [
        make_record(1, operator=RMS),
        make_record(1, operator=RMS, result=Result.FAILED, kind=Fault.VALUE, output="dxOut"),
        make_record(1, operator=RMS, result=Result.FAILED, kind=Fault.UNWRITTEN, output="dgammaOut"),
        make_record(1, operator=RMS, check=ONCE, result=Result.FAILED, kind=Fault.VALUE, output="dgammaOut"),
    ],
    ids=["right", "other output", "other fault", "other call_mode"],
)
def test_a_wrong_value_that_the_plain_call_lacks_contradicts_how_it_is_made(plain: Record) -> None:
    call_mode = make_record(2, operator=RMS, check=STREAMS, result=Result.FAILED, kind=Fault.VALUE, output="dgammaOut")
    rows = judged(RMS, plain, call_mode)
    streams = [row for row in rows.values() if row.clause.interface == "stream.1"]
    assert {row.verdict for row in streams} == {ClauseVerdict.CONTRADICTED}
    assert rows["function.4"].said.failed == (plain.verdict.kind == Fault.UNWRITTEN)


def test_a_crash_in_a_call_mode_of_calling_contradicts_it_whatever_the_values_are() -> None:
    plain = make_record(1, operator=RMS, result=Result.FAILED, kind=Fault.VALUE, output="dgammaOut")
    crash = make_record(2, operator=RMS, check=STREAMS, result=Result.FAILED, kind=Fault.CRASH)
    rows = judged(RMS, plain, crash)
    assert {row.verdict for row in rows.values() if row.clause.interface == "stream.1"} == {ClauseVerdict.CONTRADICTED}


MACHINERY = "phases.4"


def test_a_wrong_value_leaves_a_clause_kept_that_is_about_other_faults() -> None:
    bad = [make_record(n, operator=RMS, result=Result.FAILED, kind=Fault.VALUE, output="dxOut") for n in range(3)]
    rows = [row for row in judged(RMS, *bad).values() if row.clause.interface == MACHINERY]
    assert rows
    for row in rows:
        assert (row.verdict, row.said.passed, row.said.failed, row.said.otherwise, row.findings) == (
            ClauseVerdict.MET,
            0,
            0,
            3,
            {},
        )
    crash = make_record(9, operator=RMS, result=Result.FAILED, kind=Fault.CRASH)
    rows = [row for row in judged(RMS, *bad, crash).values() if row.clause.interface == MACHINERY]
    assert {(row.verdict, row.said.failed, row.said.otherwise) for row in rows} == {(ClauseVerdict.CONTRADICTED, 1, 3)}
    # A fault that is looked for earlier hides whether the clause is kept.
    refused = make_record(9, operator=RMS, result=Result.FAILED, kind=Fault.REJECTED)
    rows = [row for row in judged(RMS, refused).values() if row.clause.interface == MACHINERY]
    assert {(row.verdict, row.reason) for row in rows} == {(ClauseVerdict.UNTESTED, UntestedReason.SKIPPED)}
    assert {tuple(row.said.skipped.items()) for row in rows} == {((OTHER_FAULT, 1),)}


def test_a_clause_on_other_faults_is_kept_by_wrong_values_in_a_call_mode_too() -> None:
    plain = make_record(1, operator=RMS, result=Result.FAILED, kind=Fault.VALUE, output="dxOut")
    call_mode = make_record(2, operator=RMS, check=ONCE, result=Result.FAILED, kind=Fault.VALUE, output="dxOut")
    rows = judged(RMS, plain, call_mode)
    assert {row.said.otherwise for row in rows.values() if row.clause.interface == MACHINERY} == {2}


def of_dtype(dtype: str, number: int, *, wrong: int) -> list[Record]:
    """Trials in a dtype of which some fail."""
    return [
        record(softmax_case(seed, dtype=dtype), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=3.0)
        if seed < wrong
        else record(softmax_case(seed, dtype=dtype))
        for seed in range(number)
    ]


@pytest.mark.parametrize(
    ("half", "brain", "verdict"),
    [
        (0, 6, ClauseVerdict.CONTRADICTED),
        (0, 3, ClauseVerdict.CONTRADICTED),  # half of them
        (0, 2, ClauseVerdict.MET),  # of so few others none need fail
        (3, 6, ClauseVerdict.CONTRADICTED),  # twice as often
        (4, 6, ClauseVerdict.UNTESTED),
        (6, 6, ClauseVerdict.UNTESTED),
    ],
)
def test_wrong_values_contradict_a_condition_that_they_come_with(
    tmp_path: Path, half: int, brain: int, verdict: str
) -> None:
    report = report_of(tmp_path, *of_dtype("FLOAT16", 6, wrong=half), *of_dtype("BF16", 6, wrong=brain))
    row = clause(report, "params.gradOutput.11")
    assert row.verdict == verdict
    if verdict == ClauseVerdict.CONTRADICTED:
        assert (row.said.failed, row.said.skipped) == (brain, {})
    else:
        assert (row.said.failed, row.said.skipped) == (0, {OTHER_CALLS: brain})
    if verdict == ClauseVerdict.UNTESTED and brain == 6:
        assert row.reason == UntestedReason.OTHER_CALLS
    assert clause(report, "function.1").verdict == ClauseVerdict.CONTRADICTED


def test_what_all_calls_have_in_common_is_not_at_fault(tmp_path: Path) -> None:
    report = report_of(tmp_path, *of_dtype("FLOAT", 3, wrong=1))
    row = clause(report, "params.gradOutput.10")
    assert (row.verdict, row.said.passed, row.said.skipped) == (ClauseVerdict.MET, 2, {OTHER_CALLS: 1})


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_condition_is_never_at_fault_where_it_fails_less_often(failed: int, of: int, others: int, all_: int) -> None:
    failed, others = min(failed, of), min(others, all_)
    if is_at_fault(failed, of, others, all_):
        assert failed > 0
        assert failed * all_ >= others * of
    # More failures of those that meet it, and fewer of others, never clear it.
    if is_at_fault(failed, of, others, all_) and failed < of:
        assert is_at_fault(failed + 1, of, max(others - 1, 0), all_)


def twin_refused(seed: int = 0) -> Record:
    return broken(seed, result=Result.FAILED, kind=Fault.REJECTED, status=NULLPTR, facts={TWIN_FAILED: True})


def test_broken_call_whose_valid_twin_is_refused_says_nothing_of_the_constraint(tmp_path: Path) -> None:
    at = at_of("gradOutput.null")
    plain = record(softmax_case(5), result=Result.FAILED, kind=Fault.REJECTED, status=NULLPTR)
    report = report_of(tmp_path / "a", plain, twin_refused(), broken(1), broken(2))
    row = clause(report, at)
    assert (row.verdict, row.said.passed, row.said.failed, row.said.skipped) == (
        ClauseVerdict.MET,
        2,
        0,
        {TWIN_FAILED: 1},
    )
    # The table of statuses and the tests of CI show it all the same.
    [shown] = [row for row in report.constraints if row.id == "gradOutput.null"]
    assert (shown.ends.failed, shown.findings) == (1, ("F1",))
    row = clause(report_of(tmp_path / "b", record(softmax_case(5)), twin_refused()), at)
    assert (row.verdict, row.reason, row.said.failed) == (ClauseVerdict.UNTESTED, UntestedReason.TWIN_FAILED, 0)


def test_a_refusal_on_a_limit_that_other_calls_get_too_says_nothing_of_the_limit(tmp_path: Path) -> None:
    at = at_of("gradOutput.rank")
    origin = Origin(kind="boundary", constraint="gradOutput.rank")
    refused = {"result": Result.FAILED, "kind": Fault.REJECTED, "status": NULLPTR}
    on_limit = record(softmax_case(origin=origin), check="boundary", **refused)  # type: ignore[arg-type]  # any of its fields
    others = [record(softmax_case(number), **refused) for number in range(1, 4)]  # type: ignore[arg-type]  # as above
    row = clause(report_of(tmp_path / "a", on_limit, *others), at)
    assert (row.verdict, row.said.failed, row.said.skipped) == (ClauseVerdict.UNTESTED, 0, {OTHER_CALLS: 1})
    fine = [record(softmax_case(number)) for number in range(1, 4)]
    assert clause(report_of(tmp_path / "b", on_limit, *fine, others[0]), at).verdict == ClauseVerdict.CONTRADICTED


@pytest.mark.parametrize("kind", [Fault.REJECTED, Fault.CRASH, Fault.GUARD])
def test_any_fault_that_the_plain_call_has_too_says_nothing_of_the_call_mode(kind: str) -> None:
    plain = make_record(1, operator=RMS, result=Result.FAILED, kind=kind)
    call_mode = make_record(2, operator=RMS, check=STREAMS, result=Result.FAILED, kind=kind)
    streams = [row for row in judged(RMS, plain, call_mode).values() if row.clause.interface == "stream.1"]
    assert {row.reason for row in streams} == {UntestedReason.PLAIN_CALL}
    streams = [row for row in judged(RMS, call_mode).values() if row.clause.interface == "stream.1"]
    assert {row.verdict for row in streams} == {ClauseVerdict.CONTRADICTED}


def test_wrong_values_contradict_what_a_reader_would_call_broken(faulty: Acceptance) -> None:
    contradicted = {
        (row.operator, row.clause.at) for row in faulty.clauses if row.verdict == ClauseVerdict.CONTRADICTED
    }
    shown = {at for operator, at in contradicted if operator}
    assert {"function.1", "function.2", "function.3", "params.out.2"} <= shown
    assert shown - {"function.1", "function.2", "function.3", "params.out.2", "example.1"} == set()
    assert all(operator for operator, _ in contradicted)


def test_a_crash_of_the_broken_call_is_a_matter_of_its_constraint_whatever_plain_calls_do(tmp_path: Path) -> None:
    fine, died = Outcome(phase_one=0, phase_two=0), Outcome(ended=CallEnd.SIGNAL, signal=11)
    plain = renamed(record(softmax_case(7), result=Result.FAILED, kind=Fault.CRASH), attempts=((died,),))
    item = broken(result=Result.FAILED, kind=Fault.CRASH)
    at = at_of("gradOutput.null")
    row = clause(report_of(tmp_path / "a", plain, renamed(item, attempts=((fine, died),))), at)
    assert (row.verdict, row.said.failed) == (ClauseVerdict.CONTRADICTED, 1)
    row = clause(report_of(tmp_path / "b", plain, renamed(item, attempts=((died,),))), at)
    assert row.said.failed == 1
    row = clause(report_of(tmp_path / "c", plain, renamed(item, attempts=((died, fine),))), at)
    assert (row.said.failed, row.said.skipped) == (0, {PLAIN_CALL: 1})


def test_a_write_beside_one_output_says_nothing_of_another_nor_of_the_workspace() -> None:
    stray = make_record(1, operator=RMS, result=Result.FAILED, kind=Fault.GUARD, output="dxOut")
    beyond = make_record(2, operator=RMS, result=Result.FAILED, kind=Fault.GUARD, output="workspace")
    good = make_record(3, operator=RMS)
    for bad, contradicted in ((stray, "params.dxOut.1"), (beyond, "phase2.workspace.1")):
        rows = judged(RMS, good, bad)
        for at in ("params.dxOut.1", "params.dgammaOut.1", "phase2.workspace.1", "phase2.workspaceSize.1"):
            shown = at == contradicted or (bad is beyond and at.startswith("phase2"))
            assert rows[at].verdict == (ClauseVerdict.CONTRADICTED if shown else ClauseVerdict.MET), at


def test_a_broken_call_that_writes_astray_as_plain_calls_do_is_no_matter_of_its_constraint(tmp_path: Path) -> None:
    at = at_of("gradOutput.null")
    stray: dict[str, Any] = {"result": Result.FAILED, "kind": Fault.GUARD, "output": "out"}
    plain = record(softmax_case(5), **stray)
    row = clause(report_of(tmp_path / "a", plain, broken(**stray), broken(1)), at)
    assert (row.verdict, row.said.failed, row.said.skipped) == (ClauseVerdict.MET, 0, {PLAIN_CALL: 1})
    row = clause(report_of(tmp_path / "b", record(softmax_case(5)), broken(**stray), broken(1)), at)
    assert (row.verdict, row.said.failed) == (ClauseVerdict.CONTRADICTED, 1)
