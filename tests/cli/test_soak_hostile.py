"""`make soak-hostile` fails where it must: each thing that it looks for, planted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.errors import UsageError
from tests.cli.conftest import named
from tests.soak import hostile, hostile_runs
from tests.soak.hostile_runs import Ended, mistakes
from tests.support.hostile_files import Kind, Prepared

SHARED: Any = None
"""The planted kinds have no need of prepared files."""
KEPT: list[Any] = []


def written(_random: object, _shared: Prepared, folder: Path) -> Path:
    path = folder / "x"
    path.touch()
    return path


def raises(path: Path, _shared: Prepared) -> None:
    raise ZeroDivisionError(path)


def hangs(path: Path, _shared: Prepared) -> None:
    time.sleep(60)


def hides_a_hang(path: Path, _shared: Prepared) -> None:
    try:
        time.sleep(60)
    except BaseException:  # noqa: BLE001 - as SQLite does around what it calls back
        raise UsageError("interrupted") from None


def refuses_slowly(path: Path, _shared: Prepared) -> None:
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    raise UsageError("at last")


def swallows_for_a_moment(path: Path, _shared: Prepared) -> None:
    bytearray(80 << 20)[::4096] = bytes(80 << 8)


def litters(path: Path, _shared: Prepared) -> None:
    path.with_name("litter").touch()


@named(
    ("read", "message"),
    [
        ("error", raises, "ZeroDivisionError"),
        ("hang", hangs, "not read within 1 s"),
        ("hidden_hang", hides_a_hang, "not read within 1 s"),
        ("slow_refusal", refuses_slowly, "of processor time: at last"),
        ("growth", swallows_for_a_moment, "the process has grown by"),
        ("litter", litters, "left beside the files: litter"),
    ],
)
def test_what_a_reader_does_wrong_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path, Prepared], object], message: str
) -> None:
    monkeypatch.setattr(hostile, "FILE_SECONDS", 1)
    monkeypatch.setattr(hostile, "REFUSED_SECONDS", 0.1)
    monkeypatch.setattr(hostile, "GROWTH", 50 << 20)
    wrong = hostile.read([Kind("x", written, read)], SHARED, tmp_path / "m", seconds=0.05, seed=0)
    assert wrong
    assert message in wrong[0]


def test_a_sound_reader_has_no_mistakes(tmp_path: Path) -> None:
    kind = Kind("x", written, lambda path, shared: path.read_bytes())
    assert hostile.read([kind], SHARED, tmp_path / "m", seconds=0.02, seed=0) == []


def _shared_memory() -> None:
    path = Path("/dev/shm", f"aclnn-cts-test-{os.getpid()}")  # noqa: S108 - what is looked for
    path.mkdir()
    KEPT.append(path.rmdir)


def _open_file() -> None:
    file = Path(os.devnull).open("rb")  # noqa: SIM115 - what is looked for
    KEPT.append(file.close)


def _process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    KEPT.append(process.communicate)


@named(
    ("leave", "message"),
    [
        ("temporary", lambda: tempfile.mkstemp(prefix="mine"), "left in the temporary folder: mine"),
        ("here", lambda: Path("mine").touch(), "left in the working directory: mine"),
        ("shared_memory", _shared_memory, "left in shared memory: aclnn-cts-test-"),
        ("open", _open_file, "left open: /dev/null"),
        ("process", _process, "left running: process"),
    ],
)
def test_what_is_left_is_a_mistake(leave: Callable[[], object], message: str) -> None:
    wrong: list[str] = []
    with hostile.nothing_left(wrong):
        leave()
    while KEPT:
        KEPT.pop()()
    assert any(line.startswith(message) for line in wrong), wrong
    wrong.clear()
    with hostile.nothing_left(wrong):
        pass
    assert wrong == []


SOUND = Ended(2, "error: x: is none\n", 0.1, 1 << 20)


@named(
    ("ended", "message"),
    [
        ("read", Ended(0, "all is well\n", 0.1, 1 << 20), "it ended with 0"),
        ("killed", Ended(-14, "", 0.1, 1 << 20), "it ended with -14"),
        ("unexpected", Ended(3, "error: unexpected ValueError: x\n", 0.1, 1 << 20), "it ended with 3"),
        ("long", Ended(2, "error: " + "x" * 5000, 0.1, 1 << 20), "a line has 5007 characters"),
        ("slow", Ended(2, "error: x\n", 1.5, 1 << 20), "1.5 s of processor time"),
        ("large", Ended(2, "error: x\n", 0.5, 150 << 20), "150 MiB of memory"),
    ],
)
def test_a_hostile_run_that_is_not_refused_as_it_must_be(ended: Ended, message: str) -> None:
    assert mistakes("a run", "report", SOUND, seconds=1.0) == []
    [found, *_] = mistakes("a run", "report", ended, seconds=1.0)
    assert message in found


def test_a_command_is_measured_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swallow(_words: object) -> int:
        held = bytearray(60 << 20)
        held[::4096] = bytes(60 << 8)
        os.write(1, b"done\n")
        return 3

    monkeypatch.setattr(hostile_runs, "command", swallow)
    ended = hostile_runs.measured(("x",), tmp_path)
    assert (ended.code, ended.output) == (3, "done\n")
    assert 50 << 20 < ended.memory < 90 << 20
    monkeypatch.setattr(hostile_runs, "HUNG_SECONDS", 1)
    monkeypatch.setattr(hostile_runs, "command", lambda _words: time.sleep(60))
    assert hostile_runs.measured(("x",), tmp_path).code == -14
