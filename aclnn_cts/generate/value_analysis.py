"""What can be said of a tensor's contents before they are made: the lattice that exact data lie on."""

from __future__ import annotations

import numpy as np

from aclnn_cts.core.case import Tensor, real_view
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.layouts import FLOAT_LAYOUTS, Array, to_storage
from aclnn_cts.generate.recipes import array, check_data, effective
from aclnn_cts.generate.recipes_exact import integer_bounds
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES
from aclnn_cts.speclang.kinds_structure import STRUCTURES

_REAL = frozenset(("normal", "uniform", "repeated", "positive", "softmax", "rstd", "invstd", "mean"))
"""Recipes of numbers that are multiples of nothing in particular."""


def lattice(tensor: Tensor) -> float | None:
    """A power of two of which every element is an integer multiple; None where none is known.

    Known of `integers`, index data, `zeros`, `one_hot`, `constant` and explicit values where they are finite, and 1 for
    an integer dtype. Where all elements are 0, or there are none, any power would do, and 1 is given.
    """
    tensor = real_view(tensor)
    data = tensor.data
    if data is None:
        return None
    layout = FLOAT_LAYOUTS.get(tensor.dtype)
    if layout is None:
        return 1.0 if DTYPES[tensor.dtype].kind in ("signed", "unsigned", "bool") else None
    if data.recipe in _REAL and tensor.numel:
        return None
    if (recipe := check_data(data)) is not None:
        _, data = effective(recipe, tensor, data)
    if data.recipe in ("zeros", "one_hot", *INDEX_RECIPES, *STRUCTURES) or not tensor.numel:
        return 1.0
    if data.recipe == "integers":
        # Rounding to a coarser format moves to multiples of larger powers of two, so this one still divides.
        unit = 2.0 ** (data.exponent or 0)
        largest = max(map(abs, integer_bounds(tensor, data))) * unit
        return unit if largest <= layout.largest else None
    if data.recipe == "constant":
        with np.errstate(all="ignore"):
            return _lowest_bit(to_storage(np.array([1.0 if data.mean is None else data.mean]), tensor.dtype))
    return _lowest_bit(array(tensor, arrays={}, name="")) if data.recipe is None else None


def _lowest_bit(values: Array) -> float | None:
    """The largest power of two that divides all of these floating numbers; None where one is inf or nan."""
    numbers = widen(values).reshape(-1)
    if not np.isfinite(numbers).all():
        return None
    ratios = [value.as_integer_ratio() for value in numbers.tolist() if value]
    return min(((numerator & -numerator) / denominator for numerator, denominator in ratios), default=1.0)
