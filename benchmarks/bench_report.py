"""`make bench-report`: how long a report of many records takes, and how much memory.

Records of a real run of all operators on torch (on the reference where torch is not installed) are written again and
again under other ids until there are enough; then `aclnn-cts report` makes the page. The exit code is 1 where a goal
is missed. Run as `python -m benchmarks.bench_report [--records N] [--seed S]` from the checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.core.verdict import Record
from aclnn_cts.engine.run_directory import RunDirectory
from aclnn_cts.engine.run_writer import create_run

__all__ = ["main", "multiplied"]

GOAL_RECORDS = 100_000
GOAL_SECONDS = 20.0
GOAL_BYTES = 1 << 30
GOAL_PAGE = 10 * 1024 * 1024
_BATCH = 500


def _records(run: RunDirectory, number: int) -> Iterator[list[Record]]:
    """The run's records over and over, each with an id of its own, in batches."""
    with run.results() as results:
        originals = list(results.records())
    batch: list[Record] = []
    for index in range(number):
        record = originals[index % len(originals)]
        identifier = hashlib.sha256(f"{index}".encode()).hexdigest()
        batch.append(msgspec.structs.replace(record, trial_id=identifier))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def multiplied(source: Path, target: Path, number: int) -> None:
    """A run directory of `number` records made from those of another run."""
    run = RunDirectory(source)
    specs = {path.name: path.read_bytes() for path in run.specs()}
    with create_run(target, manifest=run.manifest, specs=specs) as writer:
        for batch in _records(run, number):
            for record in batch:
                writer.summary.plan(record.trial.case.operator, record.trial.case.origin.kind)
            writer.append(batch)
        writer.finish(seconds=1.0)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and say whether the goals are kept."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_report", description=__doc__)
    parser.add_argument("--records", type=int, default=GOAL_RECORDS, metavar="N", help="records (100,000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the run that is multiplied (0)")
    options = parser.parse_args(arguments)
    adapter = "torch" if importlib.util.find_spec("torch") is not None else "reference"
    command = [sys.executable, "-m", "aclnn_cts"]
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-bench-") as name:
        folder = Path(name)
        print(f"a quick run on {adapter}, its records {options.records:,} times in all", file=sys.stderr)
        made = subprocess.run(
            [*command, "run", "--adapter", adapter, "--seed", str(options.seed), "-o", str(folder / "run")],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        if made.returncode > 1:
            return made.returncode
        multiplied(folder / "run", folder / "many", options.records)
        page = folder / "report.html"
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "report", str(folder / "many"), "-o", str(page)], stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            return process.returncode
        processor = usage.ru_utime + usage.ru_stime
        memory = usage.ru_maxrss * 1024
        size = page.stat().st_size
    rows = (
        ("records", f"{options.records:,}", "", True),
        ("processor time", f"{processor:.1f} s", f"{GOAL_SECONDS:.0f} s", processor < GOAL_SECONDS),
        ("time on this machine", f"{seconds:.1f} s", "", True),
        ("memory at most", f"{memory / 2**20:.0f} MiB", f"{GOAL_BYTES / 2**20:.0f} MiB", memory < GOAL_BYTES),
        ("page", f"{size / 2**20:.1f} MiB", f"{GOAL_PAGE / 2**20:.0f} MiB", size < GOAL_PAGE),
    )
    for what, figure, goal, kept in rows:
        print(f"{what:<22}{figure:>12}{f'  goal {goal}' if goal else ''}{'' if kept else '  MISSED'}")
    return 0 if all(kept for *_, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
