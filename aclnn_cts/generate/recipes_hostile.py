"""Recipes of hostile floating data, most of them built from the bits of the format.

Neither rounding nor a mode of the processor (flushing subnormals, say) comes between the words and such elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.generate.layouts import Array, FloatLayout, to_storage
from aclnn_cts.generate.recipes_exact import axis_of, hot_places
from aclnn_cts.generate.recipes_real import normal_values
from aclnn_cts.generate.request import Request, each, from_bits, layout_of, taken

_SIGN_SHIFT = np.uint64(63)
_MIDDLE_SHIFT = np.uint64(52)
_MIDDLE_MASK = np.uint64(0x7FF)
_LOW_MASK = np.uint64(2**52 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: spreads a word over the top bits of its product (Knuth, TAOCP vol. 3, 6.4)."""

_CANCEL_EXPONENTS = 17
_CANCEL_MARGIN = 4

_SWAMPING = 2.0**10
_SWAMPED_DEVIATION = 2.0**-8


def _fields(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The top bit of each word, and the eleven bits below it."""
    return numbers >> _SIGN_SHIFT, (numbers >> _MIDDLE_SHIFT) & _MIDDLE_MASK


def wide(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform exponents from low to high (all normal ones by default), random signs and mantissas."""
    layout = layout_of(requests)
    ranges = [_exponents(request.data, layout) for request in requests]
    numbers = taken(requests, counts)
    sign, middle = _fields(numbers)
    field = (middle * each([high - low + 1 for low, high in ranges], counts)) >> np.uint64(11)
    field += each([low + layout.bias for low, _ in ranges], counts)
    return from_bits(requests, sign, field, numbers & np.uint64((1 << layout.mantissa) - 1))


def _exponents(data: Data, layout: FloatLayout) -> tuple[int, int]:
    """The inclusive bounds of `wide`, within those of normal numbers."""
    least, most = 1 - layout.bias, layout.bias - (1 if layout.tapered else 0)
    low = least if data.low is None else min(max(data.low, least), most)
    return low, max(most, low) if data.high is None else min(max(data.high, low), most)


def subnormal(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Subnormal numbers of the dtype, never zero, of every magnitude down to the smallest."""
    layout = layout_of(requests)
    numbers = taken(requests, counts)
    sign, middle = _fields(numbers)
    mantissa = numbers & np.uint64((1 << layout.mantissa) - 1)
    mantissa >>= (middle * np.uint64(layout.mantissa)) >> np.uint64(11)
    return from_bits(requests, sign, np.uint64(0), np.maximum(mantissa, np.uint64(1)))


def large(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Finite numbers from a quarter of the largest one up to it, of both signs."""
    layout = layout_of(requests)
    numbers = taken(requests, counts)
    sign, middle = _fields(numbers)
    field = np.uint64(layout.most >> layout.mantissa) - (middle & np.uint64(1))
    mantissa = numbers & np.uint64((1 << layout.mantissa) - 1)
    if not layout.infinite:
        most = np.uint64(layout.most & ((1 << layout.mantissa) - 1))
        mantissa = np.where(field == layout.top, np.minimum(mantissa, most), mantissa)
    return from_bits(requests, sign, field, mantissa)


def special(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 1, one element in eight inf, -inf, nan or -0.0; one at least is not finite."""
    layout, dtype = layout_of(requests), requests[0].tensor.dtype
    numbers = taken(requests, counts)
    bits = to_storage(normal_values(numbers, 0.0, 1.0), dtype).view(layout.word)
    words = layout.specials
    kinds = ((numbers * _GOLDEN) >> np.uint64(59)).view(np.int64)
    chosen = kinds < len(words)
    bits[chosen] = words[kinds[chosen]]
    first = 0
    for request, count in zip(requests, counts, strict=True):
        place, kind = request.side_words(2)
        forced = (place * request.tensor.numel >> 64) - request.start
        if 0 <= forced < count:
            bits[first + forced] = words[kind * 3 >> 64]
        first += count
    return bits.view(numpy_dtype(dtype))


def swamped(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 2^-8, one element in four 2^10 and one in four -2^10.

    While a sum holds the large ones, FLOAT keeps little more than the leading digits of the others; where as many of
    either sign meet, it is the others that are left, as the order of the sum has spoilt them.
    """
    numbers = taken(requests, counts)
    values = normal_values(numbers, 0.0, _SWAMPED_DEVIATION)
    kinds = (numbers * _GOLDEN) >> np.uint64(62)
    values[kinds == 0] = _SWAMPING
    values[kinds == 1] = -_SWAMPING
    return to_storage(values, requests[0].tensor.dtype)


def dominated(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 2^-8, but 2^10 once in each line along the axis: mass in one term."""
    values = normal_values(taken(requests, counts), 0.0, _SWAMPED_DEVIATION)
    start = 0
    for request, count in zip(requests, counts, strict=True):
        axis = -1 if request.data.axis is None else request.data.axis
        values[start : start + count][hot_places(request, count, axis)] = _SWAMPING
        start += count
    return to_storage(values, requests[0].tensor.dtype)


def cancel(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Pairs of neighbours along the axis, which sum to one to four units in the last place of either.

    The axis is the last one of two elements or more where none is given. The first of a pair is
    s * m * 2^(e - p + 1) for a sign s, e from -8 to 8, m from 2^(p - 1) + 4 to 2^p - 5, p the precision.
    """
    layout = layout_of(requests)
    numbers = taken(requests, counts)
    sign, middle = _fields(numbers)
    margin = min(_CANCEL_MARGIN, (1 << layout.mantissa) // 2 - 1)
    least = (1 << layout.mantissa) + margin
    most = (2 << layout.mantissa) - 1 - margin
    magnitude = np.uint64(least) + (numbers & _LOW_MASK) % np.uint64(most - least + 1)
    exponents = ((middle * np.uint64(_CANCEL_EXPONENTS)) >> np.uint64(11)).view(np.int64)
    scale = np.array([2.0 ** (exponent - 8 - layout.mantissa) for exponent in range(_CANCEL_EXPONENTS)])
    values = magnitude.astype(np.float64) * (1.0 - 2.0 * sign.astype(np.float64))
    powers = scale[exponents]
    start = 0
    for request, count in zip(requests, counts, strict=True):
        own = slice(start, start + count)
        _pair(request, values[own], powers[own], numbers[own])
        start += count
    return to_storage(values * powers, requests[0].tensor.dtype)


def _pair(
    request: Request, values: NDArray[np.float64], powers: NDArray[np.float64], numbers: NDArray[np.uint64]
) -> None:
    """Set the second of each pair, in place; all are flat."""
    shape = request.tensor.shape
    if not shape:
        return
    axis = _pair_axis(request.tensor, request.data.axis)
    # Views: what is set through them stands in `values` and `powers`.
    line, power, word = (np.moveaxis(flat.reshape(shape), axis, -1) for flat in (values, powers, numbers))
    pairs = shape[axis] // 2 * 2
    words = word[..., 1:pairs:2]
    units = (np.uint64(1) + (words & np.uint64(3))).astype(np.float64)
    units *= 1.0 - 2.0 * (words >> _SIGN_SHIFT).astype(np.float64)
    line[..., 1:pairs:2] = -(line[..., 0:pairs:2] + units)
    power[..., 1:pairs:2] = power[..., 0:pairs:2]


def _pair_axis(tensor: Tensor, axis: int | None) -> int:
    if axis is not None:
        return axis_of(tensor, axis)
    return max((place for place, size in enumerate(tensor.shape) if size > 1), default=0)
