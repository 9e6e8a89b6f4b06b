"""The page on the harness's own power: the catalogue of seeded faults beside what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aclnn_cts.selftest.fault_catalogue import CLASSES, Catalogue, read_catalogue
from aclnn_cts.selftest.generated_power import FREQUENCY_CALLS, GeneratedMatrix, read_generated
from aclnn_cts.selftest.kill_matrix import SOON, FaultRow, KillMatrix, figures, read_matrix
from aclnn_cts.selftest.kinds import UNCHECKED
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.provenance import MadeBy
from aclnn_cts.trials.plan import PROFILES
from benchmarks import bench_size, corner_mutants, findings, planned_regimes
from benchmarks.bench_gate import COMMANDS, NAME
from benchmarks.stored import FOLDER, provenance, read_figures
from tools.markdown import head, table

POWER = FOLDER / "power"
"""The kill matrix of the release, and what generated mutants showed."""


def power_page(specs: Specs) -> Iterator[str]:
    """The lines of `docs/power.md`."""
    catalogue, matrix = read_catalogue(specs), read_matrix()
    of_device = sum(not entry.mutants for entry in catalogue.faults.values())
    yield from head("adapters/loopback/faults.yaml, benchmarks/figures/power/*.json and benchmarks/figures/*.json")
    yield "# The harness's own power"
    yield ""
    yield (
        f"What does a clean report mean? Only what the harness would have noticed. {len(catalogue.faults)} faults are "
        f"seeded. {of_device} of memory and state are in the [software device](cann.md#the-software-device), behind "
        "the real C interface, each where a programmer would have made the mistake. Those of values, indices and "
        f"checks are mutants of the reference. {len(catalogue.decoys)} decoys are correct implementations that do "
        "something differently, and must not be accused. `aclnn-cts faults --fault <id>` says how a command meets one."
    )
    yield ""
    yield (
        "An entry of the catalogue, with the checks that are foreseen to notice the fault, is written before the "
        "fault is first run; which of them are equivalent was seen afterwards. Nothing that plans, "
        "generates or judges reads the catalogue. Where a fault survives, the "
        "data, the checks or the plan are improved for every implementation, and never for that fault alone."
    )
    yield ""
    yield "```console"
    yield "aclnn-cts faults                              # all of them on the quick profile, survivors first"
    yield "aclnn-cts faults --fault softmax.sign         # one of them, and the failure as a user would see it"
    yield "aclnn-cts faults --list                       # the catalogue"
    yield "aclnn-cts mutants                             # generated mutants, drawn by the commit's hash"
    yield "```"
    yield ""
    yield (
        "`make power` measures the whole on the standard profile, with `SEEDS` and `DECOY_SEEDS` as the numbers of "
        f"seeds. The figures below come from {_seeds(matrix.seeds)} for each fault and "
        f"{_seeds(matrix.decoy_seeds)} for each decoy."
    )
    yield ""
    yield f"The quick profile is the gate. {gate_time()}"
    yield ""
    yield from _figures(matrix)
    yield from _regimes()
    yield from _size()
    yield from _generated()
    yield from _corners()
    yield from _cells(catalogue, matrix, specs)
    yield from _faults(catalogue, matrix)
    yield from _decoys(catalogue, matrix)


def _regimes() -> Iterator[str]:
    yield "## Size regimes of the plans"
    yield ""
    yield (
        "Random calls of all operators in each [size regime](regimes.md), and of the operator that has the fewest. A "
        "call may be in several."
    )
    yield ""
    measured = read_figures(planned_regimes.NAME)
    if measured is None:
        yield "Not counted yet; `make bench-regimes ARGS=--store` does."
    else:
        columns = (text for name in planned_regimes.COUNTED for text in (name, "fewest"))
        yield from table(("regime", *columns), planned_regimes.shown(measured.rounds))
        yield ""
        yield provenance([measured])
    yield ""


def _size() -> Iterator[str]:
    yield "## Cost of large calls"
    yield ""
    yield (
        "CPU time that the harness spends on a softmax call of 2^20 elements, the implementation excluded: the least "
        "of ten rounds. Arrays are made and judged in blocks."
    )
    yield ""
    measured = read_figures(bench_size.NAME)
    if measured is None:
        yield "Not measured yet; `make bench-size ARGS=--store` does."
    else:
        yield from table(bench_size.COST, bench_size.cost_rows(measured.rounds))
        yield ""
        yield "The functions in which most of it is spent, with what they call of NumPy:"
        yield ""
        yield from table(bench_size.FUNCTIONS, bench_size.function_rows(measured.rounds))
        yield ""
        yield provenance([measured])
    yield ""


def _generated() -> Iterator[str]:
    yield "## Generated mutants"
    yield ""
    yield (
        "A generated mutant is the reference with one change. An element of an output is zeroed, doubled, negated, "
        "stale or off by 2 ulp. Two rows or columns are swapped. A contribution of a sum is dropped or added twice. "
        "Operands are rounded to HFLOAT32, BF16 or FLOAT16. A listed check is skipped, or a class of valid calls is "
        "rejected. It misbehaves in every call, or where its trigger fires. Triggers are the remainder of a size, a "
        "threshold, a dtype, a layout, the last block, or two of these."
    )
    yield ""
    yield (
        "Mutants are drawn by the commit's hash, with no code of an operator and apart from what plans calls. A "
        "survivor meets witness calls that the plan does not have. Where nothing leaves the bound in any of them, it "
        "counts as equivalent. A mutant is rare where it fires in fewer than 1 of 100 witness calls. A trigger is "
        f"evaluated on {FREQUENCY_CALLS:,} witness calls, and on more where nothing shows the mutant. Decoys compute "
        "the same in another order."
    )
    yield ""
    matrices = [read_generated(path) for path in sorted(POWER.glob("generated_*.json"))]
    if not matrices:
        yield "Not measured yet; `make power-generated` does."
        yield ""
    for profile in PROFILES:
        found = [matrix for matrix in matrices if matrix.profile == profile]
        if found:
            yield f"### On the {profile} profile"
            yield ""
        for matrix in found:
            yield from _generated_profile(matrix)


def _corners() -> Iterator[str]:
    yield "## Corner mutants"
    yield ""
    yield (
        "A corner mutant is the reference with every output spoiled in the calls at one [corner](corners.md), and "
        "right in all others. The plan knows its corners, so these mutants show only that it judges calls at each of "
        "them. An operator without a row has all of its corner mutants found. Where a corner is named, its calls "
        "compute no values, the document leaves their values open, the spoiled outputs passed, or there is no call."
    )
    yield ""
    for profile, name in corner_mutants.NAMES.items():
        yield f"### Corners on the {profile} profile"
        yield ""
        measured = read_figures(name)
        if measured is None:
            yield f"Not measured yet; `make power-corners ARGS='--profile {profile} --store'` does."
        else:
            yield from table(corner_mutants.COLUMNS, corner_mutants.corner_rows(measured.rounds))
            yield ""
            yield provenance([measured])
        yield ""


def _generated_profile(matrix: GeneratedMatrix) -> Iterator[str]:
    yield made_by_text(matrix.made_by)
    yield ""
    operators = list(dict.fromkeys(row.operator for row in matrix.mutants))
    rows = []
    for name in (*operators, ""):
        mutants = [row for row in matrix.mutants if name in ("", row.operator)]
        decoys = [row for row in matrix.decoys if name in ("", row.operator)]
        rows.append(
            (
                f"`{name}`" if name else "all",
                str(len(mutants)),
                f"{sum(row.equivalent for row in mutants)}, {sum(row.unmet for row in mutants)}",
                *(_share(*matrix.found_and_judged(rare=rare, operator=name)) for rare in (False, True)),
                f"{sum(bool(row.accused) for row in decoys)} of {len(decoys)}" if decoys else "not run",
            )
        )
    columns = (
        "operator",
        "mutants",
        "equivalent, of which no call met",
        "found",
        "found of rare ones",
        "decoys accused",
    )
    yield from table(columns, rows)
    yield ""
    ordinary = [row for row in matrix.mutants if row.change != UNCHECKED]
    most = max((row.witness_calls for row in ordinary), default=0)
    equivalent = sum(row.equivalent for row in ordinary)
    tried = sum(row.equivalent and row.witness_calls == most for row in ordinary)
    yield (
        f"Equivalent apart from skipped checks: {equivalent}, of which {tried} on {most:,} witness calls. At most "
        f"{matrix.witness_values:,} calls in which a survivor fires were judged of the plan, and as many witness "
        "calls. A skipped check has as many witness calls, which all break its rule."
    )
    yield ""
    if not matrix.survivors:
        yield "No mutant survives."
        yield ""
        return
    yield "Survivors, with the calls of the plan that meet the trigger:"
    yield ""
    survivors = (
        (
            f"`{row.id}`",
            row.text,
            "rare" if row.rare else "",
            f"{row.reached:,}",
            "one of them shows it where its values are judged" if row.unjudged else "",
        )
        for row in sorted(matrix.survivors, key=lambda row: (row.rare, row.operator, row.id))
    )
    yield from table(("mutant", "what it does", "", "planned calls", ""), survivors)
    yield ""


def _share(found: int, number: int) -> str:
    return f"{found} of {number}" + (f", {found / number:.1%}" if number else "")


def gate_time() -> str:
    """How long the quick profile takes, as it was last measured."""
    found = read_figures(NAME)
    if found is None:
        return "How long it takes was not measured yet; `make bench-gate ARGS=--store` does."
    times = [f"{found.figure(name).median:.0f} s with `{' '.join(words)}`" for name, words in COMMANDS.items()]
    rounds = len(found.rounds["run"])
    took = f"All operators of the software device took {', and '.join(times)}"
    return f"{took}: medians of {rounds} rounds. {provenance([found])}"


def _figures(matrix: KillMatrix) -> Iterator[str]:
    found = figures(matrix)
    judged = max(found.faults - found.equivalent, 1)
    yield "## What came of them"
    yield ""
    yield (
        f"The {matrix.profile} profile, {_seeds(matrix.seeds)}; decoys: {_seeds(matrix.decoy_seeds)}. Each fault was "
        "run on its own operator's plan until it was found, each decoy to the end."
    )
    yield ""
    yield made_by_text(matrix.made_by)
    yield ""
    rows = (
        ("faults, of which equivalent to correct behaviour", f"{found.faults}, {found.equivalent}"),
        (
            f"found {_with_every(matrix.seeds)}, of those that are not equivalent",
            f"{found.found} of {judged}, {found.found / judged:.1%}",
        ),
        (f"found within {SOON} cases of their operator", f"{found.soon} of {judged}, {found.soon / judged:.1%}"),
        ("found by a check that was foreseen", f"{found.foreseen:.1%}"),
        ("decoys, of which accused", f"{found.decoys}, {found.accused}"),
        ("cases of decoys", f"{sum(row.cases for row in matrix.decoys):,}"),
    )
    yield from table(("figure", "value"), rows)
    yield ""
    yield "## How many findings a fault is"
    yield ""
    yield (
        "A run groups its failures into [findings](finding-cards.md). One fault should be one finding, and two faults "
        "that are switched on together should stay two: most calls that only one of them spoils are in another finding "
        "than most calls that only the other spoils. A pair of which one fault spoils no call without the other is "
        "counted apart, since no run shows that fault alone. A run with one fault tells what it spoils. "
        "The faults are generated mutants of all operators, with a seed that nobody tuned on."
    )
    yield ""
    measured = read_figures(findings.NAME)
    if measured is None:
        yield "Not measured yet; `make bench-findings ARGS=--store` does."
    else:
        shown = [(row.what, row.figure, row.verdict) for row in findings.shown(measured.rounds)]
        yield from table(("figure", "measured", "goal"), shown)
        yield ""
        yield provenance([measured])
    yield ""


def _seeds(seeds: Sequence[int]) -> str:
    """How many they are, and which: `2 seeds (0, 1)`."""
    if not seeds:
        return "no seed"
    return f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''} ({', '.join(map(str, seeds))})"


def _with_every(seeds: Sequence[int]) -> str:
    return "with the one seed" if len(seeds) == 1 else f"with each of the {len(seeds)} seeds"


def made_by_text(made_by: MadeBy | None) -> str:
    """By what the figures were made."""
    if made_by is None:
        return (
            "By which harness, when and on what machine is not known: the stored matrix is of a version that did not "
            "say. `make power` makes it anew."
        )
    facts = {name: fact.value for name, fact in made_by.environment.items()}
    checkout = made_by.checkout
    state = "a commit that is not known"
    if checkout is not None:
        state = f"commit {checkout.commit[:12]}" + ("" if checkout.clean else " with changes")
    took = f"{made_by.seconds:.0f} s" if made_by.seconds < 120 else f"{made_by.seconds / 60:,.0f} minutes"
    return (
        f"Measured on {made_by.started[:10]} in {took} on {facts['machine.cores']} cores "
        f"of an {facts['machine.cpu'] or 'unknown processor'} ({facts['machine.architecture']}) with Python "
        f"{facts['python.version']}, NumPy {facts['library.numpy']}: at {state} by `{made_by.command}`. A "
        "[report](report.md) says whether what plans, generates, calls and judges is still the same."
    )


def _cells(catalogue: Catalogue, matrix: KillMatrix, specs: Specs) -> Iterator[str]:
    """Operators by class."""
    yield "## Operators and classes"
    yield ""
    yield f"Faults found {_with_every(matrix.seeds)}, of those that are not equivalent."
    yield ""
    operators = [name for name in specs if any(entry.operator == name for entry in catalogue.faults.values())]
    rows = (
        (
            f"{name}: {text}",
            *(
                _cell([row for row in matrix.faults if (row.operator, row.fault_class) == (operator, name)])
                or catalogue.empty.get((operator, name), "")
                for operator in operators
            ),
        )
        for name, text in CLASSES.items()
    )
    yield from table(("class", *(name.removeprefix("aclnn") for name in operators)), rows)
    yield ""


def _cell(rows: list[FaultRow]) -> str:
    judged = [row for row in rows if row.equivalent is None]
    return f"{sum(not row.survives for row in judged)} of {len(judged)}" if rows else ""


def _faults(catalogue: Catalogue, matrix: KillMatrix) -> Iterator[str]:
    yield "## Faults"
    yield ""
    median = " (the median of the seeds)" if len(matrix.seeds) > 1 else ""
    yield f"Survivors first, then by the number of cases until found{median}."
    yield ""
    rows = [
        (f"`{row.id}`", row.fault_class, row.sentence, _came(row), f"{row.cases:,.0f}" if row.caught_by else "")
        for row in matrix.faults
    ]
    run = {row.id for row in matrix.faults}
    rows += [
        (f"`{entry.id}`", entry.fault_class, entry.sentence, "not run yet", "")
        for entry in catalogue.faults.values()
        if entry.id not in run
    ]
    yield from table(("fault", "class", "what it is", "found by", "cases"), rows)
    yield ""


def _came(row: FaultRow) -> str:
    caught = ", ".join(f"`{check}`" for check in row.caught_by)
    if row.equivalent is not None:
        return f"equivalent. {row.equivalent}" + (f" Found by {caught} all the same." if caught else "")
    missed = [str(result.seed) for result in row.by_seed if not result.found]
    if missed:
        return f"SURVIVES with seed {', '.join(missed)}" + (f"; else {caught}" if caught else "")
    return caught


def _decoys(catalogue: Catalogue, matrix: KillMatrix) -> Iterator[str]:
    yield "## Decoys"
    yield ""
    by_id = {row.id: row for row in matrix.decoys}
    rows = (
        (
            f"`{entry.id}`",
            entry.sentence,
            entry.why,
            f"{by_id[entry.id].cases:,}" if entry.id in by_id else "not run yet",
            str(len({accusation.seed for accusation in by_id[entry.id].accused})) if entry.id in by_id else "",
        )
        for entry in catalogue.decoys.values()
    )
    yield from table(("decoy", "what it does", "why it is correct", "cases", "seeds that accused it"), rows)
