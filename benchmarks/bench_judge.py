"""`make bench-judge`: is the judgement silent on correct implementations, and sharp on those with precision faults?

The exit code is 1 where the bound finds a correct implementation at fault, else 0. Run as
`python -m benchmarks.bench_judge [--quick] [--keep FOLDER] [--write FILE] [OP ...]` from the checkout. A row that was
counted in full is kept, so that a run that was interrupted, or made operator by operator, goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.workers.pool import Surroundings, spread
from benchmarks.judge_kept import Kept
from benchmarks.judge_report import MARK_END, MARK_START, report, row_pages
from benchmarks.judge_rows import Amount, Row, RowCount, count_row, rows
from tools.markdown import between

QUICK = Amount(calls=200, elements=10_000, faulty_cases=40, torch_calls=64)
_SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Task(NamedTuple):
    row: Row
    amount: Amount
    with_torch: bool


def _count(task: _Task, _worker: Surroundings) -> RowCount:
    return count_row(task.row, task.amount, with_torch=task.with_torch)


def measured(
    chosen: Sequence[Row], amount: Amount, *, jobs: int, with_torch: bool, kept: Kept | None = None
) -> list[RowCount]:
    """The counts of rows, in their order, by processes of their own; those that were kept are not made again."""
    for name in _SINGLE_THREADED:
        os.environ[name] = "1"
    found = {row: count for row in chosen if kept is not None and (count := kept.read(row)) is not None}
    if found:
        print(f"{len(found)} of {len(chosen)} rows were counted before", file=sys.stderr)
    start = time.monotonic()
    tasks = [_Task(row, amount, with_torch) for row in chosen if row not in found]
    with contextlib.closing(
        spread(_count, tasks, workers=jobs, lost=lambda task: f"{task.row}: run with fewer --jobs")
    ) as made:
        for count in made:
            found[count.row] = count
            if kept is not None:
                kept.write(count)
            row, minutes = count.row, (time.monotonic() - start) / 60
            print(
                f"{len(found)} of {len(chosen)} after {minutes:.1f} min: {row.operator} {row.dtype} {row.mode}",
                file=sys.stderr,
            )
    return [found[row] for row in chosen]


def put(text: str, file: Path) -> None:
    """Put the tables between the two marks of a file; UsageError where it has none."""
    try:
        made = between(file.read_text(encoding="utf-8"), MARK_START, MARK_END, text.rstrip("\n"))
    except ValueError as error:
        raise UsageError(f"--write: {file}: {error}") from None
    file.write_text(made, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_judge", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls: a minute, and no full counts")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (2)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the plan's cases (0)")
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("build/bench-judge"),
        metavar="FOLDER",
        help="where full counts of rows are kept (build/bench-judge)",
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="put the report between the marks of this file, and the rows below it",
    )
    parser.add_argument("operators", nargs="*", metavar="OP", help="operators (all)")
    options = parser.parse_args(arguments)
    amount = QUICK if options.quick else Amount(seed=options.seed)
    names = {spec.operator for spec in load_specs().select(options.operators)}
    with_torch = importlib.util.find_spec("torch") is not None
    chosen = [row for row in rows() if row.operator in names and (with_torch or row.dtype != "DOUBLE")]
    kept = None if options.quick else Kept(options.keep, amount, with_torch=with_torch)
    counts = measured(chosen, amount, jobs=options.jobs, with_torch=with_torch, kept=kept)
    command = " ".join(["make bench-judge", *(["ARGS=--quick"] if options.quick else [])])
    text = report(counts, command=command)
    below = row_pages(counts)
    print(text, *below.values(), sep="\n")
    for count in counts:
        for example in count.examples:
            print(f"false alarm: {count.row}: {example}")
    if not with_torch:
        print("torch is not installed: its kernels are not among the correct implementations")
    if options.write is not None:
        put(text, options.write)
        folder = options.write.with_suffix("")
        folder.mkdir(exist_ok=True)
        for name, page in below.items():
            (folder / name).write_text(page, encoding="utf-8")
    return 1 if any(count.alarms["bound"] for count in counts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
