"""`make bench-kernel-mistakes`: are right kernels of attention and convolution silent, and is each mistake found?

The mistakes of `tests/kernel_mistakes` are judged by quick with several seeds, and by standard with one. The right
kernels make calls of the standard profile, whose results are checked. `ARGS=--store` keeps the figures for
`docs/wrong-kernels/attention-and-convolution.md`. Run as `python -m benchmarks.kernel_mistakes`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from benchmarks.stored import Rounds, start, store
from tests.kernel_mistakes.catalogue import RIGHT, Mistake, alarms, judged, mistakes

NAME = "kernel_mistakes"
"""Of the stored figures."""
SEEDS = 3
CALLS = 5000
GOALS = {"quick": 85, "standard": 97}
"""Percent of the mistakes that a profile finds."""
COMPARED, FAULTS = "calls compared", "faults"
TITLES = ("kernel", "mistake", "quick", "standard")
RIGHT_TITLES = ("kernel", "operator", COMPARED, FAULTS)


def measured(mistake: Mistake, *, seeds: int) -> dict[str, float]:
    """Of how many seeds a profile finds the mistake."""
    found = {
        "quick": sum(judged(mistake, seed=seed, profile="quick").verdict == "fails" for seed in range(seeds)),
        "standard": judged(mistake, seed=0, profile="standard").verdict == "fails",
    }
    return {f"{profile}, {mistake.id}": float(number) for profile, number in found.items()}


def rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: each mistake, and how often it is found."""
    seeds = rounds["seeds"][0]
    for mistake in mistakes():
        if f"quick, {mistake.id}" in rounds:
            quick, standard = (rounds[f"{profile}, {mistake.id}"][0] for profile in GOALS)
            kernel, _, _ = mistake.id.partition(".")
            yield kernel, mistake.sentence, f"{quick:.0f} of {seeds:.0f}", "found" if standard else "not found"


def right_rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: each right kernel by operator, and what its calls came to."""
    for kernel, operators in RIGHT.items():
        for operator in operators:
            of = f"{kernel} as {operator}"
            if f"{COMPARED}, {of}" in rounds:
                counts = (f"{rounds[f'{what}, {of}'][0]:.0f}" for what in (COMPARED, FAULTS))
                yield f"`{kernel}`", f"`{operator}`", *counts


def summary(rounds: Rounds) -> Iterator[str]:
    """How many of the mistakes each profile finds, and the goal; quick counts the mean of its seeds."""
    for profile, goal in GOALS.items():
        seeds = rounds["seeds"][0] if profile == "quick" else 1.0
        shares = [values[0] / seeds for name, values in rounds.items() if name.startswith(f"{profile}, ")]
        if shares:
            share = 100 * sum(shares) / len(shares)
            yield f"Of {len(shares)} mistakes the {profile} profile finds {share:.0f} %; the goal is {goal} %."


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where a fault is found in a right kernel."""
    parser = argparse.ArgumentParser(prog="benchmarks.kernel_mistakes", description=__doc__)
    parser.add_argument("--kernel", action="append", metavar="ID", help="such as attention.BandOffByOne")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--calls", type=int, default=CALLS, help="of each right kernel; 0: none")
    parser.add_argument("--store", action="store_true", help="keep the figures for the page on these mistakes")
    options = parser.parse_args(arguments)
    started = start()
    rounds: dict[str, tuple[float, ...]] = {"seeds": (float(options.seeds),)}
    wrong = 0
    for kernel, operator in ((kernel, item) for kernel, operators in RIGHT.items() for item in operators):
        if options.calls:
            found, compared = alarms(kernel, operator, calls=options.calls, seed=0)
            wrong += len(found)
            rounds |= {f"{COMPARED}, {kernel} as {operator}": (float(compared),)}
            rounds |= {f"{FAULTS}, {kernel} as {operator}": (float(len(found)),)}
            print(f"{kernel} as {operator}: {compared} calls compared, {len(found)} faults {found[:3]}", flush=True)
    for mistake in mistakes():
        if not options.kernel or mistake.id in options.kernel:
            figures = measured(mistake, seeds=options.seeds)
            rounds |= {name: (value,) for name, value in figures.items()}
            print(", ".join(f"{name} {value:.0f}" for name, value in figures.items()), flush=True)
    print("\n".join(summary(rounds)))
    if options.store:
        command = f"make bench-kernel-mistakes ARGS='{' '.join(arguments)}'"
        store(NAME, rounds, command=command, started=started, needed=("seeds",))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
