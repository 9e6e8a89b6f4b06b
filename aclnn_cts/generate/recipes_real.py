"""Recipes of floating data: what training produces, and hostile data built from the bits of the format."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.rounding import BINARY_FORMATS, blocks, is_large, widen
from aclnn_cts.generate.layouts import Array, FloatLayout, storage_dtype, to_storage
from aclnn_cts.generate.recipes_exact import axis_of, hot_places
from aclnn_cts.generate.request import (
    Request,
    Words,
    concatenate,
    from_bits,
    layout_of,
    next_half_words,
    next_words,
    repeat_integers,
    repeat_numbers,
)

Rows: TypeAlias = "NDArray[np.float64]"
"""Numbers of a parameter, a row for each element to fill; or one number for each."""
_Parameter: TypeAlias = "float | NDArray[np.float64]"
"""Of all elements, or of each."""

_LANES = np.uint64(0x0000FFFF0000FFFF)
_GREATEST_SUM = 4 * 65535
_CENTRE = 2.0 * 65535.0
_DEVIATION = math.sqrt(4.0 * (2.0**32 - 1.0) / 12.0)
"""Of the sum of four independent uniform integers from 0 to 65535: each has the variance (65536^2 - 1) / 12."""

_DEFAULT_EPSILON = 1e-6


def normal_values(numbers: NDArray[np.uint64], mean: _Parameter, std: _Parameter) -> NDArray[np.float64]:
    """One value a word: the sum s of its four 16-bit fields, as (s - 131070) / deviation * std + mean."""
    return _bell(_sums(numbers), mean, std)


def _sums(numbers: Words) -> Words:
    """Of the four 16-bit fields of each word."""
    lanes: Words = numbers >> np.uint64(16)
    lanes &= _LANES
    lanes += numbers & _LANES
    sums: Words = lanes >> np.uint64(32)
    lanes &= np.uint64(0xFFFFFFFF)
    sums += lanes
    return sums


def _bell(sums: Words, mean: _Parameter, std: _Parameter) -> NDArray[np.float64]:
    values: NDArray[np.float64] = sums.astype(np.float64)
    values -= _CENTRE
    values /= _DEVIATION
    values *= std
    values += mean
    return values


@functools.lru_cache(maxsize=8)
def _bell_table(mean: float, std: float, dtype: str) -> Array:
    """The element of every sum."""
    table = to_storage(_bell(np.arange(_GREATEST_SUM + 1, dtype=np.uint64), mean, std), dtype)
    table.flags.writeable = False
    return table


def normal(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """A bell of the given mean and standard deviation."""
    mean = repeat_numbers([0.0 if request.data.mean is None else request.data.mean for request in requests], counts)
    std = repeat_numbers([1.0 if request.data.std is None else request.data.std for request in requests], counts)
    tensor = requests[0].tensor
    if isinstance(mean, float) and isinstance(std, float) and len(requests) == 1 and tensor.numel > _GREATEST_SUM:
        return _large_normal(requests[0], counts[0], _bell_table(mean, std, tensor.dtype))
    return to_storage(normal_values(next_words(requests, counts), mean, std), tensor.dtype)


def _large_normal(request: Request, count: int, table: Array) -> Array:
    """Elements of a table by the sums, block by block."""
    result: Array = np.empty(count, table.dtype)
    for place in blocks(count):
        sums = _sums(request.raw(place.stop - place.start)).view(np.int64)
        table.take(sums, out=result[place], mode="clip")  # every sum has an element: clipping alone needs no copy
    return result


_OUTLIER = 1000.0
"""What an outlier is multiplied by, and of how many elements one is an outlier."""


def outliers(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal`, with one element in 1,000, and one at least, multiplied by 1,000 and within the dtype's range."""
    parts = []
    for request, count in zip(requests, counts, strict=True):
        data = request.data
        values = normal_values(
            request.raw(count), 0.0 if data.mean is None else data.mean, 1.0 if data.std is None else data.std
        )
        # The elements of the least keys: distinct places, each as likely as any other.
        number = max(1, count // int(_OUTLIER))
        places = np.argpartition(request.raw(count), number - 1)[:number] if count else slice(0)
        values[places] = np.clip(
            values[places] * _OUTLIER, -_largest(request.tensor.dtype), _largest(request.tensor.dtype)
        )
        parts.append(values)
    return to_storage(concatenate(parts), requests[0].tensor.dtype)


def _largest(dtype: str) -> float:
    """The largest finite number of a floating dtype."""
    return BINARY_FORMATS[dtype].largest if dtype in BINARY_FORMATS else math.inf


def uniform_bounds(data: Data) -> tuple[int, int]:
    """The bounds of `uniform`: -1 and 1, moved where only one is given and lies beyond."""
    low = min(-1, data.high if data.high is not None else -1) if data.low is None else data.low
    return low, max(1, low) if data.high is None else data.high


def uniform(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Real numbers low + (high - low) * k / 2^32 for a uniform k below 2^32, times 2^exponent."""
    bounds = [uniform_bounds(request.data) for request in requests]
    values = next_half_words(requests, counts).astype(np.float64)
    values *= 2.0**-32
    values *= repeat_numbers([float(high - low) for low, high in bounds], counts)
    values += repeat_numbers([float(low) for low, _ in bounds], counts)
    exponents = [request.data.exponent or 0 for request in requests]
    if any(exponents):
        values *= repeat_numbers([2.0**exponent for exponent in exponents], counts)
    return to_storage(values, requests[0].tensor.dtype)


def repeated(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """One number of `uniform` for each line along the axis, in every place of it."""
    parts = []
    for request, count in zip(requests, counts, strict=True):
        shape = request.tensor.shape or (1,)
        axis = axis_of(request.tensor, request.data.axis) if request.tensor.shape else 0
        numbers = uniform((request,), (count // shape[axis],)).reshape(*shape[:axis], 1, *shape[axis + 1 :])
        parts.append(numbers.repeat(shape[axis], axis).reshape(-1))
    return concatenate(parts)


def positive(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """2^e * (1 + f) with e of -2, -1, 0, 1 and f from 2^-7 to 1 - 2^-7, so that rounding stays between 1/4 and 4."""
    numbers = next_half_words(requests, counts)
    fraction = numbers & np.uint64(2**30 - 1)
    fraction = np.uint64(2**23) + ((fraction * np.uint64(2**30 - 2**24)) >> np.uint64(30))
    values = (fraction + np.uint64(2**30)).astype(np.float64)
    values *= 2.0**-30
    values *= np.array([0.25, 0.5, 1.0, 2.0]).take((numbers >> np.uint64(30)).view(np.int64))
    return to_storage(values, requests[0].tensor.dtype)


def softmax(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Positive integers over their sum along the axis, each 1 + (a * b >> 16) for two uniform 16-bit numbers."""
    if len(counts) == 1 and is_large(counts[0]):
        return _large_softmax(requests[0], counts[0])
    values = _weights(requests, counts)
    start = 0
    for request, count in zip(requests, counts, strict=True):
        shape = request.tensor.shape
        axis = axis_of(request.tensor, request.data.axis) if shape else None
        _divide(values[start : start + count], shape, axis)
        start += count
    return to_storage(values, requests[0].tensor.dtype)


def _weights(requests: Sequence[Request], counts: Sequence[int]) -> NDArray[np.float64]:
    numbers = next_half_words(requests, counts)
    weights = numbers & np.uint64(0xFFFF)
    numbers >>= np.uint64(16)
    weights *= numbers
    weights >>= np.uint64(16)
    weights += np.uint64(1)
    values: NDArray[np.float64] = weights.astype(np.float64)
    return values


def _divide(values: NDArray[np.float64], shape: tuple[int, ...], axis: int | None) -> None:
    """Divide flat values by their sums along an axis of a shape."""
    lines = values.reshape(shape)
    # A sum of such integers is exact in any order; that of a tensor of rank 0 is its element.
    lines /= lines.sum(axis=axis, keepdims=True)


def _large_softmax(request: Request, count: int) -> Array:
    """A tensor block by block; as a whole where a block had an odd number of elements, of which two share a word."""
    shape = request.tensor.shape
    axis = axis_of(request.tensor, request.data.axis)
    number = math.prod(shape[:axis])
    each = count // number
    places = list(blocks(number, each=each))
    if any((place.stop - place.start) * each % 2 for place in places[:-1]):
        places = [slice(0, number)]
    result: Array = np.empty(count, storage_dtype(request.tensor.dtype))
    for place in places:
        values = _weights((request,), ((place.stop - place.start) * each,))
        _divide(values, (place.stop - place.start, shape[axis], each // shape[axis]), 1)
        result[place.start * each : place.stop * each] = to_storage(values, request.tensor.dtype)
    return result


def rstd(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """1 / sqrt(sum of squares / n + epsilon) of each row of x, n elements long.

    The rows are x in row-major order cut into as many parts as rstd has elements: the dimensions that rstd lacks are
    the trailing ones. Where x cannot be cut so (in an invalid case it is null, or of another shape), `positive`.
    """
    return _of_rows(requests, counts, _inverse_roots, positive)


def invstd(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """1 / sqrt(variance + epsilon) of each row of x, the mean being that of `mean`; rows as there, else `positive`."""
    return _of_rows(requests, counts, _inverse_deviations, positive)


def mean(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The sum of each row of x over its n elements.

    With an axis, a row is all that has one place along it, and without one rows are those of `rstd`. Where x has no
    such rows, `normal`.
    """
    return _of_rows(requests, counts, _means, normal)


def _of_rows(
    requests: Sequence[Request],
    counts: Sequence[int],
    statistic: Callable[[Sequence[Rows], Sequence[Request], Sequence[int]], Rows],
    otherwise: Callable[[Sequence[Request], Sequence[int]], Array],
) -> Array:
    """A number for each row of another parameter; of tensors that fit no rows, what another recipe gives."""
    rows = [_rows(request, count) for request, count in zip(requests, counts, strict=True)]
    found = [item for item in rows if item is not None]
    if len(found) < len(rows):
        return concatenate(
            [
                otherwise((request,), (count,)) if row is None else _of_rows((request,), (count,), statistic, otherwise)
                for request, count, row in zip(requests, counts, rows, strict=True)
            ]
        )
    result = statistic(found, requests, counts)
    # The sign of a nan that arithmetic makes differs between processors.
    result[np.isnan(result)] = math.nan
    return to_storage(result, requests[0].tensor.dtype)


def _means(rows: Sequence[Rows], requests: Sequence[Request], counts: Sequence[int]) -> Rows:
    sums = concatenate([_halving_sum(item.copy()) for item in rows])
    sums /= repeat_numbers([float(item.shape[1]) for item in rows], counts)
    return sums


def _inverse_roots(rows: Sequence[Rows], requests: Sequence[Request], counts: Sequence[int]) -> Rows:
    values = concatenate([_halving_sum(item * item) for item in rows])
    values /= repeat_numbers([float(item.shape[1]) for item in rows], counts)
    values += repeat_numbers(
        [_DEFAULT_EPSILON if item.data.epsilon is None else item.data.epsilon for item in requests], counts
    )
    roots: Rows = 1.0 / np.sqrt(values)
    return roots


def _inverse_deviations(rows: Sequence[Rows], requests: Sequence[Request], counts: Sequence[int]) -> Rows:
    each = [_means((item,), (), (item.shape[0],)) for item in rows]
    return _inverse_roots([item - mean[:, None] for item, mean in zip(rows, each, strict=True)], requests, counts)


def _rows(request: Request, count: int) -> Rows | None:
    """The source as rows, one an element to fill; None where it cannot be cut so."""
    source, axis = request.source, request.data.axis
    if source is None or not source.size or source.size % count:
        return None
    if axis is not None:
        if not -source.ndim <= axis < source.ndim or source.shape[axis] != count:
            return None
        source = np.moveaxis(source, axis, 0)
    rows = source.reshape(count, -1)
    return widen(rows.real if rows.dtype.kind == "c" else rows)


def _halving_sum(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of rows: the second half added to the first, element by element, until one column is left.

    A middle column left over by an odd width goes with the first half as it is. The rows are overwritten.
    """
    width = rows.shape[1]
    while width > 1:
        half = width // 2
        kept = width - half
        first = rows[:, :half]
        np.add(first, rows[:, kept:width], out=first)
        width = kept
    sums: NDArray[np.float64] = rows[:, 0].copy()
    return sums


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
    numbers = next_words(requests, counts)
    sign, middle = _fields(numbers)
    field = (middle * repeat_integers([high - low + 1 for low, high in ranges], counts)) >> np.uint64(11)
    field += repeat_integers([low + layout.bias for low, _ in ranges], counts)
    return from_bits(requests, sign, field, numbers & np.uint64((1 << layout.mantissa) - 1))


def _exponents(data: Data, layout: FloatLayout) -> tuple[int, int]:
    """The inclusive bounds of `wide`, within those of normal numbers."""
    least, most = 1 - layout.bias, layout.bias - (1 if layout.tapered else 0)
    low = least if data.low is None else min(max(data.low, least), most)
    return low, max(most, low) if data.high is None else min(max(data.high, low), most)


def subnormal(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Subnormal numbers of the dtype, never zero, of every magnitude down to the smallest."""
    layout = layout_of(requests)
    numbers = next_words(requests, counts)
    sign, middle = _fields(numbers)
    mantissa = numbers & np.uint64((1 << layout.mantissa) - 1)
    mantissa >>= (middle * np.uint64(layout.mantissa)) >> np.uint64(11)
    return from_bits(requests, sign, np.uint64(0), np.maximum(mantissa, np.uint64(1)))


def large(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Finite numbers from a quarter of the largest one up to it, of both signs."""
    layout = layout_of(requests)
    numbers = next_words(requests, counts)
    sign, middle = _fields(numbers)
    field = np.uint64(layout.most >> layout.mantissa) - (middle & np.uint64(1))
    mantissa = numbers & np.uint64((1 << layout.mantissa) - 1)
    if not layout.infinite:
        most = np.uint64(layout.most & ((1 << layout.mantissa) - 1))
        mantissa = np.where(field == layout.top, np.minimum(mantissa, most), mantissa)
    return from_bits(requests, sign, field, mantissa)


def patterns(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The bits 0, 1, 2, ... of the dtype: of one with 16 bits, 65,536 elements hold every number, infinity and nan."""
    dtype = numpy_dtype(requests[0].tensor.dtype)
    positions = [
        np.arange(request.start, request.start + count) for request, count in zip(requests, counts, strict=True)
    ]
    return concatenate(positions).astype(f"u{dtype.itemsize}").view(dtype)


def special(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 1, one element in eight inf, -inf, nan or -0.0; one at least is not finite."""
    return _with_specials(requests, counts, 4)


def infinite(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 1, one element in 32 inf, one at least; a format without inf has none."""
    first = layout_of(requests).specials[:1].view(numpy_dtype(requests[0].tensor.dtype))
    return _with_specials(requests, counts, 1) if np.isinf(widen(first)[0]) else normal(requests, counts)


def _with_specials(requests: Sequence[Request], counts: Sequence[int], most: int) -> Array:
    """`normal` with the first so many of the special elements among the numbers; -0.0 is never the forced one."""
    layout, dtype = layout_of(requests), requests[0].tensor.dtype
    numbers = next_words(requests, counts)
    bits = to_storage(normal_values(numbers, 0.0, 1.0), dtype).view(layout.word)
    words = layout.specials[:most]
    kinds = ((numbers * _GOLDEN) >> np.uint64(59)).view(np.int64)
    chosen = kinds < len(words)
    bits[chosen] = words[kinds[chosen]]
    first = 0
    for request, count in zip(requests, counts, strict=True):
        place, kind = request.side_words(2)
        forced = (place * request.tensor.numel >> 64) - request.start
        if 0 <= forced < count:
            bits[first + forced] = words[kind * min(most, 3) >> 64]
        first += count
    return bits.view(numpy_dtype(dtype))


def swamped(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 2^-8, one element in four 2^10 and one in four -2^10.

    While a sum holds the large ones, FLOAT keeps little more than the leading digits of the others; where as many of
    either sign meet, it is the others that are left, as the order of the sum has spoilt them.
    """
    numbers = next_words(requests, counts)
    values = normal_values(numbers, 0.0, _SWAMPED_DEVIATION)
    kinds = (numbers * _GOLDEN) >> np.uint64(62)
    values[kinds == 0] = _SWAMPING
    values[kinds == 1] = -_SWAMPING
    return to_storage(values, requests[0].tensor.dtype)


def dominated(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`normal` with mean 0 and deviation 2^-8, but 2^10 once in each line along the axis: mass in one term."""
    values = normal_values(next_words(requests, counts), 0.0, _SWAMPED_DEVIATION)
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
    numbers = next_words(requests, counts)
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
