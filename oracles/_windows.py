"""The windows of a pooling along one dimension: what they cover, and which of them cover an element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F
from aclnn_cts.formula.complex import Complex

Numbers: TypeAlias = "NDArray[np.int64]"
Shape: TypeAlias = "tuple[int, ...]"


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows from `starts` to `ends` in a dimension of `size` elements; both may lie in the padding."""

    starts: Numbers
    ends: Numbers
    size: int

    @property
    def padded(self) -> Numbers:
        """How long each is, its part in the padding counted."""
        return self.ends - self.starts

    @property
    def inside(self) -> Numbers:
        """How long each is within the dimension."""
        return np.minimum(self.ends, self.size) - np.maximum(self.starts, 0)

    def covering(self) -> Numbers:
        """(size, m): the windows that cover each element; -1 where there are fewer than m."""
        places = np.arange(self.size)
        first = np.searchsorted(self.ends, places, side="right")
        last = np.searchsorted(self.starts, places, side="right")
        steps = np.arange(max(int((last - first).max(initial=0)), 1))
        found: Numbers = first[:, None] + steps
        return np.where(found < last[:, None], found, -1)

    def members(self) -> Numbers:
        """(windows, m): the elements of each window; -1 where there are fewer than m."""
        found: Numbers = np.maximum(self.starts, 0)[:, None] + np.arange(max(int(self.inside.max(initial=0)), 1))
        return np.where(found < np.minimum(self.ends, self.size)[:, None], found, -1)


def windows_of(
    size: Shape, count: Shape, kernel: Shape, stride: Shape, padding: Shape, dimensions: int = 2
) -> tuple[Windows, ...]:
    """The windows along each of the last dimensions, two of them, from the shapes that are pooled and that come out.

    The arrays have an item for each dimension or one for all. An empty stride is that of the kernel.
    """
    found = []
    for axis in range(-dimensions, 0):
        length, step, before = (items[axis if len(items) > 1 else 0] for items in (kernel, stride or kernel, padding))
        starts = np.arange(count[axis]) * step - before
        found.append(Windows(starts, np.minimum(starts + length, size[axis] + before), size[axis]))
    return tuple(found)


def adaptive_windows(sizes: Shape, counts: Shape) -> tuple[Windows, ...]:
    """The windows along dimensions of such sizes: the first of n starts at 0, the last ends at the end, others between.

    Window i has the elements from floor(i size / n) to ceil((i + 1) size / n).
    """
    return tuple(
        Windows(np.arange(count) * size // count, -(-(np.arange(count) + 1) * size // count), size)
        for size, count in zip(sizes, counts, strict=True)
    )


def divisors(*windows: Windows, override: int, padded: bool) -> NDArray[np.float64]:
    """What an average divides each window by: a number other than 0, or its elements, those of the padding or not.

    The windows are those along each dimension.
    """
    counts = np.ones((), dtype=np.float64)
    for along in windows:
        counts = np.multiply.outer(counts, along.padded if padded else along.inside)
    return np.full(counts.shape, float(override)) if override else counts


def gathered(f: F, values: Array, table: Numbers) -> Array:
    """(..., n) to (..., m): the sum of the values at each row of a table (m, k) of places; -1 is no place."""
    if isinstance(values, Complex):
        return Complex(gathered(f, values.re, table), gathered(f, values.im, table))
    rows = np.arange(values.size // max(values.shape[-1], 1)).reshape(*values.shape[:-1], 1, 1)
    total: Array = f.take(values, np.where(table < 0, -1, rows * values.shape[-1] + table)).sum(-1)
    return total


def along_each(f: F, values: Array, *tables: Numbers) -> Array:
    """`gathered` along each of the last dimensions, one table for each, from the last on."""
    for back, table in enumerate(reversed(tables)):
        axes = list(range(values.ndim))
        axes[-1], axes[-1 - back] = axes[-1 - back], axes[-1]
        values = gathered(f, values.transpose(*axes), table).transpose(*axes) if back else gathered(f, values, table)
    return values


def within_planes(positions: Numbers, shape: Shape, dimensions: int = 2) -> Numbers:
    """Cells of an array from positions among its last dimensions, two of them, in as many planes as the array has."""
    lead, plane = shape[:-dimensions], shape[-dimensions:]
    planes = np.arange(math.prod(lead), dtype=np.int64).reshape(*lead, *[1] * dimensions)
    cells: Numbers = planes * math.prod(plane) + positions
    return cells


def within_last_planes(positions: Numbers, shape: Shape) -> Numbers:
    """The same of two dimensions in front of the channels, as NHWC has them."""
    height, width, channels = shape[-3:]
    batches = np.arange(math.prod(shape[:-3]), dtype=np.int64).reshape(*shape[:-3], 1, 1, 1)
    cells: Numbers = (batches * height * width + positions) * channels + np.arange(channels)
    return cells


def naming(cells: Numbers, count: int) -> Numbers:
    """(count, m): the places of `cells`, read in order, that name each of so many cells; -1 where fewer than m do."""
    order = np.argsort(cells, axis=None, kind="stable")
    first, end = (np.searchsorted(cells.reshape(-1)[order], np.arange(count), side) for side in ("left", "right"))
    found: Numbers = first[:, None] + np.arange(max(int((end - first).max(initial=0)), 1))
    return np.append(order, -1)[np.where(found < end[:, None], found, -1)]
