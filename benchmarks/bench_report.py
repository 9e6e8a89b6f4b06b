"""`make bench-report`: how long a report of many records takes, and how much memory.

Records of a real run of all operators on torch (on the reference where torch is not installed) are written again and
again under other ids until there are enough; then `aclnn-cts report` makes the page, once a round. The exit code is 1
where a goal is missed, and 0 where `make bench-report ARGS=--store` keeps the figures for docs/report.md, which then
says so (`make docs`). Run as `python -m benchmarks.bench_report [--records N] [--rounds N]` from the checkout.
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

from aclnn_cts.cli.output import console
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.verdict import Record
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_writer import create_run
from benchmarks.measure import Figure
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, start, store

NAME = "report"
"""Of the stored figures."""

PROCESSOR, CLOCK, MEMORY, PAGE = NEEDED = ("processor seconds", "wall seconds", "memory MiB", "page MiB")
GOAL_RECORDS = 100_000
_BATCH = 500


def shown(rounds: Rounds) -> Iterator[Row]:
    """What a page takes, beside its goals."""
    figures = {name: Figure(tuple(values)) for name, values in rounds.items()}
    yield row("processor time", figures[PROCESSOR], ".1f", unit="s", most=20)
    yield row("the same by the clock", figures[CLOCK], ".1f", unit="s")
    yield row("memory at most", figures[MEMORY], unit="MiB", most=1024)
    yield row("page", figures[PAGE], ".1f", unit="MiB", most=10)


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


def _page(run: Path, page: Path) -> dict[str, float]:
    """Make the page of a run, and say what that took."""
    command = [sys.executable, "-m", "aclnn_cts", "report", str(run), "-o", str(page)]
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            last = said.read().decode(errors="replace").strip()[-500:]
            raise HarnessError(f"{' '.join(command)}: exit code {process.returncode}: {last}")
    return {
        PROCESSOR: usage.ru_utime + usage.ru_stime,
        CLOCK: seconds,
        MEMORY: usage.ru_maxrss / 1024,
        PAGE: page.stat().st_size / 2**20,
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, print, store where that is asked for, and say whether the goals are kept."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_report", description=__doc__)
    parser.add_argument("--records", type=int, default=GOAL_RECORDS, metavar="N", help="records (100,000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (3)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the run that is multiplied (0)")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/report.md (then: make docs)")
    options = parser.parse_args(arguments)
    has_torch = importlib.util.find_spec("torch") is not None
    if options.store and (options.records != GOAL_RECORDS or not has_torch):
        parser.error(f"--store keeps the figures of {GOAL_RECORDS:,} records of torch: no other number, and have torch")
    adapter, started = "torch" if has_torch else "reference", start()
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-bench-") as name:
        folder = Path(name)
        print(f"a quick run on {adapter}, its records {options.records:,} times in all", file=sys.stderr)
        words = ["run", "--adapter", adapter, "--seed", str(options.seed), "-o", str(folder / "run")]
        made = subprocess.run([sys.executable, "-m", "aclnn_cts", *words], check=False, stdout=subprocess.DEVNULL)
        if made.returncode > 1:
            return made.returncode
        multiplied(folder / "run", folder / "many", options.records)
        turns = [_page(folder / "many", folder / "report.html") for _ in range(options.rounds)]
    rounds = {what: tuple(turn[what] for turn in turns) for what in NEEDED}
    rows = list(shown(rounds))
    show_rows(console(), rows)
    if options.store:
        command = f"make bench-report ARGS='--rounds {options.rounds} --store'"
        store(NAME, rounds, command=command, started=started, needed=NEEDED)
        return 0  # the page says what is missed
    return 1 if any(item.missed for item in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
