"""`make bench-gate`: how long the quick profile takes, as a run and as the pytest gate, by the wall.

Both with two workers, on the software device and in turns. `make bench-gate ARGS=--store` keeps the figures for
`docs/power.md`, which `make docs` makes from them. Run as `python -m benchmarks.bench_gate` from the checkout.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Figure
from benchmarks.stored import start, store

NAME = "gate"
"""Of the stored figures."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("aclnn-cts", "run", "--adapter", "loopback", "--profile", "quick", "--workers", "2"),
    "pytest": ("pytest", "-q", "-n", "2", "aclnn_cts/suites", "--aclnn-adapter", "loopback"),
}
"""What is measured, by name."""

_MODULES = {"aclnn-cts": "aclnn_cts", "pytest": "pytest"}


def measured(rounds: int, *, seconds: Callable[[Sequence[str]], float]) -> dict[str, tuple[float, ...]]:
    """Wall seconds of each command, round by round, after a round that is not counted (it builds the device)."""
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, words in COMMANDS.items():
            took = seconds(words)
            if number:
                found[name].append(round(took, 2))
    return {name: tuple(values) for name, values in found.items()}


def _seconds(words: Sequence[str]) -> float:
    """Of one command; it must end with 0, or the figure says nothing."""
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-bench-") as folder:
        output = ("-o", str(Path(folder) / "run")) if words[0] == "aclnn-cts" else ()
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", _MODULES[words[0]], *words[1:], *output], check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - began


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_gate", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (3)")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    options = parser.parse_args(arguments)
    started = start()
    rounds = measured(options.rounds, seconds=_seconds)
    print(f"wall time of {options.rounds} rounds on {started.text}")
    for name, values in rounds.items():
        print(f"{' '.join(COMMANDS[name])}: {Figure(values).text('.0f')} s")
    if options.store:
        command = f"make bench-gate ARGS='--rounds {options.rounds} --store'"
        store(NAME, rounds, command=command, started=started, needed=tuple(COMMANDS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
