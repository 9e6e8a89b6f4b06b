"""The recipe of positions: where the largest element of each window of another tensor lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.rounding import widen
from aclnn_cts.generate.layouts import Array
from aclnn_cts.generate.recipes_exact import index_bounds, indices
from aclnn_cts.generate.request import Request, joined, shifted

WINDOW = ("kernel", "stride", "padding", "dilation")
"""The parameters that say where windows lie."""

_Numbers = NDArray[np.int64]


def argmax(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The position of the largest element of each window, row-major among the dimensions from `axis` on.

    Of equal elements the first counts, of a window with a nan the first nan; of one that lies in the padding, `low`.
    Where windows and shapes do not fit together (in an invalid case), `indices`.
    """
    return joined([_positions(request, count) for request, count in zip(requests, counts, strict=True)])


def _positions(request: Request, count: int) -> Array:
    found = _of_windows(request)
    if found is None:
        return indices((request,), (count,))
    low, high = index_bounds(request.tensor, request.data)
    offsets = (np.clip(found.reshape(-1), low, high) - low).astype(np.uint64)
    return shifted(offsets, [low], [count], request.tensor.dtype)


def _of_windows(request: Request) -> _Numbers | None:
    source, shape, data = request.source, request.tensor.shape, request.data
    axis = -1 if data.axis is None else data.axis
    if source is None or not source.size or source.dtype.kind == "c" or source.ndim != len(shape):
        return None
    if not -source.ndim <= axis < 0 or source.shape[:axis] != shape[:axis]:
        return None
    windows = _windows(request, -axis)
    if windows is None:
        return None
    values = widen(source)
    places = np.zeros(source.shape, np.int64)
    step = 1
    # The maximum is taken along the last dimension first: among equal ones the first row has the first element.
    for number, (kernel, stride, padding, dilation) in enumerate(reversed(windows), 1):
        starts = np.arange(shape[-number], dtype=np.int64) * stride - padding
        values, places = _along(values, places, -number, starts, kernel, dilation, step)
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
        1 <= kernel <= 2**16 and 1 <= dilation <= reach and 0 <= stride <= reach and 0 <= padding <= reach
        for kernel, stride, padding, dilation in found
    )
    return found if sane else None


def _along(
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
