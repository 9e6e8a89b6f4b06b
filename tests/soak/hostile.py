"""`make soak-hostile`: ten minutes of mutated files of every kind, then the hostile adapters.

Prints how many files of each kind were read and refused. Exit code 1 where a reader raises anything but a documented
error, takes longer than its limit, lets the process grow by more than 300 MB, or leaves anything in a temporary folder
or in shared memory; and where a hostile adapter takes more than its own call down.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import os
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType

from tests.soak.hostile_adapters import run_hostile_adapters
from tests.support.hostile_files import KINDS, Kind, Prepared, prepared, read_mutated

FILE_SECONDS = 20
"""Longest time for one file: a report of a small run takes one second where nothing else runs."""
GROWTH = 300 * 1024 * 1024
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at, not written
SHOWN = 20


class Hang(BaseException):
    """A reader that does not end."""


def main() -> int:
    """Read mutated files for the time given, then run the hostile adapters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="of reader fuzzing")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--readers-only", action="store_true", help="leave the hostile adapters out")
    words = parser.parse_args()
    seed = secrets.randbits(32) if words.seed is None else words.seed
    shared_memory = _names(SHARED_MEMORY)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-soak-") as folder:
        # Everything that the readers put aside lies here, so that what is left can be told.
        own = Path(folder, "tmp")
        own.mkdir()
        tempfile.tempdir = str(own)
        shared = prepared(Path(folder))
        wrong += read(shared, Path(folder, "mutated"), seconds=words.seconds, seed=seed)
        wrong += [f"left in the temporary folder: {path.name}" for path in own.iterdir()]
        tempfile.tempdir = None
    if not words.readers_only:
        wrong += run_hostile_adapters()
    left = sorted(name for name in _names(SHARED_MEMORY) - shared_memory if not _in_use(SHARED_MEMORY / name))
    wrong += [f"left in shared memory: {name}" for name in left]
    for line in wrong[:SHOWN]:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(wrong)} mistakes; --seed {seed} repeats the files\n")
    return 1 if wrong else 0


def read(shared: Prepared, folder: Path, *, seconds: float, seed: int) -> list[str]:
    """Read mutated files for so long: what was wrong."""
    signal.signal(signal.SIGALRM, _hang)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    until = time.monotonic() + seconds
    before = 0
    for number, kind in _turns():
        if time.monotonic() >= until:
            break
        random = Random(f"{seed}/{number}")  # noqa: S311 - mutations, and no secret
        ends[_read_one(kind, random, shared, folder, wrong, where=f"{seed}/{number}")] += 1
        if number == len(KINDS) * 20:
            # Imports and caches are done.
            before = _resident()
    growth = _resident() - before if before else 0
    if growth > GROWTH:
        wrong.append(f"the process grew by {growth >> 20} MiB")
    for name, count in sorted(ends.items()):
        sys.stdout.write(f"{count:8} {name}\n")
    sys.stdout.write(f"{ends.total()} files, {growth >> 20} MiB of growth\n")
    return wrong


def _turns() -> Iterator[tuple[int, Kind]]:
    """Kinds in turn; what takes a report takes a hundred times as long and comes seldom."""
    for number in itertools.count():
        kind = KINDS[number % len(KINDS)]
        if kind.name != "evidence" or number % 7 == 0:
            yield number, kind


def _read_one(kind: Kind, random: Random, shared: Prepared, folder: Path, wrong: list[str], *, where: str) -> str:
    signal.alarm(FILE_SECONDS)
    try:
        message = read_mutated(kind, random, shared, folder)
    except Hang:
        wrong.append(f"{kind.name} {where}: not read within {FILE_SECONDS} s")
        return f"{kind.name}: hung"
    except Exception as error:  # noqa: BLE001 - whatever comes out is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        wrong.append(f"{kind.name} {where}: {type(error).__name__} at {place.filename}:{place.lineno}: {error!s:.200}")
        return f"{kind.name}: {type(error).__name__}"
    finally:
        signal.alarm(0)
    return f"{kind.name}: {'refused' if message else 'read'}"


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _in_use(place: Path) -> bool:
    """Whether another process holds the lock of a folder: a run beside this one."""
    try:
        with (place / ".lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return not place.exists()
    return False


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
