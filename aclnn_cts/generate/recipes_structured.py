"""Recipes of integers with a structure: lengths of segments and where they end, permutations, boxes, packed bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, itemsize, numpy_dtype
from aclnn_cts.generate.layouts import Array, integer_range
from aclnn_cts.generate.recipes_exact import axis_of
from aclnn_cts.generate.request import Request, Words, joined, shifted

_DEFAULT_TOTAL = 16
_MOST = 2**62 - 1
_SIDE = 8
"""How many coordinates and lengths a box has to choose from: every dtype holds their sums."""
_SHARES = 256
"""Steps in which a bit's probability is counted."""

_Numbers = NDArray[np.int64]


def total_of(tensor: Tensor, data: Data) -> int:
    """What the lengths of all segments add up to: `high`, clipped to what the dtype holds."""
    high = _DEFAULT_TOTAL if data.high is None else data.high
    return min(max(high, 0), integer_range(tensor.dtype)[1], _MOST)


def offsets(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """0, then where each segment ends: of one more element than there are segments."""
    return _each(requests, counts, lambda request, words: _ends(request, words, words.shape[1] - 1))


def ends(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Where each segment ends; the last is the total."""
    return _each(requests, counts, lambda request, words: _ends(request, words, words.shape[1])[:, 1:])


def lengths(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Lengths of segments, which add up to the total."""
    return _each(requests, counts, lambda request, words: np.diff(_ends(request, words, words.shape[1]), axis=1))


def partial_lengths(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Lengths of segments but for the last, so that they add up to the total at most."""
    return _each(
        requests, counts, lambda request, words: np.diff(_ends(request, words, words.shape[1] + 1), axis=1)[:, :-1]
    )


def _ends(request: Request, words: Words, segments: int) -> _Numbers:
    """0 and where so many segments end, in each line: sorted uniform places, one in four like the one before it."""
    total = total_of(request.tensor, request.data)
    least = min(max(request.data.low or 0, 0), total // max(segments, 1))
    span = total - least * segments
    found = np.zeros((words.shape[0], segments + 1), np.int64)
    if segments:
        words = words[:, : segments - 1]
        places = np.sort((words >> np.uint64(2)) % np.uint64(span + 1), axis=1).view(np.int64)
        places[(words & np.uint64(3)) == 0] = 0
        found[:, 1:-1] = np.maximum.accumulate(places, axis=1)
        found[:, -1] = span
    found += np.arange(segments + 1) * least
    return found


def permutation(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The numbers from low on, each once: in the whole tensor, or in each line along the axis where one is given."""
    parts: list[Array] = []
    for request, count in zip(requests, counts, strict=True):
        least, most = integer_range(request.tensor.dtype)
        low = request.data.low or 0
        if request.data.axis is None:
            places = _ranks(request.raw(count)[np.newaxis, :])[0]
        else:
            places = _along(request, count, lambda _request, words: _ranks(words))
        values = np.clip(places, least - low, most - low) + low
        parts.append(shifted(values.view(np.uint64), [0], [count], request.tensor.dtype))
    return joined(parts)


def _ranks(words: Words) -> _Numbers:
    return np.argsort(words, axis=1, kind="stable").astype(np.int64, copy=False)


def boxes(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """In each line an index below the total, then pairs of coordinates: the second is greater than the first."""
    return _each(requests, counts, _boxes)


def _boxes(request: Request, words: Words) -> _Numbers:
    found = np.zeros(words.shape, np.int64)
    found[:, :1] = words[:, :1] % np.uint64(max(total_of(request.tensor, request.data), 1))
    found[:, 1:] = words[:, 1:] % np.uint64(_SIDE)
    found[:, 2::2] += found[:, 1:-1:2] + 1
    return np.minimum(found, min(integer_range(request.tensor.dtype)[1], _MOST))


def bits(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Elements whose bits are 1 with the probability `mean`; 0 or 1 where the dtype is no integer."""
    return joined([_bits(request, count) for request, count in zip(requests, counts, strict=True)])


def _bits(request: Request, count: int) -> Array:
    dtype = request.tensor.dtype
    whole = DTYPES[dtype].kind in ("signed", "unsigned")
    width = 8 * itemsize(dtype) if whole else 1
    mean = 0.5 if request.data.mean is None else request.data.mean
    ones = round(_SHARES * min(max(mean, 0.0), 1.0)) if not math.isnan(mean) else 0
    words = request.raw(-(-count * width // 8)).astype("<u8", copy=False)
    drawn = words.view(np.uint8)[: count * width] < ones
    if not whole:
        return shifted(drawn.astype(np.uint64), [0], [count], dtype)
    packed = np.packbits(drawn, bitorder="little").view(f"<u{width // 8}")
    return packed.astype(f"u{width // 8}", copy=False).view(numpy_dtype(dtype))


def _each(requests: Sequence[Request], counts: Sequence[int], lines: Callable[[Request, Words], _Numbers]) -> Array:
    """Each tensor's lines along its axis, in the tensors' dtype."""
    found = [_along(request, count, lines) for request, count in zip(requests, counts, strict=True)]
    return shifted(joined(found).view(np.uint64), [0], [sum(counts)], requests[0].tensor.dtype)


def _along(request: Request, count: int, lines: Callable[[Request, Words], _Numbers]) -> _Numbers:
    """The flat contents of a tensor from what `lines` makes of a word for each place, the axis being the last one."""
    shape = request.tensor.shape or (1,)
    axis = axis_of(request.tensor, request.data.axis) if request.tensor.shape else 0
    moved = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    made = lines(request, request.raw(count).reshape(-1, shape[axis]))
    return np.ascontiguousarray(np.moveaxis(made.reshape(moved), -1, axis)).reshape(-1)
