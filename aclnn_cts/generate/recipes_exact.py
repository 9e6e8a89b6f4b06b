"""Recipes of integers: exact data, index data and the plainest shapes of data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.generate.layouts import Array, integer_range, storage_dtype, to_storage
from aclnn_cts.generate.request import Request, Words, joined, pieces, scaled, shifted, whole_numbers

__all__ = ["axis_of", "constant", "few_indices", "index_bounds", "indices", "integer_bounds", "integers", "one_hot"]
__all__ += ["ramp", "zeros"]

_SMALL = 8
"""The default magnitude of exact data: products of two stay exact in sums of thousands, in every format."""
_DEFAULT_INDICES = 16


def _clamp(value: int, bounds: tuple[int, int]) -> int:
    return min(max(value, bounds[0]), bounds[1])


def integer_bounds(tensor: Tensor, data: Data) -> tuple[int, int]:
    """The inclusive bounds of `integers`, before the exponent."""
    low, high = data.low, data.high
    if low is None:
        low = -_SMALL if high is None else min(-_SMALL, high)
    if high is None:
        high = max(_SMALL, low)
    if DTYPES[tensor.dtype].kind in ("float", "complex"):
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


def _offsets(request: Request, count: int, low: int, high: int) -> Words:
    """Uniform numbers from 0 to high - low: of half a word each, where there are beyond 2^32 of a whole one."""
    span = high - low + 1
    if span <= 2**32:
        return scaled(pieces(request.raw, count), span)
    numbers = request.raw(count)
    return numbers % np.uint64(span) if span < 2**64 else numbers


def _many_offsets(requests: Sequence[Request], counts: Sequence[int], ranges: Sequence[tuple[int, int]]) -> Words:
    """The `_offsets` of several tensors, one after another."""
    spans = [high - low + 1 for low, high in ranges]
    if max(spans) <= 2**32:
        numbers = joined([pieces(request.raw, count) for request, count in zip(requests, counts, strict=True)])
        same = spans.count(spans[0]) == len(spans)
        return scaled(numbers, spans[0] if same else np.repeat(np.array(spans, np.uint64), counts))
    asked = zip(requests, counts, ranges, strict=True)
    return joined([_offsets(request, count, low, high) for request, count, (low, high) in asked])


def integers(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high, times 2^exponent."""
    ranges = [integer_bounds(request.tensor, request.data) for request in requests]
    offsets = _many_offsets(requests, counts, ranges)
    exponents = [request.data.exponent or 0 for request in requests]
    return whole_numbers(offsets, ranges, exponents, counts, requests[0].tensor.dtype)


def indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high - 1."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = _many_offsets(requests, counts, ranges)
    return shifted(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def few_indices(request: Request, start: int, count: int) -> Array:
    """Four values from low to high - 1, which may coincide; every element is one of them, half of all the first."""
    low, high = index_bounds(request.tensor, request.data)
    span = high - low + 1
    offsets = np.array([word * span >> 64 for word in request.side_words(4)], dtype=np.uint64)
    table = shifted(offsets, [low], [4], request.tensor.dtype)[[0, 0, 0, 0, 1, 1, 2, 3]]
    result: Array = table.take((pieces(request.raw, count) >> np.uint64(29)).view(np.int64))
    return result


def ramp(request: Request, start: int, count: int) -> Array:
    """low, low + 1, ... up to high - 1, then low again."""
    low, high = index_bounds(request.tensor, request.data)
    positions = np.arange(start, start + count, dtype=np.uint64)
    return shifted(positions % np.uint64(high - low + 1), [low], [count], request.tensor.dtype)


def zeros(request: Request, start: int, count: int) -> Array:
    """Zero bytes."""
    return np.zeros(count, storage_dtype(request.tensor.dtype))


def constant(request: Request, start: int, count: int) -> Array:
    """The mean, everywhere."""
    mean = 1.0 if request.data.mean is None else request.data.mean
    return to_storage(np.array([mean], dtype=np.float64), request.tensor.dtype).repeat(count)


def one_hot(request: Request, start: int, count: int) -> Array:
    """One 1 among zeros: in the whole tensor, or in each line along the axis where one is given."""
    tensor = request.tensor
    result = np.zeros(count, storage_dtype(tensor.dtype))
    if DTYPES[tensor.dtype].kind == "other":
        return result
    if request.data.axis is None or not tensor.shape:
        result[request.side_words(1)[0] * count >> 64] = 1
        return result
    axis = axis_of(tensor, request.data.axis)
    length, inner = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    lines = np.arange(count // length, dtype=np.int64)
    places = scaled(pieces(request.raw, count // length), length).view(np.int64)
    result[(lines // inner * length + places) * inner + lines % inner] = 1
    return result
