"""Recipes of integers: exact data, index data and the plainest shapes of data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.generate.layouts import Array, integer_range, storage_dtype, to_storage
from aclnn_cts.generate.request import Request, Words, each, joined, pieces, scaled, shifted, taken, whole_numbers

_SMALL = 8
"""The default magnitude of exact data: products of two stay exact in sums of thousands, in every format."""
_DEFAULT_INDICES = 16
_EDGES = (2**16 - 1, 2**16, 2**24, 2**24 + 1)
"""Beyond them an index of 16 bits, or one held in FLOAT, is another one."""


def _clamp(value: int, bounds: tuple[int, int]) -> int:
    return min(max(value, bounds[0]), bounds[1])


def integer_bounds(tensor: Tensor, data: Data) -> tuple[int, int]:
    """The inclusive bounds of `integers`, before the exponent."""
    low, high = data.low, data.high
    if low is None:
        low = -_SMALL if high is None else min(-_SMALL, high)
    if high is None:
        high = max(_SMALL, low)
    if DTYPES[tensor.dtype].kind == "float":
        return low, high
    # A case that is invalid for its dtype keeps the recipe of its valid twin, whose bounds may not fit.
    bounds = integer_range(tensor.dtype)
    return _clamp(low, bounds), _clamp(high, bounds)


def index_bounds(tensor: Tensor, data: Data) -> tuple[int, int]:
    """The inclusive bounds of index data: of an empty range (numWeights of 0, say) its low end alone."""
    low = data.low or 0
    high = low + (tensor.numel if data.recipe == "ramp" else _DEFAULT_INDICES) if data.high is None else data.high
    bounds = integer_range(tensor.dtype)
    return _clamp(low, bounds), _clamp(max(high - 1, low), bounds)


def axis_of(tensor: Tensor, axis: int | None) -> int:
    """An axis of a tensor of rank 1 or more, counted from the front; the last one for None and outside the rank."""
    rank = len(tensor.shape)
    return axis % rank if axis is not None and -rank <= axis < rank else rank - 1


def _offsets(requests: Sequence[Request], counts: Sequence[int], ranges: Sequence[tuple[int, int]]) -> Words:
    """Uniform numbers from 0 to high - low: of half a word each, where there are beyond 2^32 of a whole one."""
    spans = [high - low + 1 for low, high in ranges]
    if max(spans) <= 2**32:
        return scaled(pieces(requests, counts), each(spans, counts))
    if len(requests) > 1:
        asked = zip(requests, counts, ranges, strict=True)
        return joined([_offsets((request,), (count,), (bounds,)) for request, count, bounds in asked])
    numbers = taken(requests, counts)
    return numbers % np.uint64(spans[0]) if spans[0] < 2**64 else numbers


def integers(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high, times 2^exponent."""
    ranges = [integer_bounds(request.tensor, request.data) for request in requests]
    offsets = _offsets(requests, counts, ranges)
    exponents = [request.data.exponent or 0 for request in requests]
    return whole_numbers(offsets, ranges, exponents, counts, requests[0].tensor.dtype)


def indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high - 1."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = _offsets(requests, counts, ranges)
    return shifted(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def few_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Four values from low to high - 1, which may coincide; every element is one of them, half of all the first."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        word * (high - low + 1) >> 64
        for request, (low, high) in zip(requests, ranges, strict=True)
        for word in request.side_words(4)
    ]
    values = shifted(
        np.array(offsets, np.uint64), [low for low, _ in ranges], [4] * len(requests), requests[0].tensor.dtype
    )
    tables = values.reshape(-1, 4)[:, [0, 0, 0, 0, 1, 1, 2, 3]].reshape(-1)
    return _of_eight(tables, requests, counts)


def equal_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """One value from low to high - 1, everywhere."""
    return _one_index(requests).repeat(counts)


def hot_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high - 1, but seven of eight elements are one of them."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    numbers = taken(requests, counts)
    offsets = (numbers >> np.uint64(3)) % each([high - low + 1 for low, high in ranges], counts)
    values = shifted(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)
    return np.where(numbers & np.uint64(7), _one_index(requests).repeat(counts), values)


def end_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The two least and the two greatest values, 2^16 - 1, 2^16, 2^24 and 2^24 + 1, each clipped to low to high - 1."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        _clamp(value, bounds) - bounds[0]
        for bounds in ranges
        for value in (bounds[0], bounds[0] + 1, bounds[1] - 1, bounds[1], *_EDGES)
    ]
    tables = shifted(
        np.array(offsets, np.uint64), [low for low, _ in ranges], [8] * len(requests), requests[0].tensor.dtype
    )
    return _of_eight(tables, requests, counts)


def _of_eight(tables: Array, requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Of each tensor's eight values in a table, one for each element."""
    places = (pieces(requests, counts) >> np.uint64(29)) + each(range(0, tables.size, 8), counts)
    result: Array = tables.take(places.view(np.int64))
    return result


def _one_index(requests: Sequence[Request]) -> Array:
    """One uniform integer from low to high - 1 of each tensor."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        request.side_words(1)[0] * (high - low + 1) >> 64 for request, (low, high) in zip(requests, ranges, strict=True)
    ]
    lows = [low for low, _ in ranges]
    return shifted(np.array(offsets, np.uint64), lows, [1] * len(requests), requests[0].tensor.dtype)


def ramp(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """low, low + 1, ... up to high - 1, then low again."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    positions = joined(
        [
            np.arange(request.start, request.start + count, dtype=np.uint64)
            for request, count in zip(requests, counts, strict=True)
        ]
    )
    positions %= each([high - low + 1 for low, high in ranges], counts)
    return shifted(positions, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def zeros(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Zero bytes."""
    return np.zeros(sum(counts), storage_dtype(requests[0].tensor.dtype))


def constant(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The mean, everywhere."""
    means = [1.0 if request.data.mean is None else request.data.mean for request in requests]
    return to_storage(np.array(means, dtype=np.float64), requests[0].tensor.dtype).repeat(counts)


def one_hot(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """One 1 among zeros: in the whole tensor, or in each line along the axis where one is given."""
    dtype = requests[0].tensor.dtype
    result = np.zeros(sum(counts), storage_dtype(dtype))
    if DTYPES[dtype].kind == "other":
        return result
    one = to_storage(np.ones(1), dtype)[0]
    start = 0
    for request, count in zip(requests, counts, strict=True):
        result[start : start + count][hot_places(request, count, request.data.axis)] = one
        start += count
    return result


def hot_places(request: Request, count: int, axis: int | None) -> NDArray[np.int64] | int:
    """One place in a tensor, or one in each line along the axis where one is given."""
    tensor = request.tensor
    if axis is None or not tensor.shape:
        return request.side_words(1)[0] * count >> 64
    axis = axis_of(tensor, axis)
    length, inner = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    lines = np.arange(count // length, dtype=np.int64)
    places = scaled(pieces((request,), (count // length,)), np.uint64(length)).view(np.int64)
    return (lines // inner * length + places) * inner + lines % inner
