"""`make bench-formula`: how fast formulas judge, beside the oracles of the same operators that are written by hand.

Random calls of the quick plan on the reference are planned, made, performed and judged, once with each oracle in turn.
A round has the plan of its own seed. `make bench-formula ARGS=--store` keeps the figures for
`docs/adding-an-operator.md` (then: `make docs`). From the checkout: `OPENBLAS_NUM_THREADS=1 python -m
benchmarks.bench_formula`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from unittest import mock

from aclnn_cts.cli.output import console, wrap
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.oracles import registry
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, Part
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.measure import interleave, stay_on_one_core
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, start, store
from benchmarks.tables import Column, ratios, short_name, show_operators

NAME = "formula"
"""Of the stored figures."""
FORMULA, BY_HAND = "judged by the formula", "judged by the oracle"
GOAL = 0.7
"""Of the judged calls a second that the oracle has."""


def shown(rounds: Rounds) -> Iterator[Row]:
    """The share of each operator, beside the goal."""
    for operator, share in ratios(rounds, FORMULA, BY_HAND).items():
        yield row(short_name(operator), share, ".2f", least=GOAL)


def both_ways(specs: Specs) -> list[Spec]:
    """The operators that have a formula and an oracle that is written by hand."""
    modules = [(spec, registry.load_module(spec.stem)) for spec in specs.values()]
    return [spec for spec, module in modules if hasattr(module, "expected") and hasattr(module, "FORMULA")]


def measured(specs: Specs, chosen: Sequence[Spec], rounds: int, *, target: Target) -> Rounds:
    """Judged calls a second by the formula, and by the oracle."""
    found = {}
    with open_host("reference", target=target, specs=specs) as host:
        for spec in chosen:
            formula, by_hand = benches(specs, spec, host, target=target)
            for name, figure in zip(
                (FORMULA, BY_HAND), interleave((judged(formula, spec), judged(by_hand, spec)), rounds), strict=True
            ):
                found[f"{name}, {spec.operator}"] = figure.values
    return found


def benches(specs: Specs, spec: Spec, host: SessionHost, *, target: Target) -> tuple[Bench, Bench]:
    """One whose judge of an operator has its formula alone, and one whose judge has all that its module states."""
    settings = BenchSettings(adapter="reference", target=target)
    formula, by_hand = (Bench(specs=specs, host=host, settings=settings) for _ in range(2))
    alone = SimpleNamespace(FORMULA=registry.load_formula(spec.stem))
    with mock.patch.object(registry, "load_module", return_value=alone):
        formula.judge(spec)
    return formula, by_hand


def judged(bench: Bench, spec: Spec) -> Callable[[int], int]:
    """Plan, make, perform and judge the random calls of the quick plan of a seed; gives how many have a verdict."""
    part = Part(spec.operator, "values", "valid", count=PROFILES["quick"].random)

    def work(seed: int) -> int:
        records = [record for batch in bench.run(bench.expand(part, seed=seed)) for record in batch.records]
        return sum(record.verdict.result in (Result.PASSED, Result.FAILED) for record in records)

    return work


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_formula", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of each measurement (7)")
    parser.add_argument("--store", action="store_true", help="keep the figures for the page (then: make docs)")
    options = parser.parse_args(arguments)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("NumPy's threads share one core here: set OPENBLAS_NUM_THREADS=1, as `make bench-formula` does")
    target = Target()
    specs = load_specs().for_product(target.product)
    out, started = console(), start()
    wrap(out, f"{started.text}; {target.product}; rates are by processor time, on one core")
    out.print()
    freeze_objects()  # as `aclnn-cts run` does
    stay_on_one_core()
    rounds = measured(specs, both_ways(specs), options.rounds, target=target)
    columns = [Column(title="formula", name=FORMULA), Column(title="by hand", name=BY_HAND)]
    title = "Judged calls a second of the quick plan's random calls, reference adapter"
    show_operators(out, title, [*columns, Column(title="ratio", name=FORMULA, over=BY_HAND, form=".2f")], rounds)
    show_rows(out, list(shown(rounds)))
    if options.store:
        command = f"make bench-formula ARGS='--rounds {options.rounds} --store'"
        store(NAME, rounds, command=command, started=started, needed=(FORMULA, BY_HAND))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
