"""How many random calls of a plan are in each size regime, counted in the quick and the standard plan of seed 0.

Run as `make bench-regimes [ARGS=--store]` from the checkout; a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.regime_cells import case_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import STANDARD
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import PROFILES
from benchmarks.stored import Rounds, start, store
from tools.markdown import table

NAME = "planned-regimes"
"""Of the stored figures."""
COUNTED = ("quick", "standard")
"""The profiles."""


def counted(name: str) -> Iterator[tuple[str, Counter[str], int]]:
    """By operator: random calls in each regime of a profile's plan, and all of them. A call may be in several."""
    profile, target = PROFILES[name], Target()
    for spec in load_specs().for_product(target.product).values():
        sampler, found = Sampler(spec, target), Counter[str]()
        blocks = stream_block(0, f"{spec.operator}/{target.product}/valid", 0, profile.random)
        for number, choices in enumerate(blocks):
            case = sampler.random_case(choices, number, heavy=profile.heavy, large_calls=profile.heavy)
            found.update(regime.value for regime in case_regimes(case))
        yield spec.operator, found, profile.random


def _measured() -> Rounds:
    rounds: dict[str, tuple[float, ...]] = {}
    for name in COUNTED:
        for operator, found, calls in counted(name):
            rounds[f"{name} calls, {operator}"] = (calls,)
            for regime in STANDARD:
                rounds[f"{name} {regime.value}, {operator}"] = (found[regime.value],)
    return rounds


def shown(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: the regime, then for each profile its calls of all operators and the fewest of one."""
    for what in ("calls", *(regime.value for regime in STANDARD)):
        cells = []
        for name in COUNTED:
            numbers = [int(values[0]) for label, values in rounds.items() if label.startswith(f"{name} {what}, ")]
            cells += [f"{sum(numbers):,}", f"{min(numbers):,}"]
        yield ("all" if what == "calls" else f"`{what}`", *cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.planned_regimes")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    options = parser.parse_args(arguments)
    started = start()
    rounds = _measured()
    columns = ("regime", *(f"{name}{text}" for name in COUNTED for text in ("", ", fewest of an operator")))
    sys.stdout.write("\n".join(table(columns, list(shown(rounds)))) + "\n")
    if options.store:
        store(NAME, rounds, command="make bench-regimes ARGS=--store", started=started, needed=())
    return 0


if __name__ == "__main__":
    sys.exit(main())
