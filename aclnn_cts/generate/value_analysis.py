"""What can be said of a tensor's contents before they are made: the lattice that exact data lie on."""

from __future__ import annotations

import numpy as np

from aclnn_cts.core.case import Data, Tensor, real_view
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.layouts import Array, float_layout, to_storage
from aclnn_cts.generate.recipes import array, check_data, effective
from aclnn_cts.generate.recipes_exact import integer_bounds
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES
from aclnn_cts.speclang.kinds_structure import STRUCTURES

_REAL = frozenset(("normal", "uniform", "repeated", "positive", "softmax", "rstd", "invstd", "mean"))
"""Recipes of numbers that are multiples of nothing in particular."""


def _effective(tensor: Tensor) -> Data:
    """The data that fill the tensor, as `array` sees them."""
    data = tensor.data if tensor.data is not None else Data(recipe="zeros")
    recipe = check_data(data)
    return effective(recipe, tensor, data)[1] if recipe is not None else data


def _widened(tensor: Tensor) -> Array:
    """Explicit values as float64 (integers as they are), rounded to the dtype."""
    values = array(tensor, arrays={}, name="")
    return widen(values) if DTYPES[tensor.dtype].kind == "float" else values


def _rounded(values: list[float], dtype: str) -> Array:
    with np.errstate(all="ignore"):
        rounded = to_storage(np.array(values), dtype)
    return widen(rounded) if DTYPES[dtype].kind == "float" else rounded


def lattice(tensor: Tensor) -> float | None:
    """A power of two of which every element is an integer multiple; None where none is known.

    Known of `integers`, index data, `zeros`, `one_hot`, `constant` and explicit values where they are finite, and 1 for
    an integer dtype. Where all elements are 0, or there are none, any power would do, and 1 is given.
    """
    tensor = real_view(tensor)
    if tensor.data is None:
        return None
    if float_layout(tensor.dtype) is None:
        return 1.0 if DTYPES[tensor.dtype].kind in ("signed", "unsigned", "bool") else None
    if tensor.data.recipe in _REAL and tensor.numel:
        return None
    data = _effective(tensor)
    if data.recipe in ("zeros", "one_hot", *INDEX_RECIPES, *STRUCTURES) or not tensor.numel:
        return 1.0
    if data.recipe == "integers":
        # Rounding to a coarser format moves to multiples of larger powers of two, so this one still divides.
        unit, layout = 2.0 ** (data.exponent or 0), float_layout(tensor.dtype)
        largest = max(map(abs, integer_bounds(tensor, data))) * unit
        return unit if layout is None or largest <= layout.largest else None
    if data.recipe == "constant":
        return _lowest_bit(_rounded([1.0 if data.mean is None else data.mean], tensor.dtype))
    return _lowest_bit(_widened(tensor)) if data.recipe is None else None


def _lowest_bit(values: Array) -> float | None:
    """The largest power of two that divides all of these float64 numbers."""
    if not np.isfinite(values).all():
        return None
    lowest = None
    for value in values.reshape(-1).tolist():
        if value:
            numerator, denominator = value.as_integer_ratio()
            power = (numerator & -numerator) / denominator
            lowest = power if lowest is None else min(lowest, power)
    return 1.0 if lowest is None else lowest
