"""How many corners each operator has, how many of them plans visit, and how many pairs of those that they visit.

Run as `make bench-corners [ARGS=--store]` from the checkout; two minutes. Of each operator the first product, seed 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from aclnn_cts.core.target import Target
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
COLUMNS = ("operator", "corners", *(f"{name}: {text}" for name in COUNTED for text in ("visited", "pairs")))


def _measured() -> Rounds:
    rounds: dict[str, tuple[float, ...]] = {}
    for spec in load_specs().values():
        for name in COUNTED:
            profile = PROFILES[name]
            walk = CornerWalk(Sampler(spec, Target(spec.products[0])), seed=0, heavy=profile.heavy)
            for _ in range(profile.corners):
                walk.following()
            rounds[f"{name} corners, {spec.operator}"] = (sum(len(factor.corners) for factor in walk.factors),)
            rounds[f"{name} visited, {spec.operator}"] = (walk.visited,)
            rounds[f"{name} pairs, {spec.operator}"] = (walk.share_of_pairs,)
    return rounds


def shown(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """A row for each operator."""
    operators = dict.fromkeys(label.partition(", ")[2] for label in rounds)
    for operator in operators:
        cells = []
        for name in COUNTED:
            visited, pairs = (rounds[f"{name} {what}, {operator}"][0] for what in ("visited", "pairs"))
            cells += [f"{int(visited)}", f"{pairs:.0%}"]
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
