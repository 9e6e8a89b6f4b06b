"""Pairs made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aclnn_cts.core.dtypes import FLOATING, numpy_dtype
from aclnn_cts.core.rounding import to_dtype
from aclnn_cts.core.verdict import ToleranceFigure, ToleranceResult
from aclnn_cts.judgement.tolerances.protocol import Pair, make_pair
from aclnn_cts.judgement.tolerances.registry import TOLERANCES


def pair(
    got: Sequence[float] | np.ndarray[Any, Any],
    golden: Sequence[float] | np.ndarray[Any, Any],
    benchmark: Sequence[float] | np.ndarray[Any, Any] | None = None,
    *,
    dtype: str = "FLOAT",
    operand: str = "",
) -> Pair:
    """Outputs are stored in the dtype: a number that it does not hold is a mistake of the test."""

    def stored(values: Sequence[float] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wide = np.asarray(values, dtype=np.float64)
        narrow = to_dtype(wide, dtype) if dtype in FLOATING else wide.astype(numpy_dtype(dtype))
        assert np.array_equal(narrow.astype(np.float64), wide, equal_nan=True), f"{dtype} does not hold {values}"
        return narrow

    return make_pair(
        output="out",
        dtype=dtype,
        got=stored(got),
        golden=np.asarray(golden, dtype=np.float64),
        benchmark=None if benchmark is None else stored(benchmark),
        benchmark_name="made by hand" if benchmark is not None else "",
        operand=operand,
    )


def says(tolerance: str, made: Pair) -> str:
    return TOLERANCES[tolerance].measure(made).verdict


def figures(result: ToleranceResult) -> dict[str, ToleranceFigure]:
    return {entry.name: entry for entry in result.figures}


def values(result: ToleranceResult) -> dict[str, float]:
    return {entry.name: float(entry.value) for entry in result.figures}
