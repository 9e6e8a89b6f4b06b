"""`make bench-size`: what a large output costs the harness, and where the time goes.

Output elements judged a CPU second, on softmax calls: data, oracle, bound and comparison, without the implementation.
`make bench-size ARGS=--store` keeps the figures for `docs/power.md`. Run as `python -m benchmarks.bench_size` from the
checkout.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.execution.executor import PerformedCall
from aclnn_cts.execution.judging import Judge, Judges
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from benchmarks.measure import Figure
from benchmarks.memory import peak
from benchmarks.stored import Rounds, figures_of, start, store
from tools.markdown import table

NAME = "size"
"""Of the stored figures."""
GOALS = {"FLOAT": 15e6, "FLOAT16": 10e6, "BF16": 10e6}
"""Output elements judged a CPU second, by dtype."""
_MEMORY_GOAL = 1024
"""MiB."""

_OPERATOR = "aclnnSoftmaxBackward"
_DTYPES = tuple(GOALS)
_COLUMNS = 1024
_ELEMENTS = 1 << 20
_LARGE = 1 << 22
_FUNCTIONS = 12
_NO_TIME = Figure((0.0,))
COST = (
    "dtype",
    "data",
    "operands widened",
    "oracle, bound and comparison",
    "elements a CPU second",
    "2^22 elements take",
)
"""Columns of `cost_rows`."""
FUNCTIONS = ("file", "function", *_DTYPES)
"""Columns of `function_rows`."""
_ROOT = Path(__file__).resolve().parent.parent


def softmax_case(elements: int, dtype: str) -> Case:
    """A call with rows of 1024 elements, normal gradients and a softmax as output."""
    shape = (elements // _COLUMNS, _COLUMNS)
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor(shape, dtype, data=Data(recipe="normal", seed=1)),
        "output": Tensor(shape, dtype, data=Data(recipe="softmax", seed=2, axis=-1)),
        "dim": -1,
        "out": Tensor(shape, dtype),
    }
    return Case(_OPERATOR, arguments)


def _judge() -> Judge:
    return Judges(has_statuses=True).of(load_specs()[_OPERATOR])


def _performed(case: Case, judge: Judge) -> PerformedCall:
    """The call with right results, which the judge has not seen."""
    arrays = case_arrays(case, judge.spec.inputs)
    outcome = Outcome(phase_one=0, phase_two=0)
    question = judge.question(PerformedCall(case=case, outcome=outcome, arrays=arrays))
    value = registry.load(judge.spec.stem).values(question)["out"]
    descriptor = case.arguments["out"]
    dtype = descriptor.dtype if isinstance(descriptor, Tensor) else ""
    got: dict[str, NDArray[np.generic]] = {"out": to_dtype(value, dtype)}
    return PerformedCall(case=case, outcome=outcome, arrays=arrays, got=got)


def _best(work: Callable[[], object], rounds: int) -> float:
    """The least CPU time of a round, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def _measured(elements: int, rounds: int, *, peaks: bool) -> Rounds:
    judge = _judge()
    found: dict[str, tuple[float, ...]] = {}
    for dtype in _DTYPES:
        case = softmax_case(elements, dtype)
        made = _performed(case, judge)
        data = _best(lambda case=case: case_arrays(case, judge.spec.inputs), rounds)  # type: ignore[misc]
        widened = _best(lambda made=made: judge.question(made), rounds)  # type: ignore[misc]
        judged = _best(lambda made=made: judge.values(made), rounds)  # type: ignore[misc]
        found[f"data ms, {dtype}"] = (data * 1e3,)
        found[f"widened ms, {dtype}"] = (widened * 1e3,)
        found[f"judged ms, {dtype}"] = ((judged - widened) * 1e3,)
        found[f"elements a second, {dtype}"] = (elements / (data + judged),)
        found |= {f"{dtype} ms, {name}": (spent * 1e3,) for name, spent in _profile(case, judge, made, rounds)}
        if peaks:
            found[f"peak MiB, {dtype}"] = (_peak(dtype),)
    return found


def _profile(case: Case, judge: Judge, made: PerformedCall, rounds: int) -> Iterator[tuple[str, float]]:
    """The functions that most of the time of a call is spent in, what they call of NumPy included, with its seconds."""
    profile = cProfile.Profile(time.process_time, builtins=False)
    profile.enable()
    for _ in range(rounds):
        case_arrays(case, judge.spec.inputs)
        judge.values(made)
    profile.disable()
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    spent: dict[str, float] = defaultdict(float)
    for (file, _, name), entry in stats.items():
        path = Path(file)
        where = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else Path(*path.parts[-2:])
        spent[f"{where} {name}"] += entry[2] / rounds
    yield from sorted(spent.items(), key=lambda item: -item[1])[:_FUNCTIONS]


def cost_rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: the dtype, the time of each part, the rate and the memory, both with their goals."""
    for dtype, goal in GOALS.items():
        peak = rounds.get(f"peak MiB, {dtype}")
        yield (
            dtype,
            *(f"{rounds[f'{part} ms, {dtype}'][0]:.1f} ms" for part in ("data", "widened", "judged")),
            f"{rounds[f'elements a second, {dtype}'][0] / 1e6:.1f} million (goal: {goal / 1e6:.0f})",
            "not measured" if peak is None else f"{peak[0]:.0f} MiB (goal: {_MEMORY_GOAL})",
        )


def function_rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """Rows of a table: a function with its time in a call of each dtype, the longest first."""
    spent = {dtype: figures_of(rounds, f"{dtype} ms") for dtype in _DTYPES}
    names = {
        name: max(of.get(name, _NO_TIME).median for of in spent.values()) for each in spent.values() for name in each
    }
    for name in sorted(names, key=lambda name: -names[name])[:_FUNCTIONS]:
        file, _, function = name.partition(" ")
        yield (
            f"`{file}`",
            f"`{function}`",
            *(f"{spent[dtype][name].median:.1f} ms" if name in spent[dtype] else "less" for dtype in _DTYPES),
        )


def _peak(dtype: str) -> float:
    """MiB that a process takes at most which judges one call of 2^22 elements."""
    words = [sys.executable, "-m", "benchmarks.bench_size", "--peak", dtype]
    done = subprocess.run(words, cwd=_ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_size", description=__doc__)
    parser.add_argument("--elements", type=int, default=_ELEMENTS, metavar="N", help="elements of an output (2^20)")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="rounds, of which the best counts (10)")
    parser.add_argument("--no-peak", action="store_true", help="leave out how much memory 2^22 elements take")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    parser.add_argument("--peak", metavar="DTYPE", help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if wanted.peak:
        judge = _judge()
        judge.values(_performed(softmax_case(_LARGE, wanted.peak), judge))
        # Not `ru_maxrss`, which keeps what the process that started this one held.
        print(peak() >> 10)
        return 0
    if wanted.store and (wanted.no_peak or wanted.elements != _ELEMENTS):
        parser.error(
            f"--store keeps the figures of {_ELEMENTS:,} elements, and the memory; leave out what changes them"
        )
    started = start()
    rounds = _measured(wanted.elements, wanted.rounds, peaks=not wanted.no_peak)
    print("\n".join(table(COST, list(cost_rows(rounds)))))
    print()
    print("\n".join(table(FUNCTIONS, list(function_rows(rounds)))))
    if wanted.store:
        store(NAME, rounds, command="make bench-size ARGS=--store", started=started, needed=())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
