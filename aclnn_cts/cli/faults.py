"""`aclnn-cts faults`: how many of the seeded faults the harness finds, and whether it accuses a decoy."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aclnn_cts.cli.options import json_option
from aclnn_cts.cli.output import console, count, emit, note, show_table, table, wrap
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.spec.load import Specs, load_specs

if TYPE_CHECKING:
    from rich.console import Console

    from aclnn_cts.engine.fault_catalogue import Catalogue, Decoy, SeededFault
    from aclnn_cts.engine.kill_matrix import Attempt, KillMatrix
    from aclnn_cts.engine.plan import Profile

__all__ = ["faults"]


@click.command()
@click.option("--fault", "identifier", metavar="ID", help="One fault or decoy alone; shows what it is found by.")
@click.option("--op", "operators", multiple=True, metavar="OP", help="Of these operators alone.")
@click.option(
    "--profile", "profile_name", default="quick", show_default=True, metavar="NAME", help="quick, standard or thorough."
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**63), metavar="S", help="The first seed."
)
@click.option(
    "--seeds", "number", default=1, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="How many seeds."
)
@click.option(
    "--decoy-seeds",
    "decoy_number",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="How many seeds for decoys (as many as for faults).",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="N faults of each class and N decoys, chosen by the seed, and not all.",
)
@click.option(
    "--to-end", is_flag=True, help="Go on to the end of the plan after a fault is found, to count its buckets."
)
@click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1, 256), metavar="N", help="Devices at once."
)
@click.option("--list", "listed", is_flag=True, help="List the catalogue; run nothing.")
@click.option("-o", "--output", "out", metavar="FILE", type=click.Path(path_type=Path), help="Write the kill matrix.")
@json_option
def faults(  # noqa: PLR0913 - one parameter an option
    *,
    identifier: str | None,
    operators: tuple[str, ...],
    profile_name: str,
    seed: int,
    number: int,
    decoy_number: int | None,
    sample: int | None,
    to_end: bool,
    workers: int,
    listed: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Find the faults that are seeded in the software device, and pass its decoys.

    Each fault is run on its own operator's plan until it is found, each decoy to the end. The exit code is 1 where a
    fault survives that is not equivalent to correct behaviour, or a decoy is accused.
    """
    from aclnn_cts.engine.fault_catalogue import read_catalogue  # noqa: PLC0415 - pydantic and the promises
    from aclnn_cts.engine.plan import profile  # noqa: PLC0415

    chosen = profile(profile_name)
    specs = load_specs()
    catalogue = read_catalogue(specs)
    if identifier is not None:
        entry = catalogue.find(identifier)
        if operators and entry.operator not in {specs.find(word, where="--op").operator for word in operators}:
            raise UsageError(f"--fault {identifier}: a fault of {entry.operator}, which --op leaves out")
    seeds = list(range(seed, seed + number))
    decoy_seeds = list(range(seed, seed + (number if decoy_number is None else decoy_number)))
    catalogue = _chosen(catalogue, specs, identifier, operators, sample=sample, seed=seed)
    if listed:
        _list(catalogue, as_json=as_json)
        return 0
    if identifier is not None and number == 1 and out is None and not as_json:
        return _one(catalogue.find(identifier), chosen, seed, specs)
    return _measure(catalogue, chosen, seeds, decoy_seeds, workers=workers, to_end=to_end, out=out, as_json=as_json)


def _chosen(
    catalogue: Catalogue,
    specs: Specs,
    identifier: str | None,
    operators: Sequence[str],
    *,
    sample: int | None,
    seed: int,
) -> Catalogue:
    """The part of the catalogue that the command line asks for."""
    from dataclasses import replace  # noqa: PLC0415

    names = {specs.find(word, where="--op").operator for word in operators} or set(specs)
    entries = [*catalogue.faults.values(), *catalogue.decoys.values()]
    kept = {entry.id for entry in entries if entry.operator in names and identifier in (None, entry.id)}
    if sample is not None:
        kept &= set(_sampled(entries, sample, seed))
    return replace(
        catalogue,
        faults={name: entry for name, entry in catalogue.faults.items() if name in kept},
        decoys={name: entry for name, entry in catalogue.decoys.items() if name in kept},
    )


def _sampled(entries: Iterable[SeededFault | Decoy], number: int, seed: int) -> Iterator[str]:
    """So many ids of each class, those whose hash with the seed is lowest."""
    import hashlib  # noqa: PLC0415

    groups: dict[str, list[str]] = {}
    for entry in entries:
        groups.setdefault(getattr(entry, "fault_class", "decoy"), []).append(entry.id)
    for ids in groups.values():
        yield from sorted(ids, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())[:number]


def _list(catalogue: Catalogue, *, as_json: bool) -> None:
    if as_json:
        for entry in (*catalogue.faults.values(), *catalogue.decoys.values()):
            emit({name: getattr(entry, name) for name in entry.__slots__})
        return
    screen = console()
    made = table("FAULT", "CLASS", "WHAT IT IS")
    for fault in catalogue.faults.values():
        made.add_row(fault.id, fault.fault_class, fault.sentence)
    for decoy in catalogue.decoys.values():
        made.add_row(decoy.id, "decoy", decoy.sentence)
    show_table(screen, made)
    screen.print()
    wrap(screen, f"{count(len(catalogue.faults), 'fault')}, {count(len(catalogue.decoys), 'decoy')}.")


def _one(entry: SeededFault | Decoy, chosen: Profile, seed: int, specs: Specs) -> int:
    """Run one entry here, and show its first failure as a run would."""
    from aclnn_cts.engine.explain import explain  # noqa: PLC0415
    from aclnn_cts.engine.power import FAULT_VARIABLE, Task, attempt  # noqa: PLC0415

    decoy = not hasattr(entry, "fault_class")
    result, record = attempt(Task(id=entry.id, operator=entry.operator, seed=seed, profile=chosen, decoy=decoy), specs)
    screen = console()
    wrap(screen, f"{entry.id}: {entry.sentence}", style="bold")
    if result.errors:
        raise HarnessError(f"{entry.id}: {count(result.errors, 'trial')} could not be judged; see a run with it")
    if record is None:
        wrap(screen, f"Not found in {count(result.cases, 'case')} of the {chosen.name} profile, seed {seed}.")
        equivalent = getattr(entry, "equivalent", "")
        if equivalent:
            wrap(screen, f"It is equivalent to correct behaviour: {equivalent}")
        return 0 if decoy or equivalent else 1
    wrap(
        screen,
        f"{'Accused' if decoy else 'Found'} by {result.promise} ({result.kind}) after {count(result.cases, 'case')}, "
        f"{result.seconds:.1f} s, profile {chosen.name}, seed {seed}:",
    )
    screen.print()
    for line in explain(record, specs[entry.operator]):
        wrap(screen, line)
    screen.print()
    wrap(screen, f"{FAULT_VARIABLE}={entry.id} lets any command with --adapter loopback meet it.")
    return 1 if decoy else 0


def _measure(
    catalogue: Catalogue,
    chosen: Profile,
    seeds: Sequence[int],
    decoy_seeds: Sequence[int],
    *,
    workers: int,
    to_end: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    from aclnn_cts.engine.files import write_atomically  # noqa: PLC0415
    from aclnn_cts.engine.kill_matrix import build_matrix  # noqa: PLC0415
    from aclnn_cts.engine.power import Task, attempts  # noqa: PLC0415

    # What takes longest comes first, so that no worker is left alone with it at the end.
    tasks = [
        Task(id=entry.id, operator=entry.operator, seed=number, profile=chosen, decoy=True)
        for number in decoy_seeds
        for entry in catalogue.decoys.values()
    ]
    tasks += [
        Task(id=entry.id, operator=entry.operator, seed=number, profile=chosen, to_end=to_end)
        for number in seeds
        for entry in catalogue.faults.values()
    ]
    if not tasks:
        raise UsageError("nothing is chosen: no fault and no decoy fits --op, --fault and --sample")
    with contextlib.closing(attempts(tasks, workers=workers)) as results:
        done = list(_shown(results, len(tasks)))
    matrix = build_matrix(catalogue, done, profile=chosen.name, seeds=seeds, decoy_seeds=decoy_seeds, to_end=to_end)
    if out is not None:
        write_atomically(out, matrix.to_json())
    if as_json:
        sys.stdout.write(json.dumps(json.loads(matrix.to_json()), ensure_ascii=False, separators=(",", ":")) + "\n")
    else:
        _show(console(), matrix)
    if matrix.survivors or matrix.accused:
        return 1
    if matrix.errors:
        raise HarnessError(
            f"{count(matrix.errors, 'trial')} could not be judged: the harness or its surroundings failed"
        )
    return 0


def _shown(results: Iterator[Attempt], total: int) -> Iterator[Attempt]:
    """Pass results on, with a bar on a terminal, and a line now and then elsewhere."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

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


def _show(screen: Console, matrix: KillMatrix) -> None:
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
        for text in dict.fromkeys(entry.signature for entry in decoy.accused):
            wrap(screen, text, indent=2)
    screen.print()
    for line in summary_lines(matrix):
        wrap(screen, line)


def summary_lines(matrix: KillMatrix) -> Iterator[str]:
    """What it comes to, in a few lines."""
    from aclnn_cts.engine.kill_matrix import SOON, figures  # noqa: PLC0415

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
            f"found by a promise that was foreseen: {found.foreseen:.1%}; buckets a fault: {found.buckets:.2f} "
            f"(of {where})"
        )
    if matrix.decoys:
        cases = sum(row.cases for row in matrix.decoys)
        yield (
            f"{count(found.decoys, 'decoy')} with {count(len(matrix.decoy_seeds), 'seed')}, {cases:,} cases: "
            f"{found.accused} accused"
        )
