from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault, Severity, severity
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result, SkipReason
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.model.runs import trial_rows
from aclnn_cts.reports.sentences import insufficiency, verdict_text
from aclnn_cts.speclang.load import package_folder
from aclnn_cts.store.run_directory import RunDirectory
from tests.reports.synthetic import record, renamed, softmax_case, synthetic_run


def test_the_figures_are_those_of_the_run(faulty: Acceptance, faulty_run: Path) -> None:
    total = RunDirectory(faulty_run).summary().total
    ends = faulty.ends
    assert (ends.cases, ends.passed, ends.failed) == (total.cases, total.passed, total.failed)
    assert ends.cases == ends.ended == sum(row.ends.cases for row in faulty.checks)
    assert ends.failed == sum(row.ends.failed for row in faulty.checks) == sum(c.number for c in faulty.findings)
    assert ends.cases == sum(1 for _ in trial_rows([faulty_run]))
    assert faulty.verdict == "fails"


def test_histograms_hold_every_element(faulty: Acceptance) -> None:
    assert faulty.precision
    for row in faulty.precision:
        assert sum(row.histogram) <= row.elements
        assert len(row.histogram) == len(faulty.error_ratio_edges) + 1
        beyond = sum(row.histogram[faulty.error_ratio_edges.index(0) + 1 :])
        assert beyond == row.beyond
        assert row.within_bound <= row.measured <= row.trials


def test_a_finding_is_shown_by_its_smallest_case_with_programs(faulty: Acceptance, faulty_run: Path) -> None:
    for card in faulty.findings:
        rows = trial_rows([faulty_run], result=Result.FAILED, findings=faulty.findings)
        mine = [row for row in rows if row.finding == card.id]
        assert len(mine) == card.number
        assert card.trial_id in {row.trial_id for row in mine}
        assert card.number <= card.of
        assert card.replay.startswith("aclnn-cts replay ")
        assert (faulty_run.parent / card.file).is_file()
        assert bool(card.made.programs) != bool(card.made.missing)
        assert card.severity in {*Severity}
    assert any(program.language == "cpp" for card in faulty.findings for program in card.made.programs)
    ranks = [(card.waived == card.number, Severity(card.severity).order, -card.number) for card in faulty.findings]
    assert ranks == sorted(ranks)


def test_what_a_waiver_speaks_for_stands_on_a_card_of_its_own(tmp_path: Path) -> None:
    small = softmax_case(1)
    large = renamed(
        small,
        arguments={
            name: Tensor((20, 30), value.dtype, data=value.data and Data(recipe="normal"))
            if isinstance(value, Tensor)
            else value
            for name, value in small.arguments.items()
        },
    )
    fields = {"result": Result.FAILED, "kind": Fault.VALUE, "output": "out", "error_ratio": 2.0}
    waived, unwaived = record(small, waiver="w", **fields), record(large, **fields)  # type: ignore[arg-type]  # any of its fields
    first, second = acceptance([synthetic_run(tmp_path / "run", [waived, unwaived])]).findings
    assert (first.number, first.waived, first.waivers, first.trial_id) == (1, 0, (), unwaived.trial_id)
    assert (second.number, second.waived, second.waivers, second.trial_id) == (1, 1, ("w",), waived.trial_id)
    [waiver] = acceptance([tmp_path / "run"]).waivers
    assert (waiver.id, waiver.failures, waiver.reason, waiver.owner) == ("w", 1, None, None)


def test_every_kind_of_fault_has_a_severity() -> None:
    kinds = [fault.value for fault in Fault]
    found = {kind: severity(kind) for kind in kinds}
    assert {kind for kind, grave in found.items() if grave == Severity.CRITICAL} == {
        Fault.CRASH,
        Fault.HANG,
        Fault.READ,
        Fault.GUARD,
        Fault.INPUT,
        Fault.LEAK,
        Fault.LATE,
    }
    assert {kind for kind, grave in found.items() if grave == Severity.MINOR} == {Fault.MODEL, Fault.TOLERANCE}


def test_two_runs_are_counted_together(tmp_path: Path) -> None:
    first = synthetic_run(tmp_path / "a", [record(softmax_case(1))])
    second = synthetic_run(tmp_path / "b", [record(softmax_case(2)), record(softmax_case(3))])
    report = acceptance([first, second])
    assert report.ends.passed == 3
    assert [run.name for run in report.runs] == ["a", "b"]
    assert report.verdict == "conforms"
    assert report.suffices


@pytest.mark.parametrize(
    ("changes", "finish", "expected"),
    [
        ({"profile": "quick"}, True, "quick profile"),
        ({"profile": ""}, True, "no profile"),
        ({"profile": "", "command": "fuzz"}, True, "a campaign"),
        ({"settings": {"phases": 1}}, True, "first phase alone"),
        ({"profile": "standard"}, False, "has not finished, or was interrupted"),
    ],
)
def test_what_does_not_suffice_says_so_in_both_languages(
    tmp_path: Path, changes: dict[str, Any], *, finish: bool, expected: str
) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case())], changes=changes, finish=finish)
    report = acceptance([run])
    assert not report.suffices
    assert expected in insufficiency(report, "en")
    assert expected in verdict_text(report, "en")
    assert "不足以" in verdict_text(report, "zh")
    if not finish:
        assert report.verdict == "inconclusive"
        assert "did not come to its end" in verdict_text(report, "en")


def test_a_campaign_beside_a_sufficient_run_takes_nothing_from_it(tmp_path: Path) -> None:
    planned = synthetic_run(tmp_path / "a", [record(softmax_case(1))])
    campaign = synthetic_run(tmp_path / "b", [record(softmax_case(2))], changes={"profile": "", "command": "fuzz"})
    report = acceptance([planned, campaign])
    assert report.suffices
    assert insufficiency(report, "en") == ""
    other = synthetic_run(tmp_path / "c", [], changes={"profile": "", "target": Target(product="atlas-training")})
    assert not acceptance([planned, other]).suffices


def test_unwaived_failures_are_in_the_verdict_s_sentence(faulty: Acceptance) -> None:
    assert f"{faulty.ends.failed} of" in verdict_text(faulty, "en").replace("\u202f", "")
    assert "不符合" in verdict_text(faulty, "zh")


def test_disputes_and_errors_are_kept(tmp_path: Path) -> None:
    disputed = record(softmax_case(1), result=Result.SKIPPED, kind=SkipReason.DISPUTE, message="two oracles disagree")
    error = record(softmax_case(2), result=Result.ERROR, message="the harness failed")
    report = acceptance([synthetic_run(tmp_path / "run", [record(softmax_case()), disputed, error])])
    assert report.credibility.disputes == 1
    assert report.credibility.dispute_notes == (Note("two oracles disagree"),)
    assert report.credibility.errors == ((Note("the harness failed", NoteCode.HARNESS), 1),)
    assert report.verdict == "inconclusive"


def test_a_nan_share_is_the_worst(tmp_path: Path) -> None:
    failed = record(softmax_case(), result=Result.FAILED, kind=Fault.SPECIAL, output="out", error_ratio=float("nan"))
    report = acceptance([synthetic_run(tmp_path / "run", [failed])])
    assert report.precision[0].worst == "inf"


def test_editions_of_a_spec_are_not_mixed(tmp_path: Path) -> None:
    content = (package_folder() / "softmax_backward.yaml").read_bytes() + b"\n# another edition\n"
    first = synthetic_run(tmp_path / "a", [record(softmax_case(1))])
    second = synthetic_run(tmp_path / "b", [record(softmax_case(2))], spec=content)
    assert acceptance([second]).ends.passed == 1
    with pytest.raises(UsageError, match="another edition of the spec of aclnnSoftmaxBackward"):
        acceptance([first, second])


def test_a_run_stands_once_and_is_a_run(tmp_path: Path) -> None:
    run = synthetic_run(tmp_path / "run", [record(softmax_case())])
    with pytest.raises(UsageError, match="give each run once"):
        acceptance([run, tmp_path / "." / "run"])
    with pytest.raises(UsageError, match=r"holds no manifest\.json"):
        acceptance([tmp_path])


def test_a_baseline_is_compared_with_runs_of_its_product(tmp_path: Path) -> None:
    before = synthetic_run(
        tmp_path / "a",
        [
            record(softmax_case(1)),
            record(softmax_case(2), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0),
        ],
    )
    after = synthetic_run(
        tmp_path / "b",
        [
            record(softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, output="out", error_ratio=2.0),
            record(softmax_case(2)),
        ],
    )
    [comparison] = acceptance([after], baseline=before).comparisons
    totals = comparison.totals()
    assert (totals["new_failures"], totals["fixed"]) == (1, 1)
    other = synthetic_run(tmp_path / "c", [], changes={"target": Target(product="atlas-training")})
    with pytest.raises(UsageError, match="none of the runs"):
        acceptance([after], baseline=other)
