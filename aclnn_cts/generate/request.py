"""What a recipe is asked, and the few steps from raw words to numbers that recipes share."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.generate.layouts import Array, FloatLayout, float_layout, integer_range, storage_dtype, to_storage
from aclnn_cts.generate.words import words

__all__ = ["Request", "Words", "from_bits", "pieces", "scaled", "shifted", "whole_numbers"]

Words = NDArray[np.uint64]

_SIDE_BLOCK = 2**128
_MASK = 2**64 - 1


class Request(msgspec.Struct, frozen=True):
    """One tensor to fill, in row-major order. Word j of the stream `data/<name>` is the j-th that `raw` gives."""

    name: str
    tensor: Tensor
    data: Data
    raw: Callable[[int], Words]
    """The next so many words."""
    source: Array | None = None
    """The contents of the parameter that `data.of` names."""

    @property
    def layout(self) -> FloatLayout:
        """Of the tensor's floating dtype."""
        layout = float_layout(self.tensor.dtype)
        if layout is None:
            raise TypeError(
                f"{self.tensor.dtype} is not a floating dtype; `recipes.effective` should have seen to that"
            )
        return layout

    def side_words(self, count: int) -> list[int]:
        """Words for what concerns the whole tensor: from counter 2^128 on, apart from those of the elements."""
        found: list[int] = words(self.data.seed, f"data/{self.name}", count, block=_SIDE_BLOCK).tolist()
        return found


def pieces(raw: Callable[[int], Words], count: int) -> Words:
    """`count` numbers below 2^32, each in a uint64: the low half of each word, then its high half."""
    halves: Words = raw((count + 1) // 2).astype("<u8", copy=False).view("<u4")[:count].astype(np.uint64)
    return halves


def scaled(numbers: Words, span: int) -> Words:
    """Numbers below 2^32 to numbers below `span` (at most 2^32): the high half of the product."""
    result: Words = (numbers * np.uint64(span)) >> np.uint64(32)
    return result


def shifted(offsets: Words, low: int, dtype: str) -> Array:
    """`low` added to the offsets, in the dtype; the sum must be an integer that the dtype holds."""
    kind = DTYPES[dtype].kind
    if kind == "other":
        return np.zeros(offsets.shape, storage_dtype(dtype))
    # Modulo 2^64, so that bounds of both signs and the whole of UINT64 take one path.
    total: Array = offsets + np.uint64(low & _MASK)
    if kind == "unsigned":
        return total.astype(numpy_dtype(dtype), copy=False)
    return total.view(np.int64).astype(numpy_dtype(dtype), copy=False)


def whole_numbers(request: Request, offsets: Words, low: int, high: int, exponent: int) -> Array:
    """`(low + offset) * 2^exponent` in the tensor's dtype, rounded where the dtype does not hold every such integer.

    Integer dtypes take no exponent: it belongs to the floating lattice.
    """
    dtype = request.tensor.dtype
    kind = DTYPES[dtype].kind
    least, most = integer_range(dtype)
    if kind not in ("float", "complex") or (not exponent and least <= low and high <= most):
        return shifted(offsets, low, dtype)
    values = (offsets + np.uint64(low & _MASK)).view(np.int64).astype(np.float64)
    if exponent:
        values *= 2.0**exponent
    return to_storage(values, dtype)


def from_bits(request: Request, sign: Words, field: Words | np.uint64, mantissa: Words) -> Array:
    """Elements of a floating dtype from their three fields (`sign` is 0 or 1)."""
    layout = request.layout
    bits = (sign << np.uint64(layout.mantissa + layout.exponent)) | (field << np.uint64(layout.mantissa)) | mantissa
    result: Array = bits.astype(layout.word, copy=False).view(numpy_dtype(request.tensor.dtype))
    return result
