"""What a recipe is asked, and the few steps from raw words to numbers that recipes share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.generate.choices import stream_words
from aclnn_cts.generate.layouts import FLOAT_LAYOUTS, Array, FloatLayout, integer_range, storage_dtype, to_storage

if TYPE_CHECKING:
    from aclnn_cts.generate.attention_pass import Forward

Words = NDArray[np.uint64]

_SIDE_BLOCK = 2**128
_MASK = 2**64 - 1
_WORDS = np.dtype("<u8")
_HALVES = np.dtype("<u4")


@dataclass(frozen=True)
class CallContents:
    """The arguments of a call, with arrays for its tensors, and what several of its inputs are computed from."""

    arguments: Mapping[str, Any]

    @functools.cached_property
    def attention(self) -> Forward | None:
        """The result of the forward pass; None for arguments that make no attention."""
        from aclnn_cts.generate.attention_pass import forward  # noqa: PLC0415 - few calls have one

        return forward(self.arguments)


class Request(msgspec.Struct, frozen=True):
    """One tensor to fill, in row-major order. Word j of the stream `data/<name>` is the j-th that `raw` gives."""

    name: str
    tensor: Tensor
    data: Data
    raw: Callable[[int], Words]
    """The next so many words."""
    source: Array | None = None
    """The contents of the parameter that `data.of` names."""
    contents: CallContents | None = None
    """All of the call, for a recipe that is computed from it (`Recipe.whole`)."""
    start: int = 0
    """The first element to fill."""

    def side_words(self, count: int) -> list[int]:
        """Words for what concerns the whole tensor: from counter 2^128 on, apart from those of the elements."""
        found: list[int] = stream_words(self.data.seed, f"data/{self.name}", count, block=_SIDE_BLOCK).tolist()
        return found


def layout_of(requests: Sequence[Request]) -> FloatLayout:
    """The layout of the floating dtype that the tensors have in common."""
    return FLOAT_LAYOUTS[requests[0].tensor.dtype]


def next_words(requests: Sequence[Request], counts: Sequence[int]) -> Words:
    """The next so many words of each tensor, one after another."""
    return concatenate([request.raw(count) for request, count in zip(requests, counts, strict=True)])


def next_half_words(requests: Sequence[Request], counts: Sequence[int]) -> Words:
    """So many numbers below 2^32 of each tensor, in uint64: the low half of each word, then its high half."""
    halves = [
        request.raw((count + 1) // 2).astype(_WORDS, copy=False).view(_HALVES)[:count]
        for request, count in zip(requests, counts, strict=True)
    ]
    return concatenate(halves).astype(np.uint64)


def scale_numbers(numbers: Words, span: Words | np.uint64) -> Words:
    """Numbers below 2^32 to numbers below `span` (at most 2^32): the high half of the product."""
    result: Words = (numbers * span) >> np.uint64(32)
    return result


def concatenate(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of one dimension, one after another."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def repeat_numbers(values: Sequence[float], counts: Sequence[int]) -> NDArray[np.float64] | float:
    """Each tensor's parameter for every element of it; one number where it is the same for all."""
    first = values[0]
    return first if values.count(first) == len(values) else np.repeat(np.array(values, np.float64), counts)


def repeat_integers(values: Sequence[int], counts: Sequence[int]) -> Words | np.uint64:
    """The same of integers from 0 to 2^64 - 1."""
    first = values[0]
    if values.count(first) == len(values):
        one: np.uint64 = np.uint64(first)
        return one
    return np.repeat(np.array(values, np.uint64), counts)


def add_lows(offsets: Words, lows: Sequence[int], counts: Sequence[int], dtype: str) -> Array:
    """Each tensor's low added to its offsets, in the dtype; the sums must be integers that the dtype holds."""
    return _whole(_raised(offsets, lows, counts), dtype)


def _raised(offsets: Words, lows: Sequence[int], counts: Sequence[int]) -> Words:
    """The sums modulo 2^64, so that bounds of both signs and the whole of UINT64 take one path."""
    return offsets + repeat_integers([low & _MASK for low in lows], counts)


def _whole(total: Words, dtype: str) -> Array:
    """Integers modulo 2^64 in a dtype that holds them."""
    kind = DTYPES[dtype].kind
    if kind == "other":
        return np.zeros(total.shape, storage_dtype(dtype))
    if kind == "unsigned":
        return total.astype(numpy_dtype(dtype), copy=False)
    if dtype == "HIFLOAT8":
        return to_storage(total.view(np.int64).astype(np.float64), dtype)
    return total.view(np.int64).astype(numpy_dtype(dtype), copy=False)


def whole_numbers(
    offsets: Words, ranges: Sequence[tuple[int, int]], exponents: Sequence[int], counts: Sequence[int], dtype: str
) -> Array:
    """`(low + offset) * 2^exponent` in the tensors' dtype, rounded where the dtype does not hold every such integer.

    `ranges` (low and high), `exponents` and `counts` (of elements) are those of each tensor. Integer dtypes take no
    exponent: it belongs to the floating lattice.
    """
    total = _raised(offsets, [low for low, _ in ranges], counts)
    least, most = integer_range(dtype)
    if DTYPES[dtype].kind != "float" or (
        not any(exponents) and all(least <= low and high <= most for low, high in ranges)
    ):
        return _whole(total, dtype)
    values = total.view(np.int64).astype(np.float64)
    if any(exponents):
        values *= repeat_numbers([2.0**exponent for exponent in exponents], counts)
    return to_storage(values, dtype)


def from_bits(requests: Sequence[Request], sign: Words, field: Words | np.uint64, mantissa: Words) -> Array:
    """Elements of a floating dtype from their three fields (`sign` is 0 or 1)."""
    layout = layout_of(requests)
    if layout.tapered:
        return to_storage(layout.numbers(sign, field, mantissa), requests[0].tensor.dtype)
    bits = (sign << np.uint64(layout.mantissa + layout.exponent)) | (field << np.uint64(layout.mantissa)) | mantissa
    result: Array = bits.astype(layout.word, copy=False).view(numpy_dtype(requests[0].tensor.dtype))
    return result
