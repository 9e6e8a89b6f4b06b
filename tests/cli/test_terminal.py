"""What the terminal says while a run goes on, when it is interrupted, and at its end."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from aclnn_cts.cli import screen
from aclnn_cts.cli.campaign_screen import CampaignScreen
from aclnn_cts.cli.progress_line import RunMeter, RunStatus, progress_document, progress_line
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.verdict import Result
from aclnn_cts.runs.campaign.status import CampaignStatus
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.events import (
    BatchJudged,
    Event,
    PhaseStarted,
    RunStarted,
    TrialsExpected,
    TrialsPlanned,
    TrialsSkipped,
)
from aclnn_cts.store.summary import Summary
from tests.cli.conftest import Called
from tests.cli.test_cli_screens import ADAPTERS, LINES, RUN, SMALL, WRONG
from tests.reports.synthetic import record, softmax_case
from tests.support.lines import places_of

Call = Callable[..., Called]
ROOT = Path(__file__).parents[2]


@pytest.fixture(name="call")
def call_beside_adapters(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """With adapters that are wrong on purpose and a file of cases."""
    monkeypatch.syspath_prepend(ADAPTERS)
    (tmp_path / "cases.jsonl").write_text(LINES)
    return call


def test_the_line_has_rate_findings_and_the_time_that_is_left() -> None:
    counts = Counts(cases=400, passed=90, failed=8, waived=2, skipped=2)
    moment = RunStatus(seconds=50.0, counts=counts, planned=400, findings=3, rate=2.0, left=150.0)
    assert progress_line(moment) == "0:00:50  100 of 400 trials, 2/s, 3 findings, 0:02:30 left"
    unknown = RunStatus(seconds=50.0, counts=counts, planned=None, findings=1, rate=2.0, left=None)
    assert progress_line(unknown) == "0:00:50  100 trials, 2/s, 1 finding"
    assert progress_document(moment)["seconds_left"] == 150.0
    assert progress_line(moment, short=True) == "100/400 2/s 3 findings 0:02:30 left"
    assert progress_line(unknown, short=True) == "100 2/s 1 finding"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_width_cuts_the_line(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    shown = io.StringIO()
    shown.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    made = screen.Screen()
    made(RunStarted(manifest=None))  # type: ignore[arg-type]  # which the screen does not read
    made(TrialsPlanned(operator="x", kind="given", number=1832))
    made(TrialsExpected(number=2116))
    made(PhaseStarted(operator="aclnnUpsampleNearestExact1dBackward", name="valid"))
    made(BatchJudged(records=(record(softmax_case(1)),)))
    made.close()
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split("[\r\n]", shown.getvalue())]
    assert any(line.rstrip().endswith(" left") and "/s" in line and "0 findings" in line for line in lines)


def test_the_meter_counts_what_the_events_say() -> None:
    meter = RunMeter()
    failed = record(softmax_case(1), result=Result.FAILED, kind="value")
    waived = record(softmax_case(2), result=Result.FAILED, kind="value", waiver="known")
    meter(TrialsPlanned(operator="x", kind="given", number=2))
    meter(TrialsExpected(number=8))
    meter(TrialsSkipped(operator="x", kind="valid", reason="open", number=2))
    meter(BatchJudged(records=(failed, waived)))
    moment = meter.moment()
    assert (moment.counts.ended, moment.planned, moment.findings) == (4, 10, 1)
    assert (moment.counts.failed, moment.counts.waived, moment.counts.skipped) == (2, 1, 2)
    assert moment.left is not None


def test_an_interrupt_shows_the_findings_so_far(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: screen.Screen, event: Event) -> None:
        if isinstance(event, BatchJudged):
            raise KeyboardInterrupt

    monkeypatch.setattr(screen.Screen, "__call__", interrupt)
    called = call(*RUN, WRONG)
    assert called.code == 130
    assert called.out.startswith("Verdict: ")
    assert re.search(r"^1 finding:\n 1 SoftmaxBackward: value of out", called.out, re.MULTILINE)
    assert "Next: aclnn-cts replay " in called.out
    assert "kept in run" in called.err


@pytest.mark.slow
def test_an_interrupted_campaign_shows_the_findings_so_far(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: CampaignScreen, status: CampaignStatus) -> None:
        if status.findings:
            raise KeyboardInterrupt

    monkeypatch.setattr(CampaignScreen, "__call__", interrupt)
    called = call(
        "fuzz", "softmax_backward", "--chunks", "90", "--chunk-trials", "8", "-o", "night", "--adapter", WRONG
    )
    assert called.code == 130
    assert re.search(r"^1 finding:\n 1 SoftmaxBackward: value of out", called.out, re.MULTILINE)
    assert "go on with" in called.err


def on_a_terminal(*words: str, folder: Path) -> tuple[int, str]:
    """The exit code, and what a terminal shows of standard error."""
    ours, theirs = pty.openpty()
    command = (sys.executable, "-m", "aclnn_cts", *words)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b"")).decode()
        os.close(ours)
    return process.returncode, shown


def test_a_terminal_shows_at_once_what_begins_and_then_how_far_it_is(call: Call, tmp_path: Path) -> None:
    code, shown = on_a_terminal(*RUN, "reference", folder=tmp_path)
    assert code == 0
    assert shown.startswith("softmax_backward on reference ...")
    assert re.search(r"\d:\d\d:\d\d  4 trials, \d+/s, 0 findings", shown)


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("fuzz", "--adapter", "nothing:Here"), "all operators on nothing:Here ..."),
        (("replay", "nothing.json", "--adapter", "reference"), "nothing.json on reference ..."),
        (("report", "a", "b", "-o", "report.html"), "report of a, b ..."),
        (("shrink", "nothing.json"), "shrinking nothing.json ..."),
        (("compare", "a", "b"), "a against b ..."),
        (("bundle", "a", "-o", "a.bundle"), "packing a ..."),
        (("verify", "a.bundle"), "checking a.bundle ..."),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_that_takes_its_time_says_first_what_it_does(
    words: tuple[str, ...], begins: str, tmp_path: Path
) -> None:
    code, shown = on_a_terminal(*words, folder=tmp_path)
    assert code == 2
    assert shown.startswith(f"{begins}\r\n")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--adapter", "torch"),
        ("fuzz", "--adapter", "torch"),
        ("replay", "nothing.json", "--adapter", "torch"),
        ("report", "a", "-o", "report.html"),
        ("shrink", "nothing.json"),
        ("compare", "a", "b"),
        ("bundle", "a", "-o", "a.bundle"),
        ("verify", "a.bundle"),
    ],
    ids=lambda words: words[0],
)
def test_the_first_line_comes_before_what_takes_time_to_import(words: tuple[str, ...]) -> None:
    program = f"""if True:
        import sys
        from aclnn_cts.cli import main, output

        def begin(what):
            print([name for name in ("numpy", "torch", "yaml") if name in sys.modules])
            raise SystemExit

        output.begin = begin
        main.main({words!r})
    """
    done = subprocess.run((sys.executable, "-c", program), cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def test_the_end_is_in_order_and_its_last_line_is_whole(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = call(*RUN, WRONG).out.splitlines()
    starts = (
        "Verdict: fails",
        "Judged: ",
        "1 finding:",
        "   clause ",
        "Next: aclnn-cts replay ",
        "RESULT verdict=fails ",
    )
    places_of(lines, starts)
    assert lines[-1].endswith("run=run")


@pytest.mark.slow
def test_replay_of_a_file_says_what_became_of_it_and_makes_no_directory(call: Call, tmp_path: Path) -> None:
    assert call(*RUN, WRONG).code == 1
    [file] = (tmp_path / "run" / "failures").glob("*.json")
    before = set(tmp_path.rglob("*"))
    for adapter, answer in (
        ("reference", "fixed"),
        (WRONG, "same"),
        ("wrong_adapters:Wrong,fault=special", "different"),
    ):
        called = call("replay", f"run/failures/{file.name}", "--adapter", adapter)
        following = "Next: aclnn-cts run" if answer == "fixed" else "Next: aclnn-cts replay"
        lines = called.out.splitlines()
        places = places_of(lines, ("Verdict: ", "Judged: ", f"{answer}: ", following, "RESULT "))
        assert places[0] == 0
        assert lines[-1].endswith(" run=-")
        assert {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts} <= before
    said = call("replay", f"run/failures/{file.name}", "--adapter", WRONG, "--json", "-o", "again")
    assert json.loads(said.out.splitlines()[0])["answer"] == "same"
    assert (tmp_path / "again" / "manifest.json").is_file()


def test_the_progress_of_a_run_is_one_object(call: Call, tmp_path: Path) -> None:
    call(*RUN, WRONG, "--progress", "progress.json")
    document = json.loads((tmp_path / "progress.json").read_text())
    assert (document["finished"], document["findings"], document["cases"]) == (True, 1, len(LINES.splitlines()))
    assert document["run"] == str(tmp_path / "run")


def test_the_share_that_was_judged_is_that_of_the_result_line(call: Call) -> None:
    out = call(*RUN, "reference").out
    [said] = re.findall(r"^Judged: (\d+)% of what must be judged; ", out, re.MULTILINE)
    assert f" judged={said}% " in out.splitlines()[-1]


@pytest.mark.slow
def test_a_campaign_ends_as_a_run_does_and_names_the_sizes_that_it_did_not_reach(call: Call) -> None:
    lines = call("fuzz", "softmax_backward", *SMALL, "--adapter", WRONG, "-o", "night").out.splitlines()
    starts = (
        "Verdict: fails",
        "  Ran on: ",
        "Judged: ",
        "operator ",
        "1 finding:",
        "   clause ",
        "Calls judged on values, by size regime:",
        "dtype, layout ",
        "Not reached: ",
        "  Softmax ",
        "Next: aclnn-cts replay night/failures/",
        "Report: aclnn-cts report night ",
        "RESULT verdict=fails ",
    )
    places_of(lines, starts)
    summary = json.loads(Path("night/summary.json").read_text())
    cells = summary["operators"]["aclnnSoftmaxBackward"]["cells"]
    empty = sum(not number for number in cells.values())
    assert f"Not reached: {empty} cells:" in lines
    assert empty


@pytest.mark.parametrize("width", [40, 80])
def test_words_of_size_regimes_are_whole_at_every_width(width: int) -> None:
    summary, out = Summary(), io.StringIO()
    names = [f"{regime.value} FLOAT16 contiguous" for regime in Regime]
    summary.demand("aclnnSoftmaxBackward", cells=names)
    screen.show_regimes(Console(file=out, width=width, highlight=False), summary)
    words = re.findall(r"\w+", out.getvalue())
    assert {"FLOAT16", "contiguous", *(regime.value for regime in Regime)} <= set(words)
    assert max(map(len, out.getvalue().splitlines())) <= width
