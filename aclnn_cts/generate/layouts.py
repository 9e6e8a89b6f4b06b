"""How elements lie in bits: what an exact recipe must know of a dtype to stay inside it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import DTYPES, from_components, numpy_dtype
from aclnn_cts.core.hifloat8 import DENORMAL, INFINITY, NAN
from aclnn_cts.core.rounding import BINARY_FORMATS, stored

Array: TypeAlias = NDArray[Any]


class FloatLayout(msgspec.Struct, frozen=True):
    """A binary format of IEEE 754's kind (IEEE 754-2019, section 3.4): fields of an element from its low bits on."""

    mantissa: int
    """Bits that are stored; the precision is one more."""
    exponent: int
    """Bits of the biased exponent."""
    word: np.dtype[Any]
    """The unsigned integer of the element's size."""
    infinite: bool = True
    """Whether the topmost exponent is that of infinities and nans; else all its bits set are the only nan."""
    tapered: bool = False
    """HIFLOAT8: not the element's own fields, but numbers that have as many bits or more. They are rounded to it."""

    @property
    def precision(self) -> int:
        """Bits of the significand."""
        return self.mantissa + 1

    @property
    def bias(self) -> int:
        """What the exponent field holds above the exponent."""
        return (1 << (self.exponent - 1)) - (0 if self.tapered else 1)

    @property
    def top(self) -> int:
        """The topmost exponent field."""
        return (1 << self.exponent) - 1

    @property
    def most(self) -> int:
        """The bits of the largest finite number."""
        if self.tapered:
            return self.top << self.mantissa
        return (self.top << self.mantissa) - 1 if self.infinite else (1 << (self.mantissa + self.exponent)) - 2

    @property
    def largest(self) -> float:
        """The largest finite number."""
        field, mantissa = divmod(self.most, 1 << self.mantissa)
        return (1.0 + mantissa * 2.0**-self.mantissa) * 2.0 ** (field - self.bias)

    @property
    def specials(self) -> Array:
        """The elements inf, -inf, nan and -0.0, as words.

        A format without infinities has its only nan for all three, and HIFLOAT8 its only zero for -0.0.
        """
        sign = 1 << (8 * self.word.itemsize - 1)
        if self.tapered:
            words = [INFINITY, INFINITY | sign, NAN, 0]
        else:
            infinity = self.most + 1
            quiet = 1 << (self.mantissa - 1) if self.infinite else 0
            words = [infinity, infinity | sign, infinity | quiet, sign]
        return np.array(words, self.word)

    def numbers(self, sign: Array, field: Array | np.uint64, mantissa: Array) -> NDArray[np.float64]:
        """The numbers of a tapered format with these fields; where the exponent's is 0, powers of two."""
        fractions = 1.0 + np.ldexp(mantissa.astype(np.float64), -self.mantissa)
        normal = np.ldexp(fractions, np.asarray(field, np.int64) - self.bias)
        denormal = np.ldexp(1.0, mantissa.astype(np.int64) - DENORMAL)
        return np.where(field, np.minimum(normal, self.largest), denormal) * (1.0 - 2.0 * sign.astype(np.float64))


FLOAT_LAYOUTS: Mapping[str, FloatLayout] = {
    "FLOAT16": FloatLayout(10, 5, np.dtype(np.uint16)),
    "BF16": FloatLayout(7, 8, np.dtype(np.uint16)),
    "FLOAT": FloatLayout(23, 8, np.dtype(np.uint32)),
    "DOUBLE": FloatLayout(52, 11, np.dtype(np.uint64)),
    "FLOAT8_E5M2": FloatLayout(2, 5, np.dtype(np.uint8)),
    "FLOAT8_E4M3FN": FloatLayout(3, 4, np.dtype(np.uint8), infinite=False),
    "HIFLOAT8": FloatLayout(3, 5, np.dtype(np.uint8), infinite=False, tapered=True),
}
"""By floating aclDataType with a significand."""


def fill_dtype(dtype: str) -> str:
    """The dtype in which recipes fill a tensor: FLOAT for the one that holds powers of two alone; else its own."""
    return "FLOAT" if dtype == "FLOAT8_E8M0" else dtype


def as_tensor_dtype(array: Array, dtype: str) -> Array:
    """What a recipe filled, in the tensor's dtype, and complex where that is."""
    return to_storage(array.astype(np.float64), dtype) if fill_dtype(dtype) != dtype else from_components(array, dtype)


@functools.cache
def storage_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of a tensor's memory: an unsigned integer of the element's size where NumPy has no counterpart.

    Such a dtype (INT4, COMPLEX32) appears in calls that must be refused for it, and those need
    memory like any other.
    """
    try:
        return numpy_dtype(dtype)
    except KeyError:
        return np.dtype(f"u{max(DTYPES[dtype].size, 1)}")


@functools.cache
def integer_range(dtype: str) -> tuple[int, int]:
    """The bounds between which a dtype holds every integer: up to 2^precision for a floating dtype."""
    kind = DTYPES[dtype].kind
    if kind == "bool":
        return 0, 1
    if kind in ("signed", "unsigned"):
        limits = np.iinfo(numpy_dtype(dtype))
        return int(limits.min), int(limits.max)
    most = 1 << FLOAT_LAYOUTS[dtype].precision if dtype in FLOAT_LAYOUTS else 0
    return -most, most


def to_storage(values: NDArray[np.float64], dtype: str) -> Array:
    """Float64 values in the dtype of a tensor: rounded to nearest even; saturated, nan to 0, where it is an integer.

    A floating dtype without infinities saturates too, but for inf, which becomes nan; one without a sign takes
    magnitudes, and its smallest number for 0.

    The caller has switched NumPy's warnings of overflow off: a value beyond the largest finite number is infinite.
    """
    kind = DTYPES[dtype].kind
    if kind == "float":
        form = BINARY_FORMATS[dtype]
        if not form.infinite:
            values = np.where(np.isinf(values), np.nan, np.clip(values, -form.largest, form.largest))
        return stored(values if form.signed else np.abs(values), dtype)
    if kind == "bool":
        return np.asarray(values != 0)
    if kind == "other":
        return np.zeros(values.shape, storage_dtype(dtype))
    low, high = integer_range(dtype)
    whole = np.rint(np.where(np.isnan(values), 0.0, values))
    # float(high) may be 2^63 or 2^64, which the cast could not take: those elements are set afterwards.
    above, below = whole >= float(high), whole <= float(low)
    result: Array = np.where(above | below, 0.0, whole).astype(numpy_dtype(dtype))
    result[above] = high
    result[below] = low
    return result
