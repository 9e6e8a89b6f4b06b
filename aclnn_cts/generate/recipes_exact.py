"""Recipes of exact data: integers, indices, segments, permutations, boxes, regions, bits and positions of maxima."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, itemsize, numpy_dtype
from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.layouts import Array, integer_range, storage_dtype, to_storage
from aclnn_cts.generate.request import (
    Request,
    Words,
    add_lows,
    concatenate,
    next_half_words,
    next_words,
    repeat_integers,
    scale_numbers,
    whole_numbers,
)

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
        return scale_numbers(next_half_words(requests, counts), repeat_integers(spans, counts))
    if len(requests) > 1:
        asked = zip(requests, counts, ranges, strict=True)
        return concatenate([_offsets((request,), (count,), (bounds,)) for request, count, bounds in asked])
    numbers = next_words(requests, counts)
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
    return add_lows(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def few_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Four values from low to high - 1, which may coincide; every element is one of them, half of all the first."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        word * (high - low + 1) >> 64
        for request, (low, high) in zip(requests, ranges, strict=True)
        for word in request.side_words(4)
    ]
    values = add_lows(
        np.array(offsets, np.uint64), [low for low, _ in ranges], [4] * len(requests), requests[0].tensor.dtype
    )
    tables = values.reshape(-1, 4)[:, [0, 0, 0, 0, 1, 1, 2, 3]].reshape(-1)
    return _of_eight(tables, requests, counts)


def equal_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """One value from low to high - 1, everywhere."""
    return _one_index(requests).repeat(counts)


def distinct_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Integers from low to high - 1, none twice in a line along the axis; in a longer line they begin anew."""
    return _each(requests, counts, _distinct)


def _distinct(request: Request, words: Words) -> _Numbers:
    """Uniform numbers of a smaller range, each raised by its rank in the line."""
    low, high = index_bounds(request.tensor, request.data)
    length, several = words.shape[1], high - low + 1
    places = (words % np.uint64(max(several - length + 1, 1))).view(np.int64)
    order = np.lexsort((words, places), axis=1)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, np.arange(length)[None, :], axis=1)
    found: _Numbers = (places + ranks) % several + low
    return found


def hot_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Uniform integers from low to high - 1, but seven of eight elements are one of them."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    numbers = next_words(requests, counts)
    offsets = (numbers >> np.uint64(3)) % repeat_integers([high - low + 1 for low, high in ranges], counts)
    values = add_lows(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)
    return np.where(numbers & np.uint64(7), _one_index(requests).repeat(counts), values)


def zipf_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Integers from low to high - 1, the k-th about as often as 1/k: each octave of k is equally likely."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    numbers = next_words(requests, counts)
    spans = [high - low + 1 for low, high in ranges]
    octaves = (numbers & np.uint64(2**32 - 1)) * repeat_integers(
        [span.bit_length() for span in spans], counts
    ) >> np.uint64(32)
    first = np.uint64(1) << octaves
    size = np.minimum(first, repeat_integers(spans, counts) - first + np.uint64(1))
    offsets = first - np.uint64(1) + (numbers >> np.uint64(32)) % size
    return add_lows(offsets, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def end_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The two least and the two greatest values, 2^16 - 1, 2^16, 2^24 and 2^24 + 1, each clipped to low to high - 1."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        _clamp(value, bounds) - bounds[0]
        for bounds in ranges
        for value in (bounds[0], bounds[0] + 1, bounds[1] - 1, bounds[1], *_EDGES)
    ]
    tables = add_lows(
        np.array(offsets, np.uint64), [low for low, _ in ranges], [8] * len(requests), requests[0].tensor.dtype
    )
    return _of_eight(tables, requests, counts)


def _of_eight(tables: Array, requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Of each tensor's eight values in a table, one for each element."""
    places = (next_half_words(requests, counts) >> np.uint64(29)) + repeat_integers(range(0, tables.size, 8), counts)
    result: Array = tables.take(places.view(np.int64))
    return result


def _one_index(requests: Sequence[Request]) -> Array:
    """One uniform integer from low to high - 1 of each tensor."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    offsets = [
        request.side_words(1)[0] * (high - low + 1) >> 64 for request, (low, high) in zip(requests, ranges, strict=True)
    ]
    lows = [low for low, _ in ranges]
    return add_lows(np.array(offsets, np.uint64), lows, [1] * len(requests), requests[0].tensor.dtype)


def seen_indices(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """In line i of n along `axis` numbers from 0 to high - n + i, none twice; -1 where a line is longer than those."""
    return concatenate([_seen(request, count) for request, count in zip(requests, counts, strict=True)])


def _seen(request: Request, count: int) -> Array:
    shape, high = request.tensor.shape or (1,), 0 if request.data.high is None else request.data.high
    length = shape[-1]
    words = request.raw(count).reshape(-1, length)
    axis = request.data.axis
    if axis is not None and -len(shape) <= axis < len(shape) - 1 and axis != -1:
        inner, n = math.prod(shape[axis:][1:-1]), shape[axis]
        lines = np.arange(words.shape[0]) // inner % n - (n - 1)
    else:
        lines = np.zeros(words.shape[0], np.int64)
    several = np.maximum(min(high, _MOST) + lines, 0)[:, None]
    taken_here = np.minimum(several, length)
    # Uniform numbers of a smaller range, each raised by its rank in the line.
    places = (words % (several - taken_here + 1).astype(np.uint64)).view(np.int64)
    filled = np.arange(length) < taken_here
    places[~filled] = _MOST
    order = np.lexsort((words, places), axis=1)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, np.arange(length)[None, :], axis=1)
    found = np.where(filled, places + ranks, -1).reshape(-1)
    least, most = integer_range(request.tensor.dtype)
    return add_lows(np.clip(found, least, most).view(np.uint64), [0], [count], request.tensor.dtype)


def ramp(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """low, low + 1, ... up to high - 1, then low again."""
    ranges = [index_bounds(request.tensor, request.data) for request in requests]
    positions = concatenate(
        [
            np.arange(request.start, request.start + count, dtype=np.uint64)
            for request, count in zip(requests, counts, strict=True)
        ]
    )
    positions %= repeat_integers([high - low + 1 for low, high in ranges], counts)
    return add_lows(positions, [low for low, _ in ranges], counts, requests[0].tensor.dtype)


def zeros(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Zero bytes."""
    return np.zeros(sum(counts), storage_dtype(requests[0].tensor.dtype))


def constant(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The mean, everywhere."""
    means = [1.0 if request.data.mean is None else request.data.mean for request in requests]
    return to_storage(np.array(means, dtype=np.float64), requests[0].tensor.dtype).repeat(counts)


def one_hot(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """`high` ones in a row among zeros, 1 where it is None: in the tensor, or in each line along the axis."""
    dtype = requests[0].tensor.dtype
    result = np.zeros(sum(counts), storage_dtype(dtype))
    if DTYPES[dtype].kind == "other":
        return result
    one = to_storage(np.ones(1), dtype)[0]
    start = 0
    for request, count in zip(requests, counts, strict=True):
        ones = 1 if request.data.high is None else request.data.high
        result[start : start + count][hot_places(request, count, request.data.axis, ones)] = one
        start += count
    return result


def hot_places(request: Request, count: int, axis: int | None, ones: int = 1) -> NDArray[np.int64]:
    """Places in a row, around the end, in a tensor, or in each line along the axis where one is given."""
    tensor = request.tensor
    if axis is None or not tensor.shape:
        return ((request.side_words(1)[0] * count >> 64) + np.arange(min(max(ones, 0), count))) % count
    axis = axis_of(tensor, axis)
    length, inner = tensor.shape[axis], math.prod(tensor.shape[axis + 1 :])
    lines = np.arange(count // length, dtype=np.int64)[:, None]
    first = scale_numbers(next_half_words((request,), (count // length,)), np.uint64(length)).view(np.int64)[:, None]
    places = (first + np.arange(min(max(ones, 0), length))) % length
    return ((lines // inner * length + places) * inner + lines % inner).reshape(-1)


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
        parts.append(add_lows(values.view(np.uint64), [0], [count], request.tensor.dtype))
    return concatenate(parts)


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


_SIDES = (16, 16)
"""Height and width within which regions lie where `kernel` does not say it."""
REGION_STEPS = 4
"""Steps of regions from one whole number to the next: binary formats hold each of them."""


def regions(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """In each line an index, then x1, y1, x2 and y2 within `kernel`, a height and a width; ends are not below starts.

    An eighth of the regions are whole maps. Floating dtypes have quarters, the index too.
    """
    found = concatenate([_along(request, count, _regions) for request, count in zip(requests, counts, strict=True)])
    dtype = requests[0].tensor.dtype
    if DTYPES[dtype].kind != "float":
        return add_lows((found // REGION_STEPS).view(np.uint64), [0], [found.size], dtype)
    return to_storage(found.astype(np.float64) / REGION_STEPS, dtype)


def _regions(request: Request, words: Words) -> _Numbers:
    most = min(integer_range(request.tensor.dtype)[1], _MOST // REGION_STEPS)
    height, width = (REGION_STEPS * _clamp(side, (0, most)) for side in ((request.data.kernel or ()) + _SIDES)[:2])
    found = np.zeros(words.shape, np.int64)
    index = words[:, :1]
    found[:, :1] = index % np.uint64(max(total_of(request.tensor, request.data), 1))
    found[:, :1] = found[:, :1] * REGION_STEPS + (index >> np.uint64(62)).view(np.int64)
    is_whole = (index >> np.uint64(59)) & np.uint64(7) == 0
    for first, side in ((1, width), (2, height)):
        starts = np.where(is_whole, 0, (words[:, first::4] % np.uint64(side + 1)).view(np.int64))
        ends = words[:, first + 2 :: 4]
        left = side - starts[:, : ends.shape[1]]
        found[:, first::4] = starts
        found[:, first + 2 :: 4] = side - np.where(is_whole, 0, (ends % (left + 1).view(np.uint64)).view(np.int64))
    return found


def bits(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """Elements whose bits are 1 with the probability `mean`; 0 or 1 where the dtype is no integer."""
    return concatenate([_bits(request, count) for request, count in zip(requests, counts, strict=True)])


def _bits(request: Request, count: int) -> Array:
    dtype = request.tensor.dtype
    whole = DTYPES[dtype].kind in ("signed", "unsigned")
    width = 8 * itemsize(dtype) if whole else 1
    mean = 0.5 if request.data.mean is None else request.data.mean
    ones = round(_SHARES * min(max(mean, 0.0), 1.0)) if not math.isnan(mean) else 0
    words = request.raw(-(-count * width // 8)).astype("<u8", copy=False)
    drawn = words.view(np.uint8)[: count * width] < ones
    if not whole:
        return add_lows(drawn.astype(np.uint64), [0], [count], dtype)
    packed = np.packbits(drawn, bitorder="little").view(f"<u{width // 8}")
    return packed.astype(f"u{width // 8}", copy=False).view(numpy_dtype(dtype))


def _each(requests: Sequence[Request], counts: Sequence[int], lines: Callable[[Request, Words], _Numbers]) -> Array:
    """Each tensor's lines along its axis, in the tensors' dtype."""
    found = [_along(request, count, lines) for request, count in zip(requests, counts, strict=True)]
    return add_lows(concatenate(found).view(np.uint64), [0], [sum(counts)], requests[0].tensor.dtype)


def _along(request: Request, count: int, lines: Callable[[Request, Words], _Numbers]) -> _Numbers:
    """The flat contents of a tensor from what `lines` makes of a word for each place, the axis being the last one."""
    shape = request.tensor.shape or (1,)
    axis = axis_of(request.tensor, request.data.axis) if request.tensor.shape else 0
    moved = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    made = lines(request, request.raw(count).reshape(-1, shape[axis]))
    return np.ascontiguousarray(np.moveaxis(made.reshape(moved), -1, axis)).reshape(-1)


WINDOW = ("kernel", "stride", "padding", "dilation")
"""The parameters that say where windows lie."""


def argmax(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The position of the largest element of each window, row-major among the dimensions that windows have.

    These are as many from `axis` on as the kernel has items; with one item, all of them. Along a dimension whose item
    is 0 the windows are those of an adaptive pooling: i of n reaches from floor(i size / n) to ceil((i + 1) size / n).
    Of equal elements the first counts, of a window with a nan the first nan; of one that lies in the padding, `low`.
    Where windows and shapes do not fit together (in an invalid case), `indices`.
    """
    return concatenate([_positions(request, count) for request, count in zip(requests, counts, strict=True)])


def _positions(request: Request, count: int) -> Array:
    found = _of_windows(request)
    if found is None:
        return indices((request,), (count,))
    low, high = index_bounds(request.tensor, request.data)
    offsets = (np.clip(found.reshape(-1), low, high) - low).astype(np.uint64)
    return add_lows(offsets, [low], [count], request.tensor.dtype)


def _of_windows(request: Request) -> _Numbers | None:
    source, shape, data = request.source, request.tensor.shape, request.data
    axis = -1 if data.axis is None else data.axis
    if source is None or not source.size or source.dtype.kind == "c" or source.ndim != len(shape):
        return None
    if not -source.ndim <= axis < 0 or source.shape[:axis] != shape[:axis]:
        return None
    items = len(data.kernel or ())
    behind = -axis - items if items > 1 else 0
    if behind < 0 or (behind and source.shape[-behind:] != shape[-behind:]):
        return None
    windows = _windows(request, -axis - behind)
    if windows is None:
        return None
    values = widen(source)
    places = np.zeros(source.shape, np.int64)
    step = 1
    # The maximum is taken along the last dimension first: among equal ones the first row has the first element.
    for number, (kernel, stride, padding, dilation) in enumerate(reversed(windows), 1 + behind):
        if not kernel:
            values, places = _adaptive_along(values, places, -number, shape[-number], step)
            step *= source.shape[-number]
            continue
        starts = np.arange(shape[-number], dtype=np.int64) * stride - padding
        values, places = _window_along(values, places, -number, starts, kernel, dilation, step)
        step *= source.shape[-number]
    return places


def _windows(request: Request, rank: int) -> list[tuple[int, ...]] | None:
    """Kernel, stride, padding and dilation of each dimension; None where they are none."""
    data = request.data
    kernel = data.kernel or ()
    given = (kernel, data.stride or kernel, data.padding or (0,), data.dilation or (1,))
    if any(len(items) not in (1, rank) for items in given):
        return None
    found = list(zip(*(items * rank if len(items) < rank else items for items in given), strict=True))
    reach = max(math.prod(request.tensor.shape), 1) * 2**31
    sane = all(
        0 <= kernel <= 2**16 and 1 <= dilation <= reach and 0 <= stride <= reach and 0 <= padding <= reach
        for kernel, stride, padding, dilation in found
    )
    return found if sane else None


def _adaptive_along(
    values: NDArray[np.float64], places: _Numbers, axis: int, count: int, step: int
) -> tuple[NDArray[np.float64], _Numbers]:
    """The same of so many adaptive windows."""
    size = values.shape[axis]
    numbers = np.arange(count, dtype=np.int64)
    starts, ends = numbers * size // count, -(-(numbers + 1) * size // count)
    table = starts[:, None] + np.arange(int((ends - starts).max(initial=1)))
    kept = np.minimum(table, ends[:, None] - 1)  # the last element again, which is never the first of equal ones
    rows, moved = np.moveaxis(values, axis, -1)[..., kept], np.moveaxis(places, axis, -1)[..., kept]
    best = rows.argmax(-1)[..., None]
    value = np.take_along_axis(rows, best, -1)[..., 0]
    place = np.take_along_axis(moved + kept * step, best, -1)[..., 0]
    return np.moveaxis(value, -1, axis), np.moveaxis(place, -1, axis)


def _window_along(
    values: NDArray[np.float64], places: _Numbers, axis: int, starts: _Numbers, kernel: int, dilation: int, step: int
) -> tuple[NDArray[np.float64], _Numbers]:
    """The greatest value of each window along an axis, and its place: `step` a position, and the place that it had.

    A window without elements has the place -1.
    """
    size = values.shape[axis]
    width = [1] * values.ndim
    width[axis] = starts.size
    shape = list(values.shape)
    shape[axis] = starts.size
    best, where = np.full(shape, -np.inf), np.full(shape, -1, np.int64)
    for tap in range(kernel):
        at = starts + tap * dilation
        inside = ((at >= 0) & (at < size)).reshape(width)
        kept = np.clip(at, 0, size - 1)
        new, place = values.take(kept, axis), places.take(kept, axis)
        better = inside & (place >= 0) & ((where < 0) | (new > best) | (np.isnan(new) & ~np.isnan(best)))
        best = np.where(better, new, best)
        where = np.where(better, place + (kept * step).reshape(width), where)
    return best, where
