"""`make bench-size`: what a large output costs the harness, and where the time goes.

Output elements judged a CPU second, on softmax calls: data, oracle, bound and comparison, without the implementation.
Run as `python -m benchmarks.bench_size [--elements N] [--rounds N]` from the checkout.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judges import Judges
from aclnn_cts.execution.judging import Judge
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.load import load_specs
from docs.markdown import table

__all__ = ["main", "softmax_case"]

_OPERATOR = "aclnnSoftmaxBackward"
_DTYPES = ("FLOAT", "FLOAT16", "BF16")
_COLUMNS = 1024
_LARGE = 1 << 22
_FUNCTIONS = 12
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


def _performed(case: Case, judge: Judge) -> Performed:
    """The call with right results, which the judge has not seen."""
    arrays = case_arrays(case, judge.spec.inputs)
    outcome = Outcome(phase_one=0, phase_two=0)
    question = judge.question(Performed(case=case, outcome=outcome, arrays=arrays))
    value = registry.load_values(judge.spec.stem)(question)["out"]
    descriptor = case.arguments["out"]
    dtype = descriptor.dtype if isinstance(descriptor, Tensor) else ""
    got: dict[str, NDArray[np.generic]] = {"out": to_dtype(value, dtype)}
    return Performed(case=case, outcome=outcome, arrays=arrays, got=got)


def _best(work: Callable[[], object], rounds: int) -> float:
    """The least CPU time of a round, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def _rates(elements: int, rounds: int) -> Iterator[tuple[str, ...]]:
    judge = _judge()
    for dtype in _DTYPES:
        case = softmax_case(elements, dtype)
        made = _performed(case, judge)
        data = _best(lambda case=case: case_arrays(case, judge.spec.inputs), rounds)  # type: ignore[misc]
        widened = _best(lambda made=made: judge.question(made), rounds)  # type: ignore[misc]
        judged = _best(lambda made=made: judge.values(made), rounds)  # type: ignore[misc]
        yield (
            dtype,
            f"{data * 1e3:.1f} ms",
            f"{widened * 1e3:.1f} ms",
            f"{(judged - widened) * 1e3:.1f} ms",
            f"{elements / (data + judged) / 1e6:.1f} million",
        )


def _profile(elements: int, dtype: str, rounds: int) -> Iterator[tuple[str, ...]]:
    """The functions that most of the time is spent in, what they call of NumPy included."""
    judge, case = _judge(), softmax_case(elements, dtype)
    made = _performed(case, judge)
    profile = cProfile.Profile(time.process_time, builtins=False)
    profile.enable()
    for _ in range(rounds):
        case_arrays(case, judge.spec.inputs)
        judge.values(made)
    profile.disable()
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rows = sorted(((entry[2], place) for place, entry in stats.items()), reverse=True)
    whole = sum(seconds for seconds, _ in rows)
    for seconds, (file, _, name) in rows[:_FUNCTIONS]:
        path = Path(file)
        where = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else Path(*path.parts[-2:])
        yield f"`{where}`", f"`{name}`", f"{seconds / rounds * 1e3:.1f} ms", f"{seconds / whole:.1%}"


def _peak(dtype: str) -> str:
    """The most memory of a process that judges one call of 2^22 elements."""
    words = [sys.executable, "-m", "benchmarks.bench_size", "--peak", dtype]
    done = subprocess.run(words, cwd=_ROOT, check=True, capture_output=True, text=True)
    return f"{int(done.stdout) / 1024:.0f} MiB"


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_size", description=__doc__)
    parser.add_argument("--elements", type=int, default=1 << 20, metavar="N", help="elements of an output (2^20)")
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="rounds, of which the best counts (10)")
    parser.add_argument("--peak", metavar="DTYPE", help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if wanted.peak:
        judge = _judge()
        judge.values(_performed(softmax_case(_LARGE, wanted.peak), judge))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    columns = ("dtype", "data", "operands widened", "oracle, bound and comparison", "elements a CPU second")
    print("\n".join(table(columns, list(_rates(wanted.elements, wanted.rounds)))))
    for dtype in _DTYPES:
        print(f"\nWhere the time of a {dtype} call goes:\n")
        profile = list(_profile(wanted.elements, dtype, wanted.rounds))
        print("\n".join(table(("file", "function", "time", "share"), profile)))
    print(f"\nMost memory of a process that judges {_LARGE:,} elements, the results of the reference included:\n")
    print("\n".join(table(("dtype", "memory"), [(dtype, _peak(dtype)) for dtype in _DTYPES])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
