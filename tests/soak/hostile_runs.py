"""Every hostile run directory and bundle, read by every command that reads such: one message, bounded time and memory.

`python -m tests.soak.hostile_runs` prints what is not so, and what took most; exit code 1 where anything is not. Each
command runs in a process forked from one that has imported everything: what is measured is reading, and not Python's
start. `--seconds` is processor time, so that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aclnn_cts.cli.main import main as command
from aclnn_cts.core.outside import MESSAGE_LIMIT
from tests.support.hostile_runs import BUNDLES, RUNS, sound_bundle, sound_run

MEMORY = (200 - 80) << 20
"""Bytes: 200 MiB of a command, which has 80 when it has imported what it needs (`report`; others have 60)."""
SECONDS = 1.0
HUNG_SECONDS = 60
"""Of the clock."""
LONGEST = 1500
"""Bytes of the one message."""

READERS = {
    "report": ("report", "run", "-o", "r.html", "--force"),
    "bundle": ("bundle", "run", "-o", "b.zip", "--force"),
    "compare": ("compare", "run", "run"),
    "replay": ("replay", "run", "--adapter", "reference", "-o", "again"),
}
_REFUSED_BY = {"summary.json": "bundle", "a summary": "bundle"}
"""By the beginning of a name: the command that looks at what is hostile, where that is not `report`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it took."""

    code: int
    """Negative: the signal that ended it."""
    output: str
    """Of both streams."""
    seconds: float
    """Of processor time."""
    memory: int
    """Bytes of resident memory at most, beside those that it began with."""


def measured(words: tuple[str, ...], folder: Path) -> Ended:
    """Call the command in a child of this process."""
    sys.stdout.flush()
    if (idle := os.fork()) == 0:
        os._exit(0)
    before = os.wait4(idle, 0)[2].ru_maxrss
    with tempfile.TemporaryFile() as output:
        if (child := os.fork()) == 0:
            _called(words, folder, output.fileno())
        _, status, usage = os.wait4(child, 0)
        output.seek(0)
        text = output.read(1 << 20).decode(errors="replace")
    seconds = usage.ru_utime + usage.ru_stime
    return Ended(os.waitstatus_to_exitcode(status), text, seconds, (usage.ru_maxrss - before) << 10)


def quickest(words: tuple[str, ...], folder: Path) -> Ended:
    """What a command takes; once more where that is much, since other processes slow this one down."""
    first = measured(words, folder)
    return (
        first if first.seconds < SECONDS / 2 else min(first, measured(words, folder), key=lambda ended: ended.seconds)
    )


def _called(words: tuple[str, ...], folder: Path, output: int) -> None:
    code = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HUNG_SECONDS)
        os.chdir(folder)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = command(words)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


QUICK = frozenset(
    (
        *("a record of 800 MB", "a state of 800 MB", "a fingerprint of 50 MB", "a manifest that is one string"),
        *("a store of a terabyte", "a pipe", "a bundle and a terabyte", "500,000 brackets as records/"),
        "one word as its run's manifest",
    )
)
"""What `make test` reads, runs with one command each."""


def hostile(*, quick: bool = False) -> Iterator[tuple[str, str, Ended]]:
    """What was read, by which command, and how that ended."""
    readers = {"report": READERS["report"]} if quick else READERS
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-hostile-") as name:
        folder = Path(name)
        sound = sound_run(folder / "sound")
        bundle = sound_bundle(sound, folder / "sound.zip")
        for words in (*readers.values(), ("verify", "b.zip")):
            # What is imported when a command is called is imported here.
            with _silent():
                command((words[0], "nowhere", *words[2:]))
        for what, change in RUNS.items():
            if quick and what not in QUICK:
                continue
            place = folder / "place"
            shutil.copytree(sound, place / "run")
            change(place / "run")
            for reader, words in readers.items():
                yield what, reader, quickest(words, place)
            shutil.rmtree(place)
        for what, make in BUNDLES.items():
            if quick and what not in QUICK:
                continue
            place = folder / "place"
            place.mkdir()
            make(bundle, place / "b.zip")
            yield what, "verify", quickest(("verify", "b.zip"), place)
            shutil.rmtree(place)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with (
        Path(os.devnull).open("w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        yield


def mistakes(what: str, reader: str, ended: Ended, *, seconds: float) -> list[str]:
    """What is not as it must be."""
    found = []
    lines = ended.output.splitlines()
    refused = ended.code in (2, 3) and ended.output.startswith("error: ") and len(lines) <= MESSAGE_LIMIT + 1
    if reader == "verify":
        refused |= ended.code == 1
    elif reader != next((name for begin, name in _REFUSED_BY.items() if what.startswith(begin)), "report"):
        # It may have no need of what is hostile.
        refused |= ended.code in (0, 1)
    if not refused or "unexpected" in ended.output:
        found.append(f"it ended with {ended.code}: {ended.output[:300]!r}")
    if max(map(len, lines), default=0) > LONGEST:
        found.append(f"a line has {max(map(len, lines))} characters")
    if ended.seconds > seconds and ended.code not in (0, 141):
        found.append(f"{ended.seconds:.1f} s of processor time; the limit is {seconds:g}")
    if ended.memory > MEMORY:
        found.append(f"{ended.memory >> 20} MiB of memory; the limit is {MEMORY >> 20}")
    return [f"{reader} of {what}: {each}" for each in found]


def main() -> int:
    """Read everything once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of processor time for one command")
    parser.add_argument("--quick", action="store_true", help="a part of them")
    words = parser.parse_args()
    found: list[str] = []
    ends = []
    for what, reader, ended in hostile(quick=words.quick):
        found += mistakes(what, reader, ended, seconds=words.seconds)
        ends.append((ended, f"{reader} of {what}"))
    for line in found:
        sys.stdout.write(f"{line}\n")
    slowest, title = max(ends, key=lambda end: end[0].seconds)
    largest, name = max(ends, key=lambda end: end[0].memory)
    sys.stdout.write(
        f"{len(ends)} commands, {len(found)} mistakes; at most {slowest.seconds:.2f} s ({title}) and "
        f"{largest.memory >> 20} MiB ({name})\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
