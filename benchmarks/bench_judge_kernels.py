"""`make bench-judge-kernels`: how long a hundred candidates take, half of them wrong, and one that hangs.

`aclnn-cts judge … --workers 2 --json` judges the candidates of `benchmarks/softmax_candidates.py`, one command an
operator. `ARGS=--store` keeps the figures for `docs/judging-kernels.md`. Run as `python -m
benchmarks.bench_judge_kernels`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import softmax_candidates
from benchmarks.stored import Rounds, start, store

NAME = "judge_kernels"
"""Of the stored figures."""
WALL, WRONG, RIGHT = "a hundred candidates, s", "a wrong candidate, median s", "a right candidate, median s"
HANGING = "a hanging candidate, s beyond its budget"
OTHERWISE = "candidates with another verdict than expected"
GOALS = {WALL: 180.0, WRONG: 1.0, RIGHT: 4.0, HANGING: 1.0, OTHERWISE: 0.0}
OPERATORS = ("softmax_backward", "log_softmax_backward")
TITLES = ("what", "measured", "goal")
_WORKERS = 2
_BUDGET = 2
"""Seconds for the candidate that hangs."""
_FILE = Path(softmax_candidates.__file__)
_HANGS = _FILE.parent.parent / "tests" / "candidates" / "kernels.py"


def rows(rounds: Rounds) -> Iterator[tuple[str, str, str]]:
    """Rows of a table: what was measured, its median and its goal."""
    for name, goal in GOALS.items():
        yield name, f"{median(rounds[name]):.3g}", f"{goal:g}"


def expected_verdicts() -> dict[str, str]:
    """The verdict that each way to compute a gradient deserves."""
    return dict.fromkeys(softmax_candidates.RIGHT, "conforms") | dict.fromkeys(softmax_candidates.WRONG, "fails")


def _judged(words: Sequence[str], operator: str, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "aclnn_cts", "judge", *words, "--op", operator, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured() -> Iterator[tuple[str, float]]:
    """The figures of one round."""
    expected = expected_verdicts()
    seconds = defaultdict(list)
    wall = otherwise = 0.0
    for operator in OPERATORS:
        words = [f"{_FILE}:{operator}.{name}" for name in expected]
        began = time.monotonic()
        found = _judged(words, operator, "--workers", str(_WORKERS))
        wall += time.monotonic() - began
        otherwise += len(words) - len(found)
        for item in found:
            deserved = expected[item["candidate"].rpartition(".")[2]]
            seconds[deserved].append(item["seconds"])
            if item["verdict"] != deserved:
                otherwise += 1
                print(f"{item['candidate']}: {item['verdict']}, {item['reason']}", flush=True)
    yield WALL, wall
    yield WRONG, median(seconds["fails"])
    yield RIGHT, median(seconds["conforms"])
    [hanging] = _judged([f"{_HANGS}:hangs"], OPERATORS[0], "--budget", f"{_BUDGET}s")
    yield HANGING, hanging["seconds"] - _BUDGET
    yield OTHERWISE, otherwise


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_judge_kernels", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/judging-kernels.md")
    options = parser.parse_args(arguments)
    started = start()
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for name, value in measured():
            found[name].append(value)
    rounds: Rounds = {name: tuple(values) for name, values in found.items()}
    for name, text, goal in rows(rounds):
        print(f"{name}: {text} (goal: {goal})")
    print(f"on {started.text}")
    if options.store:
        command = "make bench-judge-kernels ARGS=--store"
        store(NAME, rounds, command=command, started=started, needed=tuple(GOALS))
    return int(any(median(rounds[name]) > goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
