"""`aclnn-cts shrink RUN`: every finding of a run made smaller, kept with it, and shown by the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.trial import Trial, trial_from_json
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.store.run_directory import RunDirectory

WRONG = "wrong_adapters:Wrong,fault=value"


def case(rows: int, seed: int) -> Case:
    tensor = Tensor((rows, 5), "FLOAT", data=Data(recipe="normal", seed=seed))
    arguments: dict[str, Argument] = {
        "gradOutput": tensor,
        "output": tensor,
        "dim": 1,
        "out": Tensor((rows, 5), "FLOAT"),
    }
    return Case("aclnnSoftmaxBackward", arguments)


@pytest.fixture(scope="module", name="made")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three failing cases, which are one finding."""
    folder = tmp_path_factory.mktemp("shrink")
    cases = folder / "cases.jsonl"
    cases.write_text("".join(json.dumps(case_to_json(case(rows, rows))) + "\n" for rows in (9, 4, 6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1] / "support"))
        assert main(["run", "--cases", str(cases), "--adapter", WRONG, "-o", str(folder / "run")]) == 1
    return folder / "run"


@pytest.fixture(name="run")
def copy_run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "support"))
    return Path(shutil.copytree(made, tmp_path / "run"))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_findings_are_made_smaller_and_the_report_shows_them(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = RunDirectory(run).summary()
    [recorded] = acceptance([run]).findings
    assert not recorded.shrunk
    assert recorded.shrink == f"aclnn-cts shrink {run} --adapter {WRONG}"
    assert main(["shrink", str(run), "--adapter", WRONG]) == 1
    told = said(capsys)
    assert "60 elements before, 3 now" in told
    assert f"{run}: 1 finding still failing; 1 made smaller; `report` shows them so" in told
    report = acceptance([run])
    [card] = report.findings
    assert card.shrunk
    assert card.shrunk_whole
    assert 0 < card.executions <= 200
    assert (card.number, card.number) == (recorded.number, 3)
    # Its figures are its own, its file holds it, and its programs make it.
    assert card.figures_of == ""
    assert card.file_is_case
    assert [worst.elements for worst in card.record.verdict.deviations] == [1]
    assert {program.language for program in card.made.programs} == {"cpp", "python"}
    [file] = RunDirectory(run).failures()
    trial = trial_from_json(json.loads(file.read_text()), where="")
    assert isinstance(trial, Trial)
    assert trial.id == card.trial_id
    assert all(tensor.numel == 1 for _, tensor in trial.case.tensors())
    page = render_html(report)
    assert f"Shrunk in {card.executions} executions; failures: 3" in page
    assert f"经 {card.executions} 次执行缩减" in page
    # What was judged stays as it was.
    assert RunDirectory(run).summary() == before
    assert not list(run.glob("*-wal"))


@pytest.mark.slow
def test_what_was_shrunk_is_left_and_done_anew_when_asked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shrink", str(run), "--adapter", WRONG, "--executions", "4"]) == 1
    assert "the limit: smaller ones may be left" in said(capsys)
    [card] = acceptance([run]).findings
    assert not card.shrunk_whole
    assert "which is the limit: smaller cases may exist" in render_html(acceptance([run]))
    assert main(["shrink", str(run), "--adapter", WRONG]) == 1
    assert "shrunk before" in said(capsys)
    assert main(["shrink", str(run), "--adapter", WRONG, "--reshrink"]) == 1
    [card] = acceptance([run]).findings
    assert card.shrunk_whole
    assert [worst.elements for worst in card.record.verdict.deviations] == [1]


@pytest.mark.slow
def test_replay_and_the_bundle_take_the_smaller_case(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shrink", str(run), "--adapter", WRONG]) == 1
    assert main(["replay", str(run), "--adapter", WRONG, "-o", str(tmp_path / "again")]) == 1
    assert "same: " in said(capsys)
    assert main(["bundle", str(run), "-o", str(tmp_path / "run.bundle")]) == 0
    assert main(["verify", str(tmp_path / "run.bundle"), "--recompute", "3"]) == 0


def test_a_finding_that_is_gone_is_left_as_it_was_recorded(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text().replace(WRONG, "reference"))
    files = {path.name: path.read_bytes() for path in (run / "failures").iterdir()}
    assert main(["shrink", str(run)]) == 0
    assert "does not fail so by itself: passed; left as it was recorded" in said(capsys)
    assert {path.name: path.read_bytes() for path in (run / "failures").iterdir()} == files
    [card] = acceptance([run]).findings
    assert not card.shrunk


def test_of_two_runs_the_shrunk_case_is_shown(made: Path, run: Path) -> None:
    assert main(["shrink", str(run), "--adapter", WRONG]) == 1
    other = run.parent / "other"
    shutil.copytree(made, other)
    [card] = acceptance([other, run]).findings
    assert card.shrunk
    assert card.number == 6
    assert card.file.startswith("run/failures/")


def test_words_that_do_not_fit(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [file] = RunDirectory(run).failures()
    for words, message in (
        ([str(run), "--adapter", "torch"], f"--adapter torch: {run} was made with"),
        ([str(run), "-o", str(tmp_path / "x")], f"-o: {run} is a run, which has its own"),
        (["no-such-run"], "no-such-run: no such file or folder; name a trial file or the directory of a run"),
        ([str(file)], "a file is shrunk with --adapter A and -o FILE; --adapter is missing"),
        ([str(file), "--adapter", "torch"], "a file is shrunk with --adapter A and -o FILE; -o is missing"),
        ([str(file), "--adapter", "torch", "-o", str(tmp_path / "x"), "--reshrink"], "--reshrink: is for a run"),
        ([str(tmp_path)], f"{tmp_path}: holds no manifest.json"),
    ):
        assert main(["shrink", *words]) == 2
        assert message in said(capsys)
    manifest = run / "manifest.json"
    document = json.loads(manifest.read_text())
    document["specs"]["softmax_backward.yaml"] = "0" * 64
    manifest.write_text(json.dumps(document))
    assert main(["shrink", str(run), "--adapter", WRONG]) == 2
    assert "was made with another edition of the spec of aclnnSoftmaxBackward" in said(capsys)
    (run / "summary.json").unlink()
    assert main(["shrink", str(run), "--adapter", WRONG]) == 2
    assert "the run has not finished" in said(capsys)
