"""`aclnn-cts faults`: how many of the seeded faults are found, and what commands that measure the harness share."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from aclnn_cts.cli.options import command, json_option, output_file, output_option
from aclnn_cts.cli.output import console, count, emit, note, wrap
from aclnn_cts.cli.render import Fields, RepeatedView, TableView, TextLine, View, render, show
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import fault_name
from aclnn_cts.findings.explain import explain_record
from aclnn_cts.selftest.fault_catalogue import Catalogue, Decoy, SeededFault, read_catalogue
from aclnn_cts.selftest.kill_matrix import MATRIX_FILE, SOON, Attempt, FaultRow, KillMatrix, build_matrix, figures
from aclnn_cts.selftest.mutated_session import MUTANT_ADAPTER
from aclnn_cts.selftest.power import FAULT_VARIABLE, Task, attempt, attempts
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.output_file import Recognizer
from aclnn_cts.store.provenance import Beginning
from aclnn_cts.trials.plan import Profile, profile

operators_option = click.option("--op", "operators", multiple=True, metavar="OP", help="Only these operators.")
profile_option = click.option(
    "--profile", "profile_name", default="quick", show_default=True, metavar="NAME", help="quick, standard or thorough."
)


def workers_option(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--workers`: so many processes."""
    return click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 256), metavar="N", help=text)


def min_kill_rate_option(default: float, text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--min-kill-rate`: a share."""
    return click.option(
        "--min-kill-rate",
        "share",
        default=default,
        show_default=True,
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help=text,
    )


class Destination:
    """Where a measurement goes: to a file, and as JSON or as text to the screen.

    UsageError where the file is one that must not be replaced, or is the standard output that holds the JSON.
    """

    def __init__(self, out: Path | None, *, as_json: bool, written_by_us: Recognizer) -> None:
        self._output = None if out is None else output_file(out, written_by_us=written_by_us)
        self._as_json = as_json
        self._printed_there = self._output is not None and self._output.is_standard_output
        if self._printed_there and as_json:
            raise UsageError(f"-o {out}: standard output holds what --json prints; name a file, or leave -o out")

    def take(self, document: bytes, view: View, words: Fields) -> None:
        """Write the document where it is wanted, and show it."""
        if self._output is not None:
            self._output.write(document)
        show(json.loads(document), view, words, as_json=self._as_json, errors=self._printed_there)


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
    """Measure how many seeded faults of the software device and of the reference are found; decoys must pass.

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
        done = list(with_progress(results, len(tasks)))
    matrix = build_matrix(
        catalogue,
        done,
        profile=chosen.name,
        seeds=seeds,
        decoy_seeds=decoy_seeds,
        to_end=to_end,
        made_by=beginning.made_by(),
    )
    destination.take(matrix.to_json(), _MATRIX, _words(matrix))
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
            emit(msgspec.to_builtins(entry))
        return
    rows = [{"id": entry.id, "class": _class_of(entry), "sentence": entry.sentence} for entry in entries]
    words = {"rows": rows, "faults": len(catalogue.faults), "decoys": len(catalogue.decoys)}
    render(console(), _CATALOGUE, words)


_CATALOGUE: View = (
    TableView("rows", {"FAULT": "{id}", "CLASS": "{class}", "WHAT IT IS": "{sentence}"}),
    "",
    "{faults:fault}, {decoys:decoy}.",
)


def _one(entry: SeededFault | Decoy, chosen: Profile, seed: int, specs: Specs) -> int:
    """Run one entry here, and show its first failure as a run would."""
    decoy = isinstance(entry, Decoy)
    task = Task(id=entry.id, operator=entry.operator, seed=seed, profile=chosen, subjects=entry.subjects, decoy=decoy)
    result, record = attempt(task, specs)
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
    for line in explain_record(record, specs[entry.operator]):
        wrap(screen, line.lstrip(), indent=len(line) - len(line.lstrip()))
    screen.print()
    if entry.subjects:
        wrap(screen, f"--adapter {MUTANT_ADAPTER},mutant={entry.id} lets any command meet it.")
    else:
        wrap(screen, f"{FAULT_VARIABLE}={entry.id} lets any command with --adapter loopback meet it.")
    return 1 if decoy else 0


def _tasks(
    entries: Iterable[SeededFault | Decoy], chosen: Profile, seeds: Sequence[int], *, to_end: bool, decoy: bool
) -> Iterator[Task]:
    """Tasks of one operator and seed stand together: their trials are made once."""
    by_operator = sorted(entries, key=lambda entry: entry.operator)
    for seed in seeds:
        for entry in by_operator:
            yield Task(
                id=entry.id,
                operator=entry.operator,
                seed=seed,
                profile=chosen,
                subjects=entry.subjects,
                decoy=decoy,
                to_end=to_end,
            )


def with_progress(results: Iterator[Attempt], total: int) -> Iterator[Attempt]:
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


_COLUMNS = {
    "FAULT": "{id}",
    "CLASS": "{class}",
    "FOUND BY": "{found_by}",
    "CASES": "{cases:,.0f}",
    "SECONDS": "{seconds:.1f}",
}
_MATRIX: View = (
    TableView("rows", _COLUMNS),
    RepeatedView(
        "accused", ("ACCUSED {id}: {sentence}", RepeatedView("fingerprints", (TextLine("{value}", indent=2),)))
    ),
    "",
    "{profile} profile, {seeds:seed}: {number:fault}[, {equivalent} equivalent to correct behaviour]",
    TextLine(
        "found with every seed: {found} of {judged} ({found_share:.1%}); within {soon_limit} cases: {soon}"
        " ({soon_share:.1%})"
    ),
    TextLine(
        "{?judged}found by a check that was foreseen: {foreseen:.1%}; findings a fault: {findings:.2f} (of"
        "[{?to_end} whole plans][{!to_end} the failures up to the first])"
    ),
    "{?decoys}{decoys:decoy} with {decoy_seeds:seed}, {decoy_cases:,} cases: {accusations} accused",
)
"""Survivors first, then the decoys that were accused, and what it comes to."""


def _words(matrix: KillMatrix) -> Fields:
    """Figures that follow from those of the document."""
    found = figures(matrix)
    judged = found.faults - found.equivalent
    shares = {"found_share": found.found / judged, "soon_share": found.soon / judged} if judged else {}
    return {
        **shares,
        "rows": [
            {
                "id": row.id,
                "class": row.fault_class,
                "found_by": _found_by(row),
                "cases": row.cases if row.caught_by else None,
                "seconds": row.seconds,
            }
            for row in matrix.faults
        ],
        "accused": [
            {
                "id": row.id,
                "sentence": row.sentence,
                "fingerprints": list(dict.fromkeys(entry.fingerprint for entry in row.accused)),
            }
            for row in matrix.accused
        ],
        "number": found.faults,
        "equivalent": found.equivalent,
        "found": found.found,
        "soon": found.soon,
        "soon_limit": SOON,
        "judged": judged,
        "foreseen": found.foreseen,
        "findings": found.findings,
        "decoy_cases": sum(row.cases for row in matrix.decoys),
        "accusations": found.accused,
    }


def _found_by(row: FaultRow) -> str:
    missed = [str(result.seed) for result in row.by_seed if not result.found]
    found_by = ", ".join(row.caught_by)
    if row.survives:
        return "SURVIVES" + (f" seeds {', '.join(missed)}; else {found_by}" if found_by else "")
    return f"equivalent{'; ' + found_by if found_by else ''}" if missed else found_by
