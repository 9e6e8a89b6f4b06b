"""The number that an aclScalar holds: what a dtype makes of a value, and its bytes in host memory."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from aclnn_cts.core.case import Scalar
from aclnn_cts.core.dtypes import DTYPES, FLOAT8, numpy_dtype
from aclnn_cts.core.rounding import to_dtype

SCALAR_DTYPES = frozenset(name for name, dtype in DTYPES.items() if dtype.kind != "other") - FLOAT8
"""Dtypes that a number can be passed in."""


def made(dtype: str, value: Fraction | float) -> Scalar:
    """A scalar of a value: truncated and clipped for an integer dtype, whether it is not 0 for BOOL."""
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return Scalar(dtype, bool(value))
    if kind not in ("signed", "unsigned"):
        return Scalar(dtype, float(value))
    low, high = integer_bounds(dtype)
    if isinstance(value, float) and not math.isfinite(value):
        value = 0 if math.isnan(value) else high if value > 0 else low
    return Scalar(dtype, min(max(int(value), low), high))


def integer_bounds(dtype: str) -> tuple[int, int]:
    """Least and most of an integer dtype."""
    limits = np.iinfo(numpy_dtype(dtype))
    return int(limits.min), int(limits.max)


def number(scalar: Scalar) -> bool | int | float:
    """The number that the callee reads: a floating value rounded to the dtype."""
    if DTYPES[scalar.dtype].kind != "float":
        return scalar.value
    return float(to_dtype(np.array([scalar.value], np.float64), scalar.dtype)[0])


def host_bytes(scalar: Scalar) -> bytes:
    """What aclCreateScalar is given a pointer to."""
    if DTYPES[scalar.dtype].kind == "float":
        return to_dtype(np.array([scalar.value], np.float64), scalar.dtype).tobytes()
    with np.errstate(over="ignore"):
        return np.array([scalar.value]).astype(numpy_dtype(scalar.dtype)).tobytes()
