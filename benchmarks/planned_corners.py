"""How many corners each operator has, how many of them plans visit, and how many of the feasible pairs.

Run as `make bench-corners [ARGS=--store]` from the checkout; half an hour. Of each operator the first product, seed 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.generate.corner_list import corner_text
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import PROFILES
from benchmarks.stored import Rounds, start, store
from tools.markdown import table

NAME = "planned-corners"
"""Of the stored figures."""
COUNTED = ("quick", "standard")
"""The profiles."""
_HEAVY = corner_text("regime", Regime.HEAVY.value)
COLUMNS = ("operator", "corners", *(f"{name}: visited, pairs" for name in COUNTED))


def walked(sampler: Sampler, name: str, *, seed: int = 0) -> CornerWalk:
    """The walk of a profile's plan, to its end."""
    profile = PROFILES[name]
    walk = CornerWalk(sampler, seed=seed, heavy=profile.heavy)
    for _ in range(profile.corners):
        walk.next_call()
    return walk


def shares_of_pairs(walks: Mapping[str, CornerWalk], other: CornerWalk) -> dict[str, float]:
    """Of the feasible pairs, those that the walk of each profile has had.

    Feasible is what one of these walks has had, or another of a longer profile; of a profile without the regime
    `heavy`, what has no corner of it.
    """
    found = {name: walk.pairs() for name, walk in walks.items()}
    feasible = other.pairs().union(*found.values())
    return {
        name: len(pairs) / sum(PROFILES[name].heavy or _HEAVY not in pair for pair in feasible)
        for name, pairs in found.items()
    }


def _measured() -> Rounds:
    rounds: dict[str, tuple[float, ...]] = {}
    for spec in load_specs().values():
        sampler = Sampler(spec, Target(spec.products[0]))
        walks = {name: walked(sampler, name) for name in COUNTED}
        shares = shares_of_pairs(walks, walked(sampler, COUNTED[-1], seed=1))
        for name, walk in walks.items():
            rounds[f"{name} corners, {spec.operator}"] = (sum(len(factor.corners) for factor in walk.factors),)
            rounds[f"{name} visited, {spec.operator}"] = (walk.visited,)
            rounds[f"{name} pairs, {spec.operator}"] = (shares[name],)
    return rounds


def shown(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """A row for each operator."""
    operators = dict.fromkeys(label.partition(", ")[2] for label in rounds)
    for operator in operators:
        cells = []
        for name in COUNTED:
            visited, pairs = (rounds[f"{name} {what}, {operator}"][0] for what in ("visited", "pairs"))
            cells.append(f"{int(visited)}, {pairs:.0%}")
        yield (operator.removeprefix("aclnn"), f"{int(rounds[f'{COUNTED[0]} corners, {operator}'][0])}", *cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.planned_corners")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/corners.md (then: make docs)")
    options = parser.parse_args(arguments)
    started = start()
    rounds = _measured()
    sys.stdout.write("\n".join(table(COLUMNS, list(shown(rounds)))) + "\n")
    if options.store:
        store(NAME, rounds, command="make bench-corners ARGS=--store", started=started, needed=())
    return 0


if __name__ == "__main__":
    sys.exit(main())
