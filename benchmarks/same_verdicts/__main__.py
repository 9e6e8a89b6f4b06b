"""`make same-verdicts BASE=commit`: whether this tree concludes what an earlier commit concluded, as fast as that did.

Both trees are unpacked into a temporary folder and run with the installed packages: quick plans, short campaigns and
the quick kill matrix. Trials are matched by operator, check, case id and their order among equal ones. BASE runs twice:
what it does not conclude twice is listed and not compared. Its results are kept in `build/same-verdicts`.

`names.yaml` says what the trees call the same thing, `expected.yaml` which differences are meant. The exit code is 1
where another verdict differs or a figure is more than 10 % slower.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from aclnn_cts.cli.output import console, count, show_table, table, wrap
from aclnn_cts.core.errors import HarnessError, UsageError
from benchmarks.same_verdicts.jobs import JOBS, Kept, run_jobs
from benchmarks.same_verdicts.rows import Comparison, Difference, Expected, read_expected, unexpected
from benchmarks.same_verdicts.speed import SLOWER, Speed, measure
from benchmarks.same_verdicts.trees import FOLDER, ROOT, commit_of, read_names, unpack, working_tree

SPEED = "speed"
PARTS = (*dict.fromkeys(job.part for job in JOBS), SPEED)
_EXAMPLES = 2
"""Cases that are named of a group of differences."""
_LISTED = 10
"""Unstable results that are listed of a job."""


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make same-verdicts", description=__doc__)
    parser.add_argument("--base", required=True, metavar="COMMIT", help="what the current tree is compared with")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PART,...", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of each benchmark (3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="commands at once (cores)")
    parser.add_argument("--expected", type=Path, default=FOLDER / "expected.yaml", metavar="FILE", help="meant changes")
    parser.add_argument(
        "--kept", type=Path, default=ROOT / "build" / "same-verdicts", metavar="DIR", help="where results of BASE lie"
    )
    options = parser.parse_args(words)
    options.only = options.only.split(",")
    if unknown := [part for part in options.only if part not in PARTS]:
        parser.error(f"--only: {', '.join(unknown)}; expected of {', '.join(PARTS)}")
    return options


def _show_comparison(out: Console, found: Comparison, expected: Sequence[Expected]) -> None:
    differing = sum(map(len, found.differences.values()))
    wrap(
        out,
        f"{found.where}: {found.compared} compared, {differing} differ, {len(found.unstable)} unstable in BASE"
        + (f", {found.moved} in another order" if found.moved else ""),
    )
    for line in found.unstable[:_LISTED]:
        wrap(out, f"unstable in BASE: {line.operator} {line.about} {line.item[:12]}: {line.verdict}", indent=2)
    if len(found.unstable) > _LISTED:
        wrap(out, f"and {len(found.unstable) - _LISTED} more", indent=2)
    changed = {name: pair for name, pair in found.findings.items() if pair[0] != pair[1]}
    if changed:
        texts = (f"{name} {before} to {after}" for name, (before, after) in changed.items())
        wrap(out, f"findings (grouping, not compared): {', '.join(texts)}", indent=2)
    if found.differences:
        _show_differences(out, found, expected)


def _show_differences(out: Console, found: Comparison, expected: Sequence[Expected]) -> None:
    made = table("operator", "check", "was", "now", "number", "cases; why it is meant")
    for item, cases in sorted(found.differences.items()):
        reasons = [entry.reason for entry in expected if entry.matches(item)]
        told = ", ".join(case[:12] if len(case) == 64 else case for case in cases[:_EXAMPLES])
        told = f"{told}; {reasons[0] if reasons else 'NOT EXPECTED'}"
        made.add_row(item.operator.removeprefix("aclnn"), item.check, item.was, item.now, str(len(cases)), told)
    show_table(out, made)


def _show_speed(out: Console, speeds: Sequence[Speed]) -> None:
    made = table("benchmark", "figure", "BASE", "now", "speed over BASE")
    for item in speeds:
        form = ".3f" if item.unit == "seconds" else ",.0f"
        share = item.share.text(".2f") + (f": slower than {SLOWER:g}" if item.is_slower else "")
        unit = "s" if item.unit == "seconds" else "/s"
        made.add_row(item.benchmark, item.name, item.old.text(form, unit), item.new.text(form, unit), share)
    show_table(out, made)


def _slower(speeds: Sequence[Speed]) -> list[Difference]:
    """Slower figures as differences, so that the same file says which are meant."""
    return [
        Difference(SPEED, "", f"{item.benchmark}: {item.name}", "as fast", "slower")
        for item in speeds
        if item.is_slower
    ]


def main(words: Sequence[str]) -> int:
    """Compare, print, and give the exit code."""
    options = _arguments(words)
    names, expected = read_names(), read_expected(options.expected)
    commit, out, start = commit_of(options.base), console(), time.monotonic()
    differences: list[Difference] = []
    with tempfile.TemporaryDirectory(prefix="same-verdicts-") as scratch:
        folder = Path(scratch)
        old = unpack("BASE", commit, folder / "base")
        new = unpack("this tree", working_tree(folder), folder / "new")
        jobs = [job for job in JOBS if job.part in options.only]
        kept = Kept(folder=options.kept, commit=commit)
        for found in run_jobs(jobs, old, new, names=names, kept=kept, cores=options.jobs, done=_progress):
            differences += found.differences
            _show_comparison(out, found, expected)
        if SPEED in options.only:
            speeds = [
                speed
                for name, measured in names.speed.items()
                for speed in measure(name, measured, old, new, rounds=options.rounds, scratch=folder)
            ]
            differences += _slower(speeds)
            _show_speed(out, speeds)
    left = unexpected(differences, expected)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = f"{count(len(left), 'group')} of differences NOT EXPECTED" if left else "no unexpected difference"
    wrap(
        out,
        f"{verdict} from {commit[:12]}, {len(differences) - len(left)} expected; {time.monotonic() - start:.0f} s, "
        f"{spent.ru_utime + spent.ru_stime:.0f} s of processor time on {count(options.jobs, 'core')}",
    )
    return 1 if left else 0


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (UsageError, HarnessError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 3)
