"""What can be said of a tensor's contents before they are made: for constraints, and for bounds on exact data."""

from __future__ import annotations

import math

import numpy as np

from aclnn_cts.core.case import Data, Tensor, real_view
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.generate.layouts import Array, float_layout, to_storage
from aclnn_cts.generate.recipes import array, check_data, effective
from aclnn_cts.generate.recipes_exact import index_bounds, integer_bounds
from aclnn_cts.generate.recipes_real import NORMAL_REACH, uniform_bounds
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES

__all__ = ["finite", "lattice", "value_range"]


_REAL = frozenset(("normal", "uniform", "positive", "softmax", "rstd", "invstd", "mean"))
"""Recipes of numbers that are multiples of nothing in particular."""


def _effective(tensor: Tensor) -> Data:
    """The data that fill the tensor, as `array` sees them."""
    data = tensor.data if tensor.data is not None else Data(recipe="zeros")
    recipe = check_data(data)
    return effective(recipe, tensor, data)[1] if recipe is not None else data


def _largest(dtype: str) -> float:
    layout = float_layout(dtype)
    return layout.largest if layout is not None else math.inf


def finite(tensor: Tensor) -> bool:
    """Whether the contents are known to hold neither inf nor nan; true of a tensor without data or elements.

    Of a recipe the answer is that of its worst element, which need not occur: `normal` with a deviation of a third of
    the largest number may overflow. Statistics are said to be finite where the parameter that they come from is.
    """
    tensor = real_view(tensor)
    if tensor.data is None or not tensor.numel or float_layout(tensor.dtype) is None:
        return True
    return _finite(tensor, _effective(tensor))


def _finite(tensor: Tensor, data: Data) -> bool:
    """The same of a floating tensor with elements and the data that fill it."""
    if data.recipe == "special":
        return False
    if data.recipe in ("rstd", "invstd"):
        return data.epsilon is None or (data.epsilon > 0 and 1.0 / math.sqrt(data.epsilon) <= _largest(tensor.dtype))
    if data.recipe in ("constant", "normal", "uniform", "integers"):
        return _magnitude(tensor, data) <= _largest(tensor.dtype)
    if data.recipe is not None:
        return True
    return bool(np.isfinite(_widened(tensor)).all())


def _magnitude(tensor: Tensor, data: Data) -> float:
    """An upper bound of the absolute values; inf and nan stand for themselves."""
    if data.recipe == "integers":
        return max(map(abs, integer_bounds(tensor, data))) * 2.0 ** (data.exponent or 0)
    if data.recipe == "uniform":
        return float(max(map(abs, uniform_bounds(data)))) * 2.0 ** (data.exponent or 0)
    if data.recipe == "constant":
        return 1.0 if data.mean is None else abs(data.mean)
    # A thousandth more than the reach covers the roundings on the way.
    return abs(data.mean or 0.0) + abs(1.0 if data.std is None else data.std) * NORMAL_REACH * 1.001


def _widened(tensor: Tensor) -> Array:
    """Explicit values as float64 (integers as they are), rounded to the dtype."""
    values = array(tensor, arrays={}, name="")
    return values.astype(np.float64) if DTYPES[tensor.dtype].kind == "float" else values


def value_range(tensor: Tensor) -> tuple[int, int] | None:
    """Integers between which every element lies, both included; None where that is not known without the elements.

    The bounds of a recipe need not be attained, those of explicit values are (fractions rounded outwards). An empty
    tensor has no element and so no bounds: None.
    """
    tensor = real_view(tensor)
    if tensor.data is None or not tensor.numel:
        return None
    data = _effective(tensor)
    if data.recipe == "zeros":
        return 0, 0
    if data.recipe == "one_hot":
        return 0, 1
    if data.recipe in INDEX_RECIPES:
        return index_bounds(tensor, data)
    if data.recipe == "integers":
        low, high = integer_bounds(tensor, data)
        if float_layout(tensor.dtype) is None:
            return low, high
        scale = 2.0 ** (data.exponent or 0)
        return _outwards(_rounded([low * scale, high * scale], tensor.dtype))
    if data.recipe == "constant":
        return _outwards(_rounded([1.0 if data.mean is None else data.mean], tensor.dtype))
    return _outwards(_widened(tensor)) if data.recipe is None else None


def _rounded(values: list[float], dtype: str) -> Array:
    with np.errstate(all="ignore"):
        rounded = to_storage(np.array(values), dtype)
    return rounded.astype(np.float64) if DTYPES[dtype].kind == "float" else rounded


def _outwards(values: Array) -> tuple[int, int] | None:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            return None
        return math.floor(values.min()), math.ceil(values.max())
    return int(values.min()), int(values.max())


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
    if data.recipe in ("zeros", "one_hot", *INDEX_RECIPES) or not tensor.numel:
        return 1.0
    if data.recipe == "integers":
        # Rounding to a coarser format moves to multiples of larger powers of two, so this one still divides.
        return 2.0 ** (data.exponent or 0) if _finite(tensor, data) else None
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
