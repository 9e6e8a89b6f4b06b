"""`aclnn-cts faults`: how many of the seeded faults the harness finds, and whether it accuses a decoy."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from aclnn_cts.checks.plan import Profile, profile
from aclnn_cts.cli.faults_screen import show_matrix, shown
from aclnn_cts.cli.measurement import (
    Destination,
    min_kill_rate_option,
    operators_option,
    profile_option,
    workers_option,
)
from aclnn_cts.cli.options import command, json_option, output_option
from aclnn_cts.cli.output import console, count, emit, show_rows, wrap
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.fault_words import fault_name
from aclnn_cts.findings.explain import explain
from aclnn_cts.mutants.fault_catalogue import Catalogue, Decoy, SeededFault, read_catalogue
from aclnn_cts.mutants.kill_matrix import MATRIX_FILE, build_matrix
from aclnn_cts.mutants.power import FAULT_VARIABLE, Task, attempt, attempts
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.provenance import Beginning


@command(example="aclnn-cts faults --op softmax_backward --sample 2")
@click.option(
    "--fault",
    "identifiers",
    multiple=True,
    metavar="ID",
    help="Only these faults or decoys; may be given several times. A single one is shown with what finds it.",
)
@operators_option
@profile_option
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**63), metavar="S", help="The first seed."
)
@click.option(
    "--seeds",
    "number",
    default=1,
    show_default=True,
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Number of seeds.",
)
@click.option(
    "--decoy-seeds",
    "decoy_number",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="Number of seeds for decoys (as many as for faults).",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only N faults of each class and N decoys, chosen by the seed.",
)
@min_kill_rate_option(1.0, "Share of the faults that must be found; a short profile may miss some.")
@click.option(
    "--no-early-stop", "to_end", is_flag=True, help="Finish the plan after a fault is found, to count its findings."
)
@workers_option("Devices at once.")
@click.option("--list", "listed", is_flag=True, help="List the catalogue; run nothing.")
@output_option(text="Write the kill matrix.")
@json_option
def faults(  # noqa: PLR0913 - one parameter an option
    *,
    identifiers: tuple[str, ...],
    operators: tuple[str, ...],
    profile_name: str,
    seed: int,
    number: int,
    decoy_number: int | None,
    sample: int | None,
    share: float,
    to_end: bool,
    workers: int,
    listed: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Measure how many seeded faults (mutants) of the software device are found; its decoys must pass.

    Each fault runs on its operator's plan until it is found, each decoy to the end. The exit code is 1 where a decoy is
    accused, or where more faults survive than --min-kill-rate allows. Equivalent faults do not count.
    """
    chosen = profile(profile_name)
    specs = load_specs()
    catalogue = read_catalogue(specs)
    for identifier in identifiers:
        entry = catalogue.find(identifier)
        if operators and entry.operator not in {specs.find(word, where="--op").operator for word in operators}:
            raise UsageError(f"--fault {identifier}: a fault of {entry.operator}, which --op leaves out")
    catalogue = _chosen(catalogue, specs, identifiers, operators, sample=sample, seed=seed)
    if listed:
        _list(catalogue, as_json=as_json)
        return 0
    if len(identifiers) == 1 and number == 1 and out is None and not as_json:
        return _one(catalogue.find(identifiers[0]), chosen, seed, specs)
    destination = Destination(out, as_json=as_json, written_by_us=MATRIX_FILE)
    seeds = range(seed, seed + number)
    decoy_seeds = range(seed, seed + (number if decoy_number is None else decoy_number))
    # What takes longest comes first, so that no worker is left alone with it at the end.
    tasks = [
        *_tasks(catalogue.decoys.values(), chosen, decoy_seeds, to_end=True, decoy=True),
        *_tasks(catalogue.faults.values(), chosen, seeds, to_end=to_end, decoy=False),
    ]
    if not tasks:
        raise UsageError("nothing is chosen: no fault and no decoy fits --op, --fault and --sample")
    beginning = Beginning(click.get_current_context().obj)
    with contextlib.closing(attempts(tasks, workers=workers)) as results:
        done = list(shown(results, len(tasks)))
    matrix = build_matrix(
        catalogue,
        done,
        profile=chosen.name,
        seeds=seeds,
        decoy_seeds=decoy_seeds,
        to_end=to_end,
        made_by=beginning.ended(),
    )
    destination.take(matrix.to_json(), show=lambda screen: show_matrix(screen, matrix))
    judged = sum(row.equivalent is None for row in matrix.faults)
    if matrix.accused or len(matrix.survivors) > (1 - share) * judged:
        return 1
    if matrix.errors:
        raise HarnessError(
            f"{count(matrix.errors, 'trial')} could not be judged: the harness or its surroundings failed"
        )
    return 0


def _chosen(
    catalogue: Catalogue,
    specs: Specs,
    identifiers: Sequence[str],
    operators: Sequence[str],
    *,
    sample: int | None,
    seed: int,
) -> Catalogue:
    """The part of the catalogue that the command line asks for."""
    names = {specs.find(word, where="--op").operator for word in operators} or set(specs)
    entries: list[SeededFault | Decoy] = [*catalogue.faults.values(), *catalogue.decoys.values()]
    kept = {entry.id for entry in entries if entry.operator in names and (not identifiers or entry.id in identifiers)}
    if sample is not None:
        kept &= set(_sampled(entries, sample, seed))
    return replace(
        catalogue,
        faults={name: entry for name, entry in catalogue.faults.items() if name in kept},
        decoys={name: entry for name, entry in catalogue.decoys.items() if name in kept},
    )


def _sampled(entries: Iterable[SeededFault | Decoy], number: int, seed: int) -> Iterator[str]:
    """So many ids of each class, those whose hash with the seed is lowest."""
    groups: dict[str, list[str]] = {}
    for entry in entries:
        groups.setdefault(_class_of(entry), []).append(entry.id)
    for ids in groups.values():
        yield from sorted(ids, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())[:number]


def _class_of(entry: SeededFault | Decoy) -> str:
    return "decoy" if isinstance(entry, Decoy) else entry.fault_class


def _list(catalogue: Catalogue, *, as_json: bool) -> None:
    entries: list[SeededFault | Decoy] = [*catalogue.faults.values(), *catalogue.decoys.values()]
    if as_json:
        for entry in entries:
            emit(entry.model_dump(mode="json"))
        return
    screen = console()
    rows = [(entry.id, _class_of(entry), entry.sentence) for entry in entries]
    show_rows(screen, ("FAULT", "CLASS", "WHAT IT IS"), rows)
    screen.print()
    wrap(screen, f"{count(len(catalogue.faults), 'fault')}, {count(len(catalogue.decoys), 'decoy')}.")


def _one(entry: SeededFault | Decoy, chosen: Profile, seed: int, specs: Specs) -> int:
    """Run one entry here, and show its first failure as a run would."""
    decoy = isinstance(entry, Decoy)
    result, record = attempt(Task(id=entry.id, operator=entry.operator, seed=seed, profile=chosen, decoy=decoy), specs)
    screen = console()
    wrap(screen, f"{entry.id}: {entry.sentence}", style="bold")
    if result.errors and record is None:
        raise HarnessError(f"{entry.id}: {count(result.errors, 'trial')} could not be judged; see a run with it")
    if record is None:
        wrap(screen, f"Not found in {count(result.cases, 'case')} of the {chosen.name} profile, seed {seed}.")
        equivalent = getattr(entry, "equivalent", "")
        if equivalent:
            wrap(screen, f"It is equivalent to correct behaviour: {equivalent}")
        return 0 if decoy or equivalent else 1
    wrap(
        screen,
        f"{'Accused' if decoy else 'Found'} by {result.check} ({fault_name(result.kind)}) "
        f"after {count(result.cases, 'case')}, {result.seconds:.1f} s, profile {chosen.name}, seed {seed}:",
    )
    screen.print()
    for line in explain(record, specs[entry.operator]):
        wrap(screen, line.lstrip(), indent=len(line) - len(line.lstrip()))
    screen.print()
    wrap(screen, f"{FAULT_VARIABLE}={entry.id} lets any command with --adapter loopback meet it.")
    return 1 if decoy else 0


def _tasks(
    entries: Iterable[SeededFault | Decoy], chosen: Profile, seeds: Sequence[int], *, to_end: bool, decoy: bool
) -> Iterator[Task]:
    """Tasks of one operator and seed stand together: their trials are made once."""
    by_operator = sorted(entries, key=lambda entry: entry.operator)
    for seed in seeds:
        for entry in by_operator:
            yield Task(id=entry.id, operator=entry.operator, seed=seed, profile=chosen, decoy=decoy, to_end=to_end)
