from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Judged, Record, Result, SkipReason
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import ClauseRow
from aclnn_cts.reports.model.attribution import FIRST_PHASE
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict, ClauseVerdicts, UntestedReason
from aclnn_cts.reports.model.rows import ClauseRows
from aclnn_cts.speclang.load import load_specs
from tests.reports.conftest import FIVE
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run
from tests.support.build_records import make_record

NULLPTR = 161001
RMS = "aclnnRmsNormGrad"
STREAMS, ONCE = "life-cycle/two-streams", "life-cycle/exact-workspace"


def clause(report: Acceptance, at: str) -> ClauseRow:
    [row] = [row for row in report.clauses if row.clause.at == at and row.operator == "aclnnSoftmaxBackward"]
    return row


def broken(seed: int = 0, **changes: object) -> Record:
    case = softmax_case(seed, null="gradOutput", origin=Origin(kind="invalid", constraint="gradOutput.null"))
    twin = {"twin": case_to_json(softmax_case(seed), origin=False)}
    fields = {"check": "status", "status": NULLPTR, "constraint": "gradOutput.null", "parameters": twin}
    return record(case, **{**fields, **changes})  # type: ignore[arg-type]  # any of its fields


def report_of(path: Path, *records: Record, **options: object) -> Acceptance:
    return acceptance([synthetic_run(path / "run", records, **options)])  # type: ignore[arg-type]  # any of its options


def judged(operator: str, *records: Record) -> dict[str, ClauseRow]:
    """The clauses of an operator by address after some records, which need not be of a real case."""
    specs = load_specs()
    spec = specs[operator]
    speakers = ClauseEvidence(spec, specs.interface_clauses)
    for item in records:
        speakers.add(item, 0 if item.verdict.result == Result.FAILED else None)
    verdicts = ClauseVerdicts(
        spec=spec,
        interface={item.at: item for item in specs.interface_clauses},
        speakers=speakers,
        sides={},
        corners={},
        products=frozenset(spec.products),
    )
    rows = ClauseRows(verdicts=verdicts, findings={0: "F1"})
    return {row.clause.at: row for row in rows.rows()}


def at_of(constraint: str) -> str:
    return load_specs()["aclnnSoftmaxBackward"].clauses_of(constraint)[0]


def test_every_clause_of_the_documents_and_of_the_interface_stands_once(five: Acceptance) -> None:
    specs = load_specs()
    expected = {(spec.operator, item.at) for spec in specs.select(FIVE) for item in spec.clauses}
    expected |= {("", item.at) for item in specs.interface_clauses}
    report = five
    assert len(report.clauses) == len(expected) > 400
    assert {(row.operator, row.clause.at) for row in report.clauses} == expected
    for row in report.clauses:
        assert row.clause.en
        assert row.clause.zh
        assert (row.verdict == ClauseVerdict.UNTESTED) == bool(row.reason), row


def test_a_run_of_one_operator_has_the_clauses_of_its_document_and_of_the_interface_alone(tmp_path: Path) -> None:
    report = report_of(tmp_path, record(softmax_case()))
    specs = load_specs()
    expected = {("aclnnSoftmaxBackward", item.at) for item in specs["aclnnSoftmaxBackward"].clauses}
    expected |= {("", item.at) for item in specs.interface_clauses}
    assert {(row.operator, row.clause.at) for row in report.clauses} == expected
    assert sum(report.counted(name) for name in ("met", "contradicted", "untested", "open")) == len(expected)


def test_a_constraint_is_met_where_both_sides_were_tried_and_passed(tmp_path: Path) -> None:
    report = report_of(tmp_path, record(softmax_case()), broken())
    row = clause(report, at_of("gradOutput.null"))
    assert (row.verdict, row.held, row.broken, row.said.passed) == (ClauseVerdict.MET, 1, 1, 1)
    assert row.evidence == (broken().trial_id,)


def test_a_constraint_that_was_never_broken_is_untested(tmp_path: Path) -> None:
    row = clause(report_of(tmp_path, record(softmax_case())), at_of("gradOutput.null"))
    assert (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.ONE_SIDE)


def test_a_constraint_whose_trials_were_skipped_is_untested_with_the_reasons(tmp_path: Path) -> None:
    skipped = broken(result=Result.SKIPPED, kind=SkipReason.NOT_JUDGED)
    row = clause(report_of(tmp_path, record(softmax_case()), skipped), at_of("gradOutput.null"))
    assert (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.SKIPPED)
    assert row.said.skipped == {SkipReason.NOT_JUDGED: 1}


def test_a_wrong_status_contradicts_the_clauses_of_its_constraint(tmp_path: Path) -> None:
    failed = broken(result=Result.FAILED, kind=Fault.STATUS, status=0)
    report = report_of(tmp_path, record(softmax_case()), broken(1), failed)
    row = clause(report, at_of("gradOutput.null"))
    assert (row.verdict, row.said.passed, row.said.failed) == (ClauseVerdict.CONTRADICTED, 1, 1)
    assert row.findings == {"F1": 1}
    assert row.evidence[0] == failed.trial_id
    assert row.said.waived < row.said.failed
    assert clause(report, at_of("output.null")).verdict == ClauseVerdict.UNTESTED


def test_a_waived_failure_contradicts_all_the_same(tmp_path: Path) -> None:
    failed = broken(result=Result.FAILED, kind=Fault.STATUS, status=0, waiver="known")
    row = clause(report_of(tmp_path, record(softmax_case()), failed), at_of("gradOutput.null"))
    assert row.verdict == ClauseVerdict.CONTRADICTED
    assert row.said.waived == row.said.failed > 0


def test_what_the_document_leaves_open_is_open_unless_a_call_does_harm(tmp_path: Path) -> None:
    origin = Origin(kind="invalid", constraint="gradOutput.not_empty")
    case = softmax_case(origin=origin, null="out")
    skipped = record(case, check="status", result=Result.SKIPPED, kind=SkipReason.OPEN)
    assert clause(report_of(tmp_path / "a", skipped), at_of("gradOutput.not_empty")).verdict == ClauseVerdict.OPEN
    crashed = record(case, check="status", result=Result.FAILED, kind=Fault.CRASH, status=None)
    row = clause(report_of(tmp_path / "b", crashed), at_of("gradOutput.not_empty"))
    assert row.verdict == ClauseVerdict.CONTRADICTED


def test_a_condition_chooses_the_trials_that_speak(tmp_path: Path) -> None:
    good, bad = record(softmax_case(1, dtype="FLOAT16")), softmax_case(2, dtype="BF16")
    failed = record(bad, result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=3.0)
    report = report_of(tmp_path, good, failed)
    half, brain, single = (clause(report, f"params.gradOutput.{number}") for number in (9, 11, 10))
    other = clause(report, "params.gradOutput.14")
    assert [row.clause.when_text for row in (half, brain, single, other)] == [
        f"dtype(gradOutput) == {dtype}" for dtype in ("FLOAT16", "BF16", "FLOAT", "FLOAT16")
    ]
    assert (brain.clause.products, other.clause.products) == (("atlas-a2",), ("atlas-training",))
    assert (half.verdict, half.held) == (ClauseVerdict.MET, 1)
    assert (brain.verdict, brain.said.failed) == (ClauseVerdict.CONTRADICTED, 1)
    assert (single.verdict, single.reason) == (ClauseVerdict.UNTESTED, UntestedReason.CONDITION)
    assert (other.verdict, other.reason) == (ClauseVerdict.UNTESTED, UntestedReason.PRODUCT)
    assert brain.specific == ("F1",)
    general = clause(report, "function.1")
    assert (general.verdict, general.specific) == (ClauseVerdict.CONTRADICTED, ())


def test_a_failure_speaks_against_the_clause_where_most_trials_fail_with_it(tmp_path: Path) -> None:
    passed = [record(softmax_case(number)) for number in range(9)]
    failed = record(
        softmax_case(9, strided=True), result=Result.FAILED, kind=Fault.UNWRITTEN, output="out", error_ratio=3.0
    )
    report = report_of(tmp_path, *passed, failed)
    specific = [row for row in report.clauses if row.specific]
    assert {row.clause.when_text for row in specific} == {"not contiguous(out)"}
    assert report.findings[0].clauses[0] == (specific[0].operator, specific[0].clause.at)


def test_a_wrong_value_on_a_limit_is_not_held_against_the_limit(tmp_path: Path) -> None:
    origin = Origin(kind="boundary", constraint="gradOutput.rank")
    wrong = record(
        softmax_case(origin=origin),
        check="boundary",
        result=Result.FAILED,
        kind=Fault.VALUE,
        output="out",
        error_ratio=9.0,
    )
    report = report_of(tmp_path / "a", wrong)
    assert clause(report, at_of("gradOutput.rank")).verdict == ClauseVerdict.UNTESTED
    assert clause(report, "function.1").verdict == ClauseVerdict.CONTRADICTED
    refused = record(
        softmax_case(origin=origin), check="boundary", result=Result.FAILED, kind=Fault.REJECTED, status=NULLPTR
    )
    report = report_of(tmp_path / "b", refused)
    assert clause(report, at_of("gradOutput.rank")).verdict == ClauseVerdict.CONTRADICTED


def test_what_no_test_can_show_is_untested_with_the_spec_s_reason(tmp_path: Path) -> None:
    rows = [row for row in report_of(tmp_path, record(softmax_case())).clauses if row.clause.untestable is not None]
    assert rows
    assert {row.reason for row in rows} == {UntestedReason.UNREACHABLE}
    assert all(row.clause.untestable and all(row.clause.untestable) for row in rows)


def test_a_first_phase_alone_says_nothing_of_values(tmp_path: Path) -> None:
    passed = record(softmax_case(), facts={"status": "ACLNN_SUCCESS", "phases": 1})
    row = clause(report_of(tmp_path, passed), "function.1")
    assert (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.SKIPPED)
    assert row.said.skipped == {FIRST_PHASE: 1}


@pytest.mark.parametrize(
    ("passed", "aside", "verdict"),
    [
        (0, 1, ClauseVerdict.UNTESTED),
        (1, 2, ClauseVerdict.UNTESTED),
        (2, 2, ClauseVerdict.MET),
        (3, 2, ClauseVerdict.MET),
    ],
)
def test_a_clause_is_met_where_as_many_trials_passed_as_were_set_aside(passed: int, aside: int, verdict: str) -> None:
    plain = make_record(0, operator=RMS, result=Result.FAILED, kind=Fault.VALUE, output="dxOut")
    wrong = [
        make_record(n, operator=RMS, check=STREAMS, result=Result.FAILED, kind=Fault.VALUE, output="dxOut")
        for n in range(aside)
    ]
    good = [make_record(n, operator=RMS, check=STREAMS) for n in range(10, 10 + passed)]
    streams = [row for row in judged(RMS, plain, *wrong, *good).values() if row.clause.interface == "stream.1"]
    assert streams
    for row in streams:
        assert (row.verdict, row.said.passed, row.said.aside, row.said.failed) == (verdict, passed, aside, 0)
        assert row.reason == ("" if verdict == ClauseVerdict.MET else UntestedReason.PLAIN_CALL)
        assert row.held == passed + aside


def test_what_the_document_leaves_open_is_not_set_aside(tmp_path: Path) -> None:
    trials = [record(softmax_case(n), result=Result.SKIPPED, kind=SkipReason.OPEN) for n in range(5)]
    row = clause(report_of(tmp_path, record(softmax_case(9)), *trials), "function.1")
    assert (row.verdict, row.said.passed, row.said.aside, row.said.skipped) == (
        ClauseVerdict.MET,
        1,
        0,
        {SkipReason.OPEN: 5},
    )


def test_most_trials_without_a_verdict_leave_a_clause_untested(tmp_path: Path) -> None:
    skipped = [record(softmax_case(n), result=Result.SKIPPED, kind=SkipReason.INEXPRESSIBLE) for n in range(3)]
    error = record(softmax_case(3), result=Result.ERROR)
    report = report_of(tmp_path, record(softmax_case(8)), record(softmax_case(9)), *skipped, error)
    row = clause(report, "function.1")
    assert (row.verdict, row.reason, row.said.passed, row.said.aside) == (
        ClauseVerdict.UNTESTED,
        UntestedReason.MOSTLY,
        2,
        4,
    )
    page = render_html(report, sections=("traceability",))
    line = page[page.index('id="clause-aclnnSoftmaxBackward-function.1"') :].partition("</tr>")[0]
    for text in (
        "most of its trials have no verdict",
        "2 ",
        "passed",
        "4 ",
        "set aside",
        "多数相应用例没有结论",
        "未计入",
    ):
        assert text in line
    assert "cannot be expressed for this implementation" in line


def test_a_constraint_of_which_most_trials_were_set_aside_is_untested(tmp_path: Path) -> None:
    skipped = [broken(n, result=Result.SKIPPED, kind=SkipReason.NOT_JUDGED) for n in range(1, 3)]
    row = clause(report_of(tmp_path, record(softmax_case()), broken(), *skipped), at_of("gradOutput.null"))
    assert (row.verdict, row.reason, row.said.passed, row.said.aside) == (
        ClauseVerdict.UNTESTED,
        UntestedReason.MOSTLY,
        1,
        2,
    )


def test_a_failure_contradicts_whatever_was_set_aside(tmp_path: Path) -> None:
    skipped = [record(softmax_case(n), result=Result.SKIPPED, kind=SkipReason.INEXPRESSIBLE) for n in range(5)]
    failed = record(softmax_case(9), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0)
    assert clause(report_of(tmp_path, *skipped, failed), "function.1").verdict == ClauseVerdict.CONTRADICTED


def test_a_real_run_meets_what_it_reaches(five: Acceptance) -> None:
    report = five
    assert report.counted("contradicted") == 0
    listed = [row for row in report.constraints if row.strength == "listed" and row.ends.passed]
    assert len(listed) > 40
    assert all(set(row.returned) - {"not called"} <= set(row.promised) for row in listed), [
        row.returned for row in listed
    ]


OF_ANOTHER_PRODUCT = {
    "aclnnConvTbcBackward": [f"params.cubeMathType.{number}" for number in (4, 5, 9, 15, 16)],
    "aclnnRmsNormGrad": ["limits.1", "limits.21"],
    "aclnnSoftmaxBackward": ["params.gradOutput.16", "params.output.15"],
}


def test_a_clause_of_another_product_is_not_met(five: Acceptance) -> None:
    rows = {(row.operator, row.clause.at): row for row in five.clauses}
    for operator, addresses in OF_ANOTHER_PRODUCT.items():
        for at in addresses:
            row = rows[operator, at]
            assert (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.PRODUCT), at
            assert row.clause.products
            assert "atlas-a2" not in row.clause.products
    assert all(
        (row.verdict, row.reason) == (ClauseVerdict.UNTESTED, UntestedReason.PRODUCT)
        for row in five.clauses
        if row.clause.products and "atlas-a2" not in row.clause.products and not row.clause.untestable
    )


def test_every_clause_that_names_one_series_is_stated_for_it() -> None:
    """Wordings that begin with a series say where they hold, so that no other run counts for them."""
    checked = 0
    series = {"inference series": "atlas-inference", "training series": "atlas-training", "Atlas A2": "atlas-a2"}
    for spec in load_specs().values():
        for item in spec.clauses:
            head = re.match(
                r"(On|For)( the)? (Atlas |A)?[\w ]*?(inference series|training series|Atlas A2|A2)\b", item.en
            )
            named = [product for word, product in series.items() if word in item.en] if head else []
            if len(named) == 1:
                assert item.products == tuple(named), (spec.operator, item.at)
                checked += 1
    assert checked > 30


def test_trials_of_a_product_count_for_its_clauses_alone() -> None:
    """BF16 that the training series accepts against its list contradicts no clause of Atlas A2."""
    operator, identifier = "aclnnConvTbcBackward", "self.dtype"
    wrong = make_record(
        1,
        operator=operator,
        check="status",
        result=Result.FAILED,
        kind=Fault.STATUS,
        constraint=identifier,
        case_kind="invalid",
        product="atlas-training",
    )
    rows = judged(operator, wrong)
    training = [
        at
        for at, row in rows.items()
        if row.clause.products == ("atlas-training",) and identifier in row.clause.constraints
    ]
    assert training
    assert {rows[at].verdict for at in training} == {ClauseVerdict.CONTRADICTED}
    rows = judged(operator, renamed(wrong, trial=renamed(wrong.trial, case=on_a2(wrong.trial.case))))
    assert {rows[at].said.failed for at in training} == {0}


def on_a2(case: Case) -> Case:
    return renamed(case, target=Target(product="atlas-a2"))


def test_a_clause_without_a_judged_call_at_a_corner_is_met_in_part(tmp_path: Path) -> None:
    def at(number: int, result: str, *corners: str) -> Record:
        kind = {Result.SKIPPED: SkipReason.INEXPRESSIBLE, Result.OUT_OF_SCOPE: "dtype BF16"}.get(result, "")
        made = record(softmax_case(number, origin=Origin(kind="valid", corners=corners)), result=result, kind=kind)
        return msgspec.structs.replace(made, verdict=msgspec.structs.replace(made.verdict, judged=Judged.VALUES))

    report = report_of(
        tmp_path,
        at(0, Result.PASSED, "data: exact", "dtypes: FLOAT"),
        at(1, Result.SKIPPED, "data: exact", "data: hostile"),
        at(2, Result.OUT_OF_SCOPE, "dtypes: BF16"),
        at(3, Result.PASSED, "view: output gaps"),
    )
    found = clause(report, "function.1")
    assert (found.verdict, found.corners, found.missed_corners) == (ClauseVerdict.PART, 3, ("data: hostile",))
    row = next(
        line for line in render_html(report).split("<tr ") if 'id="clause-aclnnSoftmaxBackward-function.1"' in line
    )
    assert "<code>data: hostile</code>" in row
    others = [row.clause.at for row in report.clauses if row.verdict == ClauseVerdict.PART]
    assert others
    assert all(at.startswith("function.") for at in others)
    whole = clause(report_of(tmp_path / "whole", at(0, Result.PASSED, "data: exact")), "function.1")
    assert (whole.verdict, whole.corners, whole.missed_corners) == (ClauseVerdict.MET, 1, ())
