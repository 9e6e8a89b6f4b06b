"""Data at the ends of the formats: what inf and nan require of a result, and which operands a device may flush.

Inf and nan are required only where every permitted order of evaluation gives them. The oracles ask for that when an
input is not finite; on finite inputs the formula alone decides, and overflow is left to `ExpectedOutput.partial`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64
from aclnn_cts.formula.evaluation import alike

FLOAT16_LARGEST = 65504.0
FLOAT16_NORMAL = 2.0**-14
"""The largest finite and the smallest normal number of FLOAT16 (IEEE 754-2019, table 3.5: emax = 15, emin = -14)."""
FLOAT_NORMAL = 2.0**-126
"""The smallest normal number of FLOAT, the format in which the operators accumulate (emin = -126); BF16 shares it."""

Form: TypeAlias = Callable[..., NDArray[Any]]
"""One permitted order of evaluation, as a function of the operands in whatever dtype they have."""

_ONE = np.uint64(1)
_FEW = 1 << 12
"""Numbers that all steps together cost less for than a step apart."""
_BELOW_NORMAL = np.array(FLOAT_NORMAL).view(np.uint64)[()] - _ONE


def finite_part(array: Float64) -> Float64:
    """The array with 0 for inf and nan: what the magnitudes of an output with special inputs are made of."""
    return np.where(np.isfinite(array), array, 0.0)


def holds_subnormal(*magnitudes: Float64) -> bool:
    """Whether any number is below FLOAT's normal range and not 0: what an implementation may load as 0.

    The arrays hold absolute values. Their order is that of their bits as integers, in which 0 less 1 is the largest.
    They are looked at as one: they are small as a rule, and each step costs as much for one as for all.
    """
    flat = [magnitude.reshape(-1) for magnitude in magnitudes if not _all_normal(magnitude)]
    if not flat:
        return False
    bits = (np.concatenate(flat) if len(flat) > 1 else flat[0]).view(np.uint64) - _ONE
    return bool(bits.size and np.minimum.reduce(bits) < _BELOW_NORMAL)


def _all_normal(magnitude: Float64) -> bool:
    """Whether it is seen at a glance that no number is below the normal range, or 0; of few numbers it is not."""
    return magnitude.size > _FEW and bool(np.minimum.reduce(magnitude, axis=None) >= FLOAT_NORMAL)


def loads_may_underflow(magnitudes: Mapping[str, Float64], lattices: Mapping[str, float]) -> bool:
    """Whether an operand, given by its absolute values, `holds_subnormal`: none does that lies in a lattice above it.

    `lattices` is `OracleInput.lattices`.
    """
    return holds_subnormal(*(size for name, size in magnitudes.items() if lattices.get(name, 0.0) < FLOAT_NORMAL))


def flushing_product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """The product; in float32, in which `settle` looks for what underflow does, subnormal results are flushed.

    For forms that multiply a product again, possibly by inf.
    """
    product: NDArray[Any] = left * right
    if product.dtype == np.float32:
        product[np.abs(product) < FLOAT_NORMAL] = 0.0
    return product


def settle(
    *forms: Form, operands: tuple[Float64, ...], normal: float = FLOAT_NORMAL, largest: float = math.inf
) -> tuple[Float64, NDArray[np.bool_]]:
    """Evaluate all forms on operands that hold inf or nan.

    Each form is evaluated in float64, and in float32 with operands below `normal` flushed to zero: the product of inf
    with a number that an implementation may take for zero is inf or nan, and so is that with an underflowing product.
    Where operands may be rounded to a format that ends at `largest`, it is evaluated with inf in their place as well.

    Returns the value of the first form in float64, and where the forms do not agree on being finite, nan, or one of
    the two infinities. There nothing can be required.
    """
    with np.errstate(all="ignore"):
        flushed = tuple(np.where(np.abs(operand) < normal, 0.0, operand).astype(np.float32) for operand in operands)
        ways = [operands, flushed]
        if any((finite_part(np.abs(part)) > largest).any() for part in flushed):
            ways.append(tuple(np.where(np.abs(part) > largest, np.copysign(np.inf, part), part) for part in flushed))
        value: Float64 = forms[0](*operands)
        settled = np.ones(value.shape, np.bool_)
        for form in forms:
            for way in ways:
                if form is not forms[0] or way is not operands:
                    settled &= alike(value, form(*way))
    return value, ~settled
