"""Wrong kernels that public reports describe: what they are, what published rules say of them, and what we say."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclnn_cts import Judgement, expected, judge
from aclnn_cts.candidates.verdict import CandidateFinding
from aclnn_cts.core.verdict import ToleranceVerdict
from aclnn_cts.judgement.tolerances.protocol import Pair
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from tests.wrong_kernels.usual_inputs import usual_inputs

FOLDER = Path(__file__).parent / "kernels"
TRIALS = 5
"""Random trials of a published judge."""
_REPORT = re.compile(r"[\w.-]+/[\w.-]+(?:#\d+)?(?:, #\d+)*")


class WrongKernel(NamedTuple):
    """A kernel with a mistake that somebody has reported."""

    file: Path
    name: str
    reports: tuple[str, ...]
    """`owner/repository#number` each."""
    sentence: str

    @property
    def operator(self) -> str:
        """The stem of its operator."""
        return self.file.stem

    @property
    def id(self) -> str:
        """Such as `softmax_backward.nan`."""
        return f"{self.file.stem}.{self.name}"


def wrong_kernels() -> Iterator[WrongKernel]:
    """All of them, by file and in their order; a docstring has the reports, and behind a colon the mistake."""
    for file in sorted(FOLDER.glob("*_*.py")):
        for item in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(item, ast.FunctionDef):
                reports, _, sentence = (ast.get_docstring(item) or "").partition(": ")
                yield WrongKernel(file, item.name, tuple(reports.split(", ")), " ".join(sentence.split()))


def _within(tolerance: float, share: float) -> Callable[[NDArray[Any], NDArray[Any], str], bool]:
    def accepts(got: NDArray[Any], golden: NDArray[Any], _dtype: str) -> bool:
        return bool(np.mean(np.abs(got - golden) <= tolerance + tolerance * np.abs(golden)) >= share)

    return accepts


def _no_excess(got: NDArray[Any], golden: NDArray[Any], _dtype: str) -> bool:
    """What a comparison for an excess lets through: nan is in excess of nothing."""
    return not bool(np.any(np.abs(got - golden) > 1e-2 + 1e-2 * np.abs(golden)))


def _ecosystem(name: str) -> Callable[[NDArray[Any], NDArray[Any], str], bool]:
    def accepts(got: NDArray[Any], golden: NDArray[Any], dtype: str) -> bool:
        result = TOLERANCES[name].measure(
            Pair(output="out", got=got.reshape(-1), exact=golden.reshape(-1), dtype=dtype)
        )
        return result.verdict != ToleranceVerdict.FAIL

    return accepts


RULES: Mapping[str, Callable[[NDArray[Any], NDArray[Any], str], bool]] = {
    "1e-2 in 99 %": _within(1e-2, 0.99),
    "excess of 1e-2": _no_excess,
    "allclose 1e-3": _within(1e-3, 1.0),
    "mere-mare": _ecosystem("mere-mare"),
    "mixed": _ecosystem("mixed"),
}
"""Rules that others publish: a share of matches, allclose, two of the ecosystem's; and a model of an excess."""


def accepted_by(kernel: WrongKernel) -> dict[str, bool]:
    """Which rules accept a kernel in five trials with the usual inputs of its operator."""
    function = _loaded(kernel)
    names = function.__code__.co_varnames[: function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    accepts = dict.fromkeys(RULES, True)
    for seed in range(TRIALS):
        arguments = usual_inputs(kernel.operator, np.random.default_rng(seed))
        golden = {name: item.value for name, item in expected(kernel.operator, arguments).outputs.items()}
        # The memory of an output holds what a reference left there.
        given = {**arguments, "formats": dict.fromkeys(arguments, "NCHW"), **{k: v.copy() for k, v in golden.items()}}
        with np.errstate(all="ignore"):
            result = function(**{name: given.get(name) for name in names})
        results = result if isinstance(result, dict) else {next(iter(golden)): result}
        for name, value in golden.items():
            got = given[name] if results.get(name) is None else np.asarray(results[name])
            stored = got.astype(np.float32).astype(np.float64)
            for rule, accept in RULES.items():
                accepts[rule] &= accept(stored, value, "FLOAT")
    return accepts


def _loaded(kernel: WrongKernel) -> Any:
    spec = importlib.util.spec_from_file_location(f"wrong_{kernel.file.stem}", kernel.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return getattr(module, kernel.name)


def judged(kernel: WrongKernel, *, seed: int, profile: str = "quick") -> Judgement:
    """What our judge says of it."""
    return judge(f"{kernel.file}:{kernel.name}", kernel.operator, seed=seed, budget="60s", profile=profile)


def found_by(judgement: Judgement) -> str:
    """The fault that was found; `not found` where it conforms."""
    if judgement.ok:
        return "not found"
    return judgement.findings[0].fault if judgement.findings else judgement.verdict


def call_text(finding: CandidateFinding) -> str:
    """The arguments of its call: dtype and shape of arrays, values of attributes; null pointers are left out."""
    given = {} if finding.case is None else finding.case.arguments
    return ", ".join(f"{name}={_argument(value)}" for name, value in given.items() if value is not None)


def _argument(value: Any) -> str:
    return f"{value.dtype.name}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


def input_bytes(finding: CandidateFinding) -> int:
    """The size of its call."""
    given = {} if finding.case is None else finding.case.arguments
    return sum(value.nbytes for value in given.values() if isinstance(value, np.ndarray))
