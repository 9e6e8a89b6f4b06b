"""How many corners each operator has, how many of them plans visit, and how many of the feasible pairs.

Run as `make bench-corners [ARGS=--store]` from the checkout; an hour. Of each operator the first product.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from aclnn_cts.core.target import Target
from aclnn_cts.generate.corner_recording import LONGER_CALLS
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.plan import PROFILES, corner_calls
from benchmarks.stored import Rounds, start, store
from tools.markdown import table

NAME = "planned-corners"
"""Of the stored figures."""
COUNTED = ("quick", "standard")
"""The profiles."""
_SEEDS = (2, 3)
"""Of the plan and of the other walk: not those by which `spec corners --record` chooses how many calls quick has."""
COLUMNS = ("operator", "corners", *(f"{name}: visited, pairs" for name in COUNTED))


def share_of_pairs(walk: CornerWalk, other: CornerWalk) -> float:
    """Of the feasible pairs, those that a plan's walk has had: feasible is what it has had, or another walk."""
    pairs = walk.pairs()
    return len(pairs) / len(pairs | other.pairs())


def _measured() -> Rounds:
    rounds: dict[str, tuple[float, ...]] = {}
    for spec in load_specs().values():
        product = spec.products[0]
        sampler = Sampler(spec, Target(product))
        for name in COUNTED:
            profile = PROFILES[name]
            calls = corner_calls(spec, product, profile)
            walk, other = (CornerWalk(sampler, seed=seed, heavy=profile.heavy) for seed in _SEEDS)
            for _ in range(calls):
                walk.next_call()
            for _ in range(max(calls, LONGER_CALLS)):
                other.next_call()
            rounds[f"{name} corners, {spec.operator}"] = (sum(len(factor.corners) for factor in walk.factors),)
            rounds[f"{name} visited, {spec.operator}"] = (walk.visited,)
            rounds[f"{name} pairs, {spec.operator}"] = (share_of_pairs(walk, other),)
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
