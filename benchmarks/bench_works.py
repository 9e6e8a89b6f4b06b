"""What `make bench` does in a round: case descriptions, judged cases, and a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.generate.choices import stream_block
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner

DESCRIPTIONS = 2_000
"""Made in a round."""
MOST_ELEMENTS = 256
"""Of a tensor in the comparison with the plain way, whose arrays cannot be much larger."""

_LOAD = (
    "import time; from aclnn_cts.speclang.load import load_specs; start = time.perf_counter(); "
    "[*load_specs().values()]; print(time.perf_counter() - start)"
)


@dataclass(slots=True)
class Counter:
    """What a pipeline came to, over all rounds."""

    judged: int = 0
    calls: int = 0
    elements: int = 0

    @property
    def mean(self) -> float:
        """Elements of all inputs of a call."""
        return self.elements / max(self.calls, 1)


def _cases(sampler: Sampler, number: int, count: int, budgets: Sequence[int] = ()) -> Iterator[Case]:
    """Random cases of a round; `budgets`: most elements of a tensor, one of them a case (the sampler's own)."""
    for choices in stream_block(number, "benchmark", 0, count):
        yield sampler.case(sampler.draw(choices, budget=choices.pick(budgets) if budgets else None))


def descriptions(spec: Spec, sampler: Sampler) -> Callable[[int], int]:
    """Describe cases and evaluate all constraints on each."""

    def work(number: int) -> int:
        done = 0
        for case in _cases(sampler, number, DESCRIPTIONS):
            if evaluate(spec, case).broken:
                raise AssertionError(f"{spec.operator}: a case of the generator breaks a constraint")
            done += 1
        return done

    return work


def _largest(case: Case) -> int:
    return max(tensor.numel for _, tensor in case.tensors())


def _drawn(spec: Spec, case: Case) -> int:
    """Elements of all inputs."""
    return sum(tensor.numel for name, tensor in case.tensors() if name in spec.inputs)


def as_plain(case: Case) -> bool:
    """Whether the plain way has this case too: small, and an rstd (if any) that torch computes anew from x."""
    rstd = case.arguments.get("rstd")
    fits = not isinstance(rstd, Tensor) or (rstd.data is not None and rstd.data.recipe == "rstd")
    return fits and _largest(case) <= MOST_ELEMENTS


def judged(
    runner: TrialRunner,
    sampler: Sampler,
    count: int,
    chosen: Callable[[Case], bool],
    counter: Counter,
    budgets: Sequence[int] = (),
) -> Callable[[int], int]:
    """Generate, make data, call, ask the oracle, judge, and make the records; gives how many have a verdict.

    Cases that are not `chosen` are drawn all the same, and the time for it counts.
    """

    def work(number: int) -> int:
        cases = [case for case in _cases(sampler, number, count, budgets) if chosen(case)]
        done = 0
        for batch in runner.run([Trial("values", case) for case in cases]):
            done += sum(record.verdict.result in (Result.PASSED, Result.FAILED) for record in batch.records)
        counter.judged += done
        counter.calls += len(cases)
        counter.elements += sum(_drawn(sampler.spec, case) for case in cases)
        return done

    return work


def _fresh(*arguments: str) -> tuple[float, str]:
    """Seconds and standard output of a fresh interpreter."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


STARTS: dict[str, Callable[[], float]] = {
    "all specs loaded": lambda: float(_fresh("-c", _LOAD)[1]),
    "aclnn-cts --help": lambda: _fresh("-m", "aclnn_cts", "--help")[0],
    "the interpreter alone": lambda: _fresh("-c", "pass")[0],
}
"""Seconds of what is started anew."""
