"""`make bench-candidates`: what the functions cost: the first check, a small one and large ones.

CPU seconds in processes of their own, on softmax calls. The imports that the first check does not count are those of
NumPy, ml_dtypes, msgspec and the reader of compiled specs. Run as `python -m benchmarks.bench_candidates`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from benchmarks.stored import Rounds, start, store

NAME = "candidates"
"""Of the stored figures."""
FIRST, SMALL, LARGE = "first check, s of CPU", "check of 1,000 elements, ms of CPU", "elements checked a second of CPU"
PEAK = "peak MiB of a check of 2^25 elements"
GOALS = {FIRST: 0.1, SMALL: 1.0, LARGE: 60e6, PEAK: 24 * 1024.0}

_PREPARE = """
import resource, sys, time
import numpy as np, ml_dtypes, msgspec
import aclnn_cts.speclang.load
def call(rows, columns):
    rng = np.random.default_rng(1)
    grad = rng.standard_normal((rows, columns), np.float32)
    output = np.full((rows, columns), np.float32(1 / columns))
    out = output * (grad - (grad.astype(np.float64) * output).sum(-1, keepdims=True)).astype(np.float32)
    return {"gradOutput": grad, "output": output, "dim": -1}, {"out": out}
inputs, outputs = call(10, 100)
began = time.process_time()
import aclnn_cts
found = aclnn_cts.check("softmax_backward", inputs, outputs)
first = time.process_time() - began
assert found.ok, found
"""
_CHECKS = """
for _ in range(20):
    aclnn_cts.check("softmax_backward", inputs, outputs)
began = time.process_time()
for _ in range(100):
    aclnn_cts.check("softmax_backward", inputs, outputs)
small = (time.process_time() - began) * 10
inputs, outputs = call(1 << 13, 1 << 10)
began = time.process_time()
assert aclnn_cts.check("softmax_backward", inputs, outputs).ok
print(first, small, (1 << 23) / (time.process_time() - began))
"""
_PEAK = """
inputs, outputs = call(1 << 15, 1 << 10)
assert aclnn_cts.check("softmax_backward", inputs, outputs).ok
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _numbers(program: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_candidates", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/judging-kernels.md")
    options = parser.parse_args(arguments)
    started = start()
    runs = [_numbers(_PREPARE + _CHECKS) for _ in range(options.rounds)]
    found = dict(zip((FIRST, SMALL, LARGE), map(tuple, zip(*runs, strict=True)), strict=True))
    found[PEAK] = tuple(_numbers(_PREPARE + _PEAK))
    for name, values in found.items():
        print(f"{name}: {median(values):.4g} (goal: {GOALS[name]:.4g})")
    print(f"on {started.text}")
    if options.store:
        rounds: Rounds = found
        store(NAME, rounds, command="make bench-candidates ARGS=--store", started=started, needed=tuple(GOALS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
