"""`make soak-hostile`: hostile runs and bundles, hostile adapters, and for the rest of ten minutes mutated files.

Prints how many files of each kind were read and refused. Exit code 1 where a reader raises anything but a documented
error, takes longer than its limit, needs more than 300 MB, or leaves anything in a temporary folder, in shared memory,
open or running; where a hostile adapter takes more than its own call down; and where a hostile run or bundle takes more
than a message, a second and 200 MB. What hangs where no signal reaches it ends the whole with a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import itertools
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import FrameType

from aclnn_cts.core.env import variable_set
from benchmarks.memory import forget_peak, peak, resident
from tests.soak.hostile_adapters import run_hostile_adapters
from tests.support.hostile_files import KINDS, Kind, Prepared, prepared, read_mutated

FILE_SECONDS = 20
"""Longest time for one file by the clock: a report of a small run takes one second where nothing else runs."""
REFUSED_SECONDS = 1.0
"""Of processor time until a file is refused."""
HUNG_SECONDS = 120
"""After which a reader or an adapter that no signal reaches ends the whole."""
GROWTH = 300 << 20
RUNS_SECONDS = 600
"""For all hostile runs and bundles, which take two minutes."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at, not written
OURS = ("aclnn-cts", "hostile-")
SHOWN = 20


class Hang(BaseException):
    """A reader that does not end."""


def main() -> int:
    """Do everything once, then read mutated files for the rest of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="altogether, and of mutated files at least 60")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--readers-only", action="store_true", help="leave hostile runs, bundles and adapters out")
    words = parser.parse_args()
    seed = secrets.randbits(32) if words.seed is None else words.seed
    until = time.monotonic() + words.seconds
    wrong: list[str] = []
    with nothing_left(wrong):
        if not words.readers_only:
            wrong += run_hostile_adapters()
            wrong += _hostile_runs()
        with tempfile.TemporaryDirectory(prefix="aclnn-cts-soak-") as folder:
            seconds = max(until - time.monotonic(), min(60.0, words.seconds))
            wrong += read(KINDS, prepared(Path(folder)), Path(folder, "mutated"), seconds=seconds, seed=seed)
    for line in wrong[:SHOWN]:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(wrong)} mistakes; --seed {seed} repeats the files\n")
    return 1 if wrong else 0


def _hostile_runs() -> list[str]:
    command = [sys.executable, "-m", "tests.soak.hostile_runs"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=RUNS_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [f"hostile runs and bundles were not read within {RUNS_SECONDS} s"]
    sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return [f"hostile runs and bundles: exit code {done.returncode}"] if done.returncode else []


def read(kinds: Sequence[Kind], shared: Prepared, folder: Path, *, seconds: float, seed: int) -> list[str]:
    """Read mutated files of the kinds for so long: what was wrong. `folder` is made, and must be empty at the end."""
    before = signal.signal(signal.SIGALRM, _hang)
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    until = time.monotonic() + seconds
    start, most = resident(), 0
    for number, kind in _turns(kinds):
        if time.monotonic() >= until:
            break
        random = Random(f"{seed}/{number}")  # noqa: S311 - mutations, and no secret
        forget_peak()
        ends[_read_one(kind, random, shared, folder, wrong, where=f"{seed}/{number}")] += 1
        if (grown := peak() - start) > most:
            most = grown
            if most > GROWTH:
                wrong.append(f"{kind.name} {seed}/{number}: the process has grown by {most >> 20} MiB")
    signal.signal(signal.SIGALRM, before)
    if folder.exists():
        wrong += [f"left beside the files: {path.name}" for path in folder.iterdir()]
    for name, count in sorted(ends.items()):
        sys.stdout.write(f"{count:8} {name}\n")
    sys.stdout.write(f"{ends.total()} files, {most >> 20} MiB of growth at most\n")
    return wrong


def _turns(kinds: Sequence[Kind]) -> Iterator[tuple[int, Kind]]:
    """Kinds in turn; what takes a report takes a hundred times as long and comes seldom."""
    for number in itertools.count():
        kind = kinds[number % len(kinds)]
        if kind.name != "evidence" or number % 7 == 0:
            yield number, kind


def _read_one(kind: Kind, random: Random, shared: Prepared, folder: Path, wrong: list[str], *, where: str) -> str:
    faulthandler.dump_traceback_later(HUNG_SECONDS, exit=True, file=2)
    signal.alarm(FILE_SECONDS)
    began, used = time.monotonic(), time.process_time()
    message = ""
    try:
        message = read_mutated(kind, random, shared, folder)
    except Hang:
        end = "hung"
    except Exception as error:  # noqa: BLE001 - whatever comes out is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        wrong.append(f"{kind.name} {where}: {type(error).__name__} at {place.filename}:{place.lineno}: {error!s:.200}")
        end = type(error).__name__
    else:
        end = "refused" if message else "read"
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
    # Where SQLite calls back, what a signal raises becomes a documented error.
    if time.monotonic() - began >= FILE_SECONDS:
        wrong.append(f"{kind.name} {where}: not read within {FILE_SECONDS} s")
    elif message and (used := time.process_time() - used) > REFUSED_SECONDS:
        wrong.append(f"{kind.name} {where}: refused after {used:.1f} s of processor time: {message[:200]}")
    return f"{kind.name}: {end}"


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang


@contextlib.contextmanager
def nothing_left(wrong: list[str]) -> Iterator[None]:
    """Inside, files for a while go to an empty folder; what is left there, in shared memory, open or running is wrong.

    The working directory is another empty folder.
    """
    shared_memory, descriptors, children, here = _names(SHARED_MEMORY), _descriptors(), _children(), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-left-") as name:
        temporary, working = Path(name, "temporary"), Path(name, "working")
        temporary.mkdir()
        working.mkdir()
        before, tempfile.tempdir = tempfile.tempdir, str(temporary)
        path = os.environ.get("PYTHONPATH", "")
        with variable_set("TMPDIR", str(temporary)), variable_set("PYTHONPATH", f"{here}{os.pathsep}{path}"):
            os.chdir(working)
            try:
                yield
            finally:
                os.chdir(here)
                tempfile.tempdir = before
        wrong += [f"left in the temporary folder: {path.name}" for path in temporary.iterdir()]
        wrong += [f"left in the working directory: {path.name}" for path in working.iterdir()]
    # Others on this machine have things there too; what is made here is named so (no worker is, and so no semaphore).
    new = {name for name in _names(SHARED_MEMORY) - shared_memory if name.startswith(OURS)}
    left = sorted(name for name in new if not _in_use(SHARED_MEMORY / name))
    wrong += [f"left in shared memory: {name}" for name in left]
    wrong += [f"left open: {what}" for what in sorted((_descriptors() - descriptors).elements())]
    wrong += [f"left running: process {child}" for child in sorted(_children() - children)]


def _children() -> set[str]:
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


def _descriptors() -> Counter[str]:
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            # Pipes and memory differ by number alone.
            found[str(entry.readlink()).partition(":[")[0]] += 1
    return found


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


if __name__ == "__main__":
    sys.exit(main())
