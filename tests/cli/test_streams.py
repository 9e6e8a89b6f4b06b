"""Streams that are closed, pipes whose reader is gone, full disks and signals: the exit code says what it should."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.reports.synthetic import record, softmax_case, synthetic_run

COMMAND = f"{shlex.quote(sys.executable)} -m aclnn_cts"
CASE = Path(__file__).parents[2] / "waivers/cases/softmax-backward-strided-output.jsonl"


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=os.environ
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    failed = record(softmax_case(1), result="failed", kind="value", output="out", error_ratio=2.0)
    return synthetic_run(folder / "run", [record(softmax_case()), failed])


@pytest.mark.parametrize("words", ["ops", "compare run run", "cases softmax_backward -n 300"])
def test_a_reader_that_is_gone_gives_141(words: str, run: Path) -> None:
    # `true` reads nothing; the sleep lets it end first.
    ended = shell(f"({COMMAND} {words}; echo $? >&3) 3>code 2>errors | true; cat code", run.parent)
    assert ended.stdout == "141\n"
    assert (run.parent / "errors").read_text().count("\n") <= 2


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, run: Path) -> None:
    ended = shell(f"{COMMAND} report run -o out.md --force {closed}; echo $?", run.parent)
    assert ended.stdout.splitlines()[-1] == "0", ended
    assert (run.parent / "out.md").read_text().startswith("## aclnn-cts")


def test_a_run_goes_on_without_a_reader(tmp_path: Path) -> None:
    lines = CASE.read_text().splitlines()
    (tmp_path / "c.jsonl").write_text(lines[0] + "\n")
    ended = shell(
        f"({COMMAND} run --cases c.jsonl --adapter reference -o run; echo $? >&3) 3>code 2>&1 | true; cat code",
        tmp_path,
    )
    assert ended.stdout == "141\n"
    assert (tmp_path / "run" / "summary.json").is_file(), "it came to its end"


def test_ignored_sigchld(tmp_path: Path) -> None:
    """A child's exit code can be learned where the caller ignores SIGCHLD."""
    script = (
        "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "from aclnn_cts.cli.streams import sound_process; sound_process();"
        "sys.exit(subprocess.run(['sh', '-c', 'exit 7']).returncode)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 7


@pytest.mark.parametrize("words", ["cases softmax_backward -n 3 -o /dev/full", "ops >/dev/full"])
def test_a_full_device_is_named(words: str, tmp_path: Path) -> None:
    ended = shell(f"{COMMAND} {words}; echo $?", tmp_path)
    assert ended.stdout.splitlines()[-1] == "3"
    assert ("/dev/full" if "-o" in words else "standard output") + ": cannot be written" in ended.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 256 KiB; skipped where none can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    return place


@pytest.mark.slow
def test_a_full_disk_is_named_with_the_file(small_disk: Path, run: Path) -> None:
    try:
        (small_disk / "filler").write_bytes(bytes(200 * 1024))
        for words, name in (
            (f"report {run} -o {small_disk}/r.html", "r.html"),
            (f"bundle {run} -o {small_disk}/b.zip", "b.zip"),
            (f"run softmax_backward --adapter reference -o {small_disk}/run", "disk/run"),
        ):
            ended = shell(f"{COMMAND} {words}; echo $?", small_disk.parent)
            assert ended.stdout.splitlines()[-1] == "3", ended
            assert f"{small_disk}" in ended.stderr
            assert "cannot be" in ended.stderr
            assert name.partition("/")[0] in ended.stderr
    finally:
        subprocess.run(["umount", "-l", str(small_disk)], check=False)


@pytest.mark.parametrize("after", [0.15, 0.5])
def test_ctrl_c_during_start_up_has_a_message(after: float, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "aclnn_cts", "run", "--adapter", "reference", "-o", str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        # What a shell starts in the background ignores SIGINT, and so does all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    while not Path(f"/proc/{process.pid}/cmdline").read_bytes().count(b"aclnn_cts"):
        time.sleep(0.005)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    # Before the program's first line Python itself ends by the signal, or cannot import its module `site`.
    assert process.returncode in (130, -signal.SIGINT) or "init_import_site" in errors, errors
    if process.returncode == 130:
        assert "error: interrupted" in errors
        assert "Traceback" not in errors
