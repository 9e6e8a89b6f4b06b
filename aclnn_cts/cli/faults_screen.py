"""What `aclnn-cts faults` shows: a bar while it measures, and the kill matrix at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from aclnn_cts.cli.output import count, note, show_table, table, wrap
from aclnn_cts.mutants.fault_attempt import Attempt
from aclnn_cts.mutants.kill_matrix import SOON, KillMatrix, figures


def shown(results: Iterator[Attempt], total: int) -> Iterator[Attempt]:
    """Pass results on, with a bar on a terminal, and a line now and then elsewhere."""
    columns = (
        TextColumn("faults and decoys"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=total)
        for number, result in enumerate(results, start=1):
            bar.update(task, completed=number, description=result.id)
            if not sys.stderr.isatty() and (number % 50 == 0 or number == total):
                note(f"{number} of {total}")
            yield result


def show_matrix(screen: Console, matrix: KillMatrix) -> None:
    """Print a matrix, survivors first, then the decoys that were accused, and what it comes to."""
    made = table("FAULT", "CLASS", "FOUND BY", "CASES", "SECONDS")
    for row in matrix.faults:
        missed = [result.seed for result in row.by_seed if not result.found]
        found_by = ", ".join(row.caught_by)
        if row.survives:
            found_by = "SURVIVES" + (f" seeds {', '.join(map(str, missed))}; else {found_by}" if found_by else "")
        elif missed:
            found_by = f"equivalent{'; ' + found_by if found_by else ''}"
        made.add_row(
            row.id, row.fault_class, found_by, f"{row.cases:,.0f}" if row.caught_by else "", f"{row.seconds:.1f}"
        )
    show_table(screen, made)
    for decoy in matrix.accused:
        wrap(screen, f"ACCUSED {decoy.id}: {decoy.sentence}")
        for text in dict.fromkeys(entry.fingerprint for entry in decoy.accused):
            wrap(screen, text, indent=2)
    screen.print()
    for line in _summary(matrix):
        wrap(screen, line)


def _summary(matrix: KillMatrix) -> Iterator[str]:
    """What it comes to, in a few lines."""
    found = figures(matrix)
    judged = found.faults - found.equivalent
    equal = f", {found.equivalent} equivalent to correct behaviour" if found.equivalent else ""
    yield f"{matrix.profile} profile, {count(len(matrix.seeds), 'seed')}: {count(found.faults, 'fault')}{equal}"
    if judged:
        yield (
            f"found with every seed: {found.found} of {judged} ({found.found / judged:.1%}); "
            f"within {SOON} cases: {found.soon} ({found.soon / judged:.1%})"
        )
        where = "whole plans" if matrix.to_end else "the failures up to the first"
        yield (
            f"found by a check that was foreseen: {found.foreseen:.1%}; findings a fault: {found.findings:.2f} "
            f"(of {where})"
        )
    if matrix.decoys:
        cases = sum(row.cases for row in matrix.decoys)
        yield (
            f"{count(found.decoys, 'decoy')} with {count(len(matrix.decoy_seeds), 'seed')}, {cases:,} cases: "
            f"{found.accused} accused"
        )
