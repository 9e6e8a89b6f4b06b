"""A poor place to run in: no home, few descriptors, ignored signals, closed streams, a clock that jumps, a rival."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.store import manifest
from aclnn_cts.store.run_directory import RunDirectory
from tests.cli.conftest import Called, named
from tests.reports.synthetic import softmax_case

ROOT = Path(__file__).parents[2]
DESCRIPTORS = 32


def start(*words: str, folder: Path, before: Callable[[], object] | None = None) -> subprocess.Popen[str]:
    """A command without a home."""
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER", "LOGNAME")}
    return subprocess.Popen(
        [sys.executable, "-m", "aclnn_cts", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests" / "support")))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509 - no other thread is at work
    )


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(json.dumps(case_to_json(softmax_case(seed))) for seed in range(4)))
    return path


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def no_news_of_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def no_streams() -> None:
    for number in (0, 1, 2):
        os.close(number)


def all_of_it() -> None:
    few_descriptors()
    no_news_of_children()
    no_streams()


def _is_whole(run: Path, number: int) -> None:
    made = RunDirectory(run)
    with made.results() as results:
        assert sum(1 for _ in results.records()) == made.summary().total.ended == number


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "before",
    [
        all_of_it,
        *(pytest.param(each, marks=SLOW) for each in (lambda: None, few_descriptors, no_news_of_children, no_streams)),
    ],
)
def test_an_isolated_run_without_a_home(before: Callable[[], object], cases: Path, tmp_path: Path) -> None:
    words = ("run", "--cases", cases.name, "--adapter", "wrong_adapters:Wrong,fault=value", "-o", "made")
    process = start(*words, folder=tmp_path, before=before)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    _is_whole(tmp_path / "made", 4)


@pytest.mark.slow
@named(
    "words",
    [
        ("run", ("run", "softmax_backward", "--workers", "2")),
        ("fuzz", ("fuzz", "softmax_backward", "--chunks", "2", "--chunk-trials", "16", "--workers", "2")),
    ],
)
def test_two_workers_with_few_descriptors(words: tuple[str, ...], tmp_path: Path) -> None:
    process = start(
        *words, "--adapter", "dying_adapter:Dying,who=nobody", "-o", "made", folder=tmp_path, before=all_of_it
    )
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert RunDirectory(tmp_path / "made").finished


@pytest.mark.slow
def test_a_report_without_a_home(cases: Path, tmp_path: Path) -> None:
    run = start("run", "--cases", cases.name, "--adapter", "reference", "-o", "made", folder=tmp_path)
    assert run.communicate(timeout=120)[1] == ""
    report = start("report", "made", "-o", "r.html", folder=tmp_path)
    report.communicate(timeout=120)
    assert report.returncode == 0
    assert (tmp_path / "r.html").is_file()


def test_of_two_runs_into_one_directory_one_is_refused(cases: Path, tmp_path: Path) -> None:
    words = ("run", "--cases", cases.name, "--adapter", "reference", "-o", "made")
    rivals = [start(*words, folder=tmp_path) for _ in range(2)]
    ends = [(rival.communicate(timeout=120)[1], rival.returncode) for rival in rivals]
    [(_, first), (errors, second)] = sorted(ends, key=lambda end: end[1])
    assert (first, second) == (0, 2), ends
    assert re.match("error: made: (holds a run already|another process writes to this run)", errors)
    _is_whole(tmp_path / "made", 4)


@pytest.mark.slow
def test_of_two_campaigns_in_one_directory_one_is_refused(tmp_path: Path) -> None:
    words = (
        "fuzz",
        "softmax_backward",
        "--adapter",
        "reference",
        "--chunks",
        "4",
        "--chunk-trials",
        "64",
        "-o",
        "made",
    )
    rivals = [start(*words, folder=tmp_path) for _ in range(2)]
    ends = [(rival.communicate(timeout=300)[1], rival.returncode) for rival in rivals]
    [(_, first), (errors, second)] = sorted(ends, key=lambda end: end[1])
    assert (first, second) == (0, 2), ends
    assert "error: made: " in errors
    again = [start(*words, "--resume", folder=tmp_path) for _ in range(2)]
    codes = sorted(rival.wait(timeout=300) for rival in again)
    for rival in again:
        rival.communicate()
    assert codes[0] == 0
    assert codes[1] in (0, 2)
    assert RunDirectory(tmp_path / "made").finished


@pytest.fixture
def clock_going_back(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """Each look at the clock of the wall finds it an hour earlier."""
    seen: list[datetime] = []

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            seen.append(datetime.now(tz) - timedelta(hours=len(seen)))
            return seen[-1]

    monkeypatch.setattr(manifest, "datetime", Clock)
    monkeypatch.setattr("time.time", lambda: 2e9 - 3600.0 * len(seen))
    return seen


@named(
    "words",
    [
        ("run", ("run", "--cases", "c.jsonl")),
        ("replay", ("replay", "c.jsonl")),
        ("fuzz", ("fuzz", "softmax_backward", "--chunks", "1", "--chunk-trials", "8")),
    ],
)
def test_a_clock_that_goes_back_changes_nothing(
    call: Callable[..., Called], words: tuple[str, ...], cases: Path, clock_going_back: list[datetime]
) -> None:
    called = call(*words, "--adapter", "reference", "-o", "made")
    assert called.code == 0, called
    assert clock_going_back
    summary = json.loads(Path("made/summary.json").read_text())
    assert 0 <= summary["seconds"] < 300
    assert call("compare", "made", "made").code == 0


def test_a_current_folder_that_is_gone_is_named_as_such(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    for words in (("ops",), ("run", "softmax_backward", "--adapter", "reference"), ("cases", "softmax_backward")):
        process = start(*words, folder=place, before=place.rmdir)
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, "")
        assert re.fullmatch(r"error: the current folder [^\n]+\n", errors)
        place.mkdir()
