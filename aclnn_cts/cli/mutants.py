"""`aclnn-cts mutants`: how many generated mutants the harness finds, and whether it accuses a correct variant."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import click

from aclnn_cts.cli.faults import (
    Destination,
    min_kill_rate_option,
    operators_option,
    profile_option,
    workers_option,
)
from aclnn_cts.cli.options import command, json_option, output_option
from aclnn_cts.cli.output import console, count, emit, note
from aclnn_cts.cli.render import Fields, RepeatedView, TableView, TextLine, View, render
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.selftest.generated_power import (
    MUTANTS_FILE,
    DecoyResult,
    GeneratedMatrix,
    MutantResult,
    OperatorTask,
    Wanted,
    measurements,
    population,
)
from aclnn_cts.selftest.kinds import describe_mutant
from aclnn_cts.selftest.mutated_session import MUTANT_ADAPTER
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.store.provenance import Beginning, checkout
from aclnn_cts.trials.plan import profile


@command(example="aclnn-cts mutants --op softmax_backward --number 12")
@operators_option
@click.option(
    "--mutant", "ids", multiple=True, metavar="ID", help="Only these mutants or decoys; may be given several times."
)
@profile_option
@click.option("--seed", metavar="TEXT", help="Seed of the mutants; default: the commit's hash.")
@click.option(
    "--plan-seed", default=0, show_default=True, type=click.IntRange(0, 2**63), metavar="S", help="Seed of the plan."
)
@click.option(
    "--number", default=36, show_default=True, type=click.IntRange(1, 9999), metavar="N", help="Mutants per operator."
)
@click.option(
    "--decoys",
    "decoy_number",
    default=6,
    show_default=True,
    type=click.IntRange(0, 6),
    metavar="N",
    help="Decoys per operator; the first is the reference as it is.",
)
@click.option(
    "--witness-calls",
    default=100_000,
    show_default=True,
    type=click.IntRange(1, 10**7),
    metavar="N",
    help="Calls outside the plan on which the trigger of a mutant is evaluated that nothing shows.",
)
@click.option(
    "--witness-values",
    default=500,
    show_default=True,
    type=click.IntRange(1, 10**6),
    metavar="N",
    help="Calls judged at most to show that a survivor changes a value.",
)
@min_kill_rate_option(0.9, "Share of the mutants that must be found; rare and equivalent ones do not count.")
@workers_option("Processes.")
@click.option("--list", "listed", is_flag=True, help="List the mutants and decoys; run nothing.")
@output_option(text="Write the measurement.")
@json_option
def mutants(  # noqa: PLR0913 - one parameter an option
    *,
    operators: tuple[str, ...],
    ids: tuple[str, ...],
    profile_name: str,
    seed: str | None,
    plan_seed: int,
    number: int,
    decoy_number: int,
    witness_calls: int,
    witness_values: int,
    share: float,
    workers: int,
    listed: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Measure how many generated mutants are found; generated decoys must pass.

    A mutant is the reference with one change, in every call or where a trigger fires. A decoy is a correct
    implementation that computes in another order. The exit code is 1 where a decoy is accused, or where fewer
    mutants are found than --min-kill-rate asks for.
    """
    specs = load_specs()
    wanted = Wanted(
        profile=profile(profile_name),
        seed=_commit() if seed is None else seed,
        plan_seed=plan_seed,
        count=number,
        decoys=decoy_number,
        witness_calls=witness_calls,
        witness_values=witness_values,
    )
    names = [specs.find(word, where="--op").operator for word in operators] or list(specs)
    tasks = [OperatorTask(operator=name, wanted=wanted, ids=ids or None) for name in dict.fromkeys(names)]
    tasks = _known(tasks, specs, ids)
    note(f"mutants of seed {wanted.seed}; `--seed {wanted.seed}` repeats them")
    if listed:
        _list(tasks, specs, as_json=as_json)
        return 0
    return _measure(tasks, wanted, share=share, workers=workers, out=out, as_json=as_json)


def _commit() -> str:
    """The hash of the commit that is measured."""
    found = checkout()
    if found is None:
        raise UsageError("--seed: this installation is no checkout, so there is no commit to take it from; give a text")
    return found.commit


def _known(tasks: Sequence[OperatorTask], specs: Specs, ids: Sequence[str]) -> list[OperatorTask]:
    """The tasks that have some of the ids, all of them without ids; UsageError for an id that none has."""
    if not ids:
        return list(tasks)
    known = {
        task.operator: {item.id for group in population(specs[task.operator], task.wanted) for item in group}
        for task in tasks
    }
    for identifier in ids:
        if not any(identifier in names for names in known.values()):
            raise UsageError(
                f"--mutant {quote(identifier)}: no operator here has it; `aclnn-cts mutants --list` shows all, "
                "and --number says how many there are"
            )
    return [task for task in tasks if known[task.operator].intersection(ids)]


def _list(tasks: Sequence[OperatorTask], specs: Specs, *, as_json: bool) -> None:
    rows: list[Fields] = []
    for task in tasks:
        found, decoys = population(specs[task.operator], task.wanted, ids=task.ids)
        mine = [(item.id, item.kind, describe_mutant(item)) for item in found]
        mine += [(item.id, "decoy", item.text()) for item in decoys]
        rows += [{"id": name, "operator": task.operator, "change": change, "text": text} for name, change, text in mine]
    for row in rows if as_json else ():
        emit(row)
    if not as_json:
        render(
            console(),
            (TableView("rows", {"ID": "{id}", "CHANGE": "{change}", "WHAT IT DOES": "{text}"}),),
            {"rows": rows},
        )


def _measure(
    tasks: Sequence[OperatorTask], wanted: Wanted, *, share: float, workers: int, out: Path | None, as_json: bool
) -> int:
    destination = Destination(out, as_json=as_json, written_by_us=MUTANTS_FILE)
    beginning = Beginning(click.get_current_context().obj)
    results: list[MutantResult | DecoyResult] = []
    with contextlib.closing(measurements(tasks, workers=workers)) as found:
        for number, done in enumerate(found, start=1):
            results += done
            note(f"{number} of {count(len(tasks), 'operator')}")
    places = {task.operator: place for place, task in enumerate(tasks)}
    results.sort(key=lambda row: places[row.operator])
    matrix = GeneratedMatrix(
        profile=wanted.profile.name,
        seed=wanted.seed,
        plan_seed=wanted.plan_seed,
        witness_values=wanted.witness_values,
        made_by=beginning.made_by(),
        mutants=tuple(row for row in results if isinstance(row, MutantResult)),
        decoys=tuple(row for row in results if not isinstance(row, MutantResult)),
    )
    destination.take(matrix.to_json(), _MATRIX, _words(matrix))
    killed, judged = matrix.found_and_judged(rare=False)
    if matrix.accused or killed < share * judged:
        return 1
    if errors := sum(row.errors for row in matrix.decoys):
        raise HarnessError(f"{count(errors, 'trial')} of decoys could not be judged")
    return 0


_MATRIX: View = (
    TableView(
        "survivors",
        {
            "SURVIVOR": "{id}",
            "WHAT IT DOES": "{text}[{?rare} (rare)]",
            "PLANNED CALLS": "{reached:,}[{?unjudged} (values not judged there)]",
            "WITNESS CALLS": "{fired:,} of {witness_calls:,}",
        },
    ),
    "{?survivors}",
    RepeatedView("accused", ("ACCUSED {id}: {text}", RepeatedView("fingerprints", (TextLine("{value}", indent=2),)))),
    TextLine(
        "{profile} profile, seed {seed}: {mutants:mutant}, {equivalent} equivalent in all calls that were judged (no"
        " call met {unmet} of them)"
    ),
    RepeatedView("rates", ("{?judged}{words}: {killed} of {judged} ({share:.1%})",)),
    "{?decoys}{decoys:decoy}, {cases:,} cases: {accusations} accused",
    "--adapter {adapter},mutant={first},seed={seed} lets any command meet the first survivor.",
)


def _words(matrix: GeneratedMatrix) -> Fields:
    """Figures that follow from those of the document."""
    equivalent = [row for row in matrix.mutants if row.equivalent]
    rates = {
        "found": matrix.found_and_judged(rare=False),
        "found of those that fire in fewer than 1 of 100 witness calls": matrix.found_and_judged(rare=True),
    }
    return {
        "survivors": [
            {
                "id": row.id,
                "text": row.text,
                "rare": row.rare,
                "reached": row.reached,
                "unjudged": row.unjudged,
                "fired": row.fired,
                "witness_calls": row.witness_calls,
            }
            for row in matrix.survivors
        ],
        "accused": [{"id": row.id, "text": row.text, "fingerprints": list(row.fingerprints)} for row in matrix.accused],
        "equivalent": len(equivalent),
        "unmet": sum(row.unmet for row in equivalent),
        "rates": [
            {"words": words, "killed": killed, "judged": judged, "share": killed / judged if judged else 0.0}
            for words, (killed, judged) in rates.items()
        ],
        "cases": sum(row.cases for row in matrix.decoys),
        "accusations": len(matrix.accused),
        "adapter": MUTANT_ADAPTER,
        "first": matrix.survivors[0].id if matrix.survivors else None,
    }
