"""`make bench-gaming`: which cheats are caught, with how many seeds, and by what.

Each cheat of `tests/gaming/cheats` is put to a naive judge once and to ours with several seeds.
`make bench-gaming ARGS=--store` keeps the figures for `docs/judging-kernels.md`. Run as `python -m benchmarks.gaming`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.stored import Rounds, start, store
from tests.gaming.catalogue import Cheat, caught_by, cheats, judged, passes_naive_judge

NAME = "gaming"
"""Of the stored figures."""
SEEDS = 20
HARMLESS = "harmless"
NAIVE, OURS = "the naive judge accepts", "ours"
TITLES = ("kind", "cheat", "naive judge", "ours")


def measured(chosen: Sequence[Cheat], *, seeds: int) -> Iterator[tuple[Cheat, bool, Counter[str]]]:
    """Each cheat with whether the naive judge accepts it, and how many seeds end in what."""
    for cheat in chosen:
        accepts = passes_naive_judge(cheat)
        yield cheat, accepts, Counter(caught_by(judged(cheat, seed=seed)) for seed in range(seeds))


def rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: the kind of cheat, what it does, and what both judges say."""
    known = {cheat.id: cheat for cheat in cheats()}
    ends: dict[str, list[str]] = defaultdict(list)
    for name, values in rounds.items():
        what, _, identifier = name.rpartition(", ")
        if what.startswith(f"{OURS}: "):
            ends[identifier].append(f"{what.removeprefix(f'{OURS}: ')} ({values[0]:.0f})")
    for identifier, cheat in known.items():
        if identifier in ends:
            accepts = bool(rounds[f"{NAIVE}, {identifier}"][0])
            yield cheat.kind, cheat.sentence, "accepts" if accepts else "rejects", ", ".join(ends[identifier])


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where a cheat is neither caught nor harmless with every seed."""
    parser = argparse.ArgumentParser(prog="benchmarks.gaming", description=__doc__)
    parser.add_argument("--cheat", action="append", metavar="ID", help="such as stale.after_ten_calls")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/judging-kernels.md")
    options = parser.parse_args(arguments)
    started = start()
    chosen = [item for item in cheats() if not options.cheat or item.id in options.cheat]
    rounds: dict[str, tuple[float, ...]] = {"seeds": (float(options.seeds),)}
    missed = 0
    for cheat, accepts, ends in measured(chosen, seeds=options.seeds):
        rounds[f"{NAIVE}, {cheat.id}"] = (float(accepts),)
        rounds |= {f"{OURS}: {end}, {cheat.id}": (float(number),) for end, number in ends.most_common()}
        both = HARMLESS in ends and len(ends) > 1
        missed += both or "inconclusive" in ends or not accepts
        words = ", ".join(f"{end} {number}" for end, number in ends.most_common())
        print(
            f"{cheat.id}: naive {'accepts' if accepts else 'REJECTS'}; {words}{' MISSED' if both else ''}", flush=True
        )
    if options.store:
        store(NAME, rounds, command="make bench-gaming ARGS=--store", started=started, needed=("seeds",))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
