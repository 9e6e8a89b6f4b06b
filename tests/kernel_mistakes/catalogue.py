"""Kernels of attention and of convolutions: right ones, and mistakes that such kernels have."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aclnn_cts import Judgement, cases, check, judge

FOLDER = Path(__file__).parent / "kernels"
RIGHT: Mapping[str, tuple[str, ...]] = {
    "attention.by_16": ("flash_attention_score_grad", "flash_attention_unpadding_score_grad_v2"),
    "attention.by_64": ("flash_attention_score_grad_v2", "flash_attention_unpadding_score_grad"),
    "attention.by_128_and_32": ("flash_attention_score_grad_v2", "flash_attention_unpadding_score_grad_v2"),
    "convolution.direct": ("convolution_backward",),
    "convolution.implicit_gemm": ("convolution_backward",),
}
"""The operators that each right kernel computes."""


class Mistake(NamedTuple):
    """A kernel with one mistake."""

    file: Path
    name: str
    operator: str
    sentence: str

    @property
    def id(self) -> str:
        """Such as `attention.BandOffByOne`."""
        return f"{self.file.stem.removesuffix('_mistakes')}.{self.name}"


def mistakes() -> Iterator[Mistake]:
    """All of them, by file and in their order."""
    for file in sorted(FOLDER.glob("*_mistakes.py")):
        for name, item in _loaded(file).items():
            if getattr(item, "__module__", "") == file.stem:
                yield Mistake(file, name, item.operator, " ".join((item.__doc__ or "").split()))


def _loaded(file: Path) -> dict[str, Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(file), run_name=file.stem)
    finally:
        sys.path.remove(str(FOLDER))


def judged(mistake: Mistake, *, seed: int, profile: str) -> Judgement:
    """What our judge says of a kernel."""
    return judge(f"{mistake.file}:{mistake.name}.run", mistake.operator, seed=seed, budget="300s", profile=profile)


def right_kernel(name: str) -> Callable[..., Mapping[str, Any]]:
    """One of `RIGHT`."""
    file, _, function = name.partition(".")
    found: Callable[..., Mapping[str, Any]] = _loaded(FOLDER / f"{file}.py")[function]
    return found


def alarms(name: str, operator: str, *, calls: int, seed: int, profile: str = "standard") -> tuple[list[str], int]:
    """Of a right kernel's calls: the ids of those in which a fault is found, and how many were compared."""
    kernel, found, compared = right_kernel(name), [], 0
    for case in cases(operator, n=calls, seed=seed, profile=profile):
        arguments = dict.fromkeys(case.case.arguments) | {**case.attributes, **case.inputs}
        with np.errstate(all="ignore"):
            results = kernel(**arguments)
        if not results:
            continue
        verdict = check(operator, {**case.inputs, **case.attributes}, results).verdict
        compared += verdict != "inconclusive"
        if verdict == "fails":
            found.append(case.id)
    return found, compared
