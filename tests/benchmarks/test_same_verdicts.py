"""The comparison of two trees: what it matches, what it reports, and that it sees a rule that was changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from aclnn_cts.cli.main import main as aclnn_cts
from aclnn_cts.core.errors import HarnessError, UsageError
from benchmarks.measure import Figure
from benchmarks.same_verdicts import __main__ as command
from benchmarks.same_verdicts.jobs import JOBS, Job, Kept
from benchmarks.same_verdicts.rows import Difference, Line, compare, read_expected, unexpected
from benchmarks.same_verdicts.speed import Speed
from benchmarks.same_verdicts.trees import FOLDER, ROOT, Names, Tree, commit_of, read_names, unpack
from tests.reports.synthetic import record, softmax_case, synthetic_run

OPERATOR = "aclnnSoftmaxBackward"
NAMES = read_names()
FOUND = Line(type="mutant", operator=OPERATOR, item="m", result="found", number=3)
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


def trial(item: str, result: str = "passed", reason: str = "", **fields: Any) -> Line:
    return Line(type="trial", operator=OPERATOR, check="values", item=item, result=result, reason=reason, **fields)


def differences(old: list[Line], new: list[Line]) -> dict[Difference, list[str]]:
    return {item: list(cases) for item, cases in compare("run", old, old, new).differences.items()}


def change(was: str, now: str) -> Difference:
    return Difference("run", OPERATOR, "values", was, now)


def test_equal_trials_do_not_differ() -> None:
    lines = [trial("a"), trial("a"), trial("b", "failed", "value", ratio="inf")]
    found = compare("run", lines, lines, lines)
    assert (found.compared, dict(found.differences), list(found.unstable), found.moved) == (3, {}, [], 0)


def test_differences_are_grouped_by_verdict() -> None:
    old = [trial("a"), trial("b"), trial("c", "failed", "value"), trial("d")]
    new = [trial("a", "failed", "value"), trial("b", "failed", "value"), trial("c", "failed", "value", waived=True)]
    assert differences(old, new) == {
        change("passed", "failed (value)"): ["a", "b"],
        change("failed (value)", "failed (value), waived"): ["c"],
        change("passed", "absent"): ["d"],
    }
    assert differences([], [trial("a")]) == {change("absent", "passed"): ["a"]}


def test_trials_of_one_case_and_check_are_matched_in_their_order() -> None:
    old = [trial("a"), trial("b"), trial("a", "failed", "value")]
    assert differences(old, [trial("b"), trial("a"), trial("a", "failed", "value")]) == {}
    assert len(differences(old, [trial("a", "failed", "value"), trial("b"), trial("a")])) == 2


def test_another_order_of_the_plan_is_counted_and_no_difference() -> None:
    old, new = [trial("a"), trial("b"), trial("c")], [trial("c"), trial("x"), trial("a"), trial("b")]
    found = compare("run", old, old, new)
    assert (list(found.differences), found.moved) == ([change("absent", "passed")], 3)


def test_another_error_ratio_is_a_difference() -> None:
    changed = change("passed", "passed, with another error ratio")
    assert differences([trial("a", ratio="0.5")], [trial("a", ratio="0.25")]) == {changed: ["a"]}


def test_what_base_does_not_conclude_twice_is_listed_and_not_compared() -> None:
    first, again = [trial("a"), trial("b")], [trial("a", "failed", "hang"), trial("b"), trial("c")]
    found = compare("run", first, again, [trial("a", "failed", "crash"), trial("b")])
    assert (found.compared, dict(found.differences)) == (1, {})
    assert sorted(line.item for line in found.unstable) == ["a", "c"]


def test_old_names_are_compared_by_their_new_ones() -> None:
    old = [trial("a", "failed", "beyond-model"), Line(type="mutant", item="old", check="values")]
    reasons = {"beyond-model": "MODEL"}
    names = {"check": {"values": "agrees"}, "reason": reasons, "mutant": {"old": "new"}}
    found = [(line.check, line.reason, line.item) for line in (line.renamed(names) for line in old)]
    assert found == [("agrees", "MODEL", "a"), ("agrees", "", "new")]


def test_findings_are_counted_and_not_compared() -> None:
    finding = Line(type="finding", operator=OPERATOR)
    found = compare("run", [finding] * 21, [finding] * 21, [finding] * 3)
    assert (dict(found.findings), found.compared) == ({OPERATOR: (21, 3)}, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (FOUND, replace(FOUND, result="survives")),
        (FOUND, replace(FOUND, number=9)),
        (replace(FOUND, type="count"), replace(FOUND, type="count", number=9)),
        (Line(type="exit", result="0"), Line(type="exit", result="1")),
    ],
)
def test_mutants_counts_and_exit_codes_are_compared(old: Line, new: Line) -> None:
    assert len(differences([old], [old])) == 0
    assert len(differences([old], [new])) == 1


def test_expected_differences_need_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "expected.yaml"
    path.write_text("- {now: 'failed (*', reason: the rule was wrong}\n")
    meant, other = change("passed", "failed (value)"), change("passed", "absent")
    assert unexpected([meant, other], read_expected(path)) == [other]
    path.write_text("- {now: 'failed (*'}\n")
    with pytest.raises(UsageError, match="reason"):
        read_expected(path)
    assert read_expected(FOLDER / "expected.yaml") is not None


def read(path: Path) -> list[Line]:
    return Tree(name="this", folder=ROOT).read("run", path, NAMES)


def test_the_reader_tells_trials_and_findings(tmp_path: Path) -> None:
    records = [
        record(softmax_case(1), error_ratio=0.5),
        record(softmax_case(2), result="failed", kind="value", error_ratio=float("nan"), waiver="known"),
    ]
    passed, failed, finding = read(synthetic_run(tmp_path / "run", records))
    assert (passed.verdict, passed.ratio) == ("passed", "0.5")
    assert (failed.verdict, failed.ratio) == ("failed (value), waived", "inf")
    assert (finding.type, finding.operator, finding.check, finding.reason) == ("finding", OPERATOR, "values", "value")


def test_a_tree_that_has_none_of_the_names_is_explained(tmp_path: Path) -> None:
    lost = Names(
        code={"ResultReader": ("nowhere:Reader",), "case_id": ("nowhere:case_id",)},
        attributes={},
        commands={},
        renamed={},
        speed={},
    )
    tree = Tree(name="this", folder=ROOT)
    with pytest.raises(HarnessError, match=r"names\.yaml: code\.case_id: this tree has none of nowhere:case_id"):
        tree.read("run", tmp_path, lost)
    with pytest.raises(HarnessError, match="no command nothing or never"):
        tree.command(["nothing", "never"])


def test_every_name_of_the_table_is_one_of_this_tree() -> None:
    tree = Tree(name="this", folder=ROOT)
    for job in JOBS:
        assert job.command in NAMES.commands
    for measured in NAMES.speed.values():
        code, out, _ = tree.python("-m", measured.module, "--help")
        assert (code, "--alone" in out) == (0, True)


def test_a_figure_is_slower_below_nine_tenths() -> None:
    def speed(unit: str, new: float) -> Speed:
        return Speed(benchmark="bench", name="x", unit=unit, old=Figure((100.0,)), new=Figure((new,)))

    assert [speed("rate", new).is_slower for new in (89.0, 91.0, 200.0)] == [True, False, False]
    assert [speed("seconds", new).is_slower for new in (112.0, 110.0, 50.0)] == [True, False, False]


def test_results_of_base_are_kept_for_the_same_job_alone(tmp_path: Path) -> None:
    kept = Kept(folder=tmp_path, commit="0" * 40)
    job, other = JOBS[0], JOBS[1]
    assert kept.lines(job, 1, lambda: [trial("a")]) == [trial("a")]
    assert kept.lines(job, 1, list) == [trial("a")]
    assert kept.lines(job, 2, lambda: [trial("b")]) == [trial("b")]
    assert kept.lines(other, 1, list) == []


@needs_git
def test_a_commit_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="git rev-parse"):
        commit_of("no-such-commit")


@pytest.mark.slow
@needs_git
def test_a_changed_rule_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the second tree a `dim` out of range is left open."""
    cases = tmp_path / "cases.jsonl"
    assert aclnn_cts(["cases", OPERATOR, "--kind", "invalid", "-n", "20", "-o", str(cases)]) == 0
    words = (OPERATOR, "--adapter", "reference", "--cases", str(cases))
    job = Job(part="runs", title="run cases", reads="run", command="run", words=words)

    def unpack_changed(name: str, treeish: str, folder: Path) -> Tree:
        tree = unpack(name, treeish, folder)
        if name != "BASE":
            spec = folder / "specs" / "softmax_backward.yaml"
            lines = spec.read_text(encoding="utf-8").splitlines()
            [place] = [number for number, line in enumerate(lines) if "id: dim.range" in line]
            lines[place] = lines[place].replace("status: ACLNN_ERR_PARAM_INVALID", "strength: open")
            spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tree

    monkeypatch.setattr(command, "JOBS", (job,))
    arguments = ["--base", "HEAD", "--only", "runs", "--kept", str(tmp_path / "kept")]
    monkeypatch.setattr(command, "unpack", unpack_changed)
    assert command.main(arguments) == 1
    shown = " ".join(capsys.readouterr().out.split())
    [numbers] = re.findall(r"run cases: (\d+) compared, (\d+) differ, 0 unstable", shown)
    assert 0 < int(numbers[1]) < int(numbers[0])
    assert "NOT EXPECTED" in shown
    meant = tmp_path / "expected.yaml"
    meant.write_text(f"- {{operator: {OPERATOR}, now: 'skipped (open)', reason: dim is open}}\n")
    assert command.main([*arguments, "--expected", str(meant)]) == 0
    assert "dim is open" in " ".join(capsys.readouterr().out.split())
