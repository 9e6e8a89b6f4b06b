"""Figures of one element of an output, and the histogram of the error ratios of all.

The histogram of a deviation says how near elements come to their bounds, and not where. `by_magnitude` says both, and
costs a second look at the output: it is made of a sample of what passes and of what fails alone (`Judge.thorough`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.verdict import ERROR_RATIO_EDGES, MagnitudeCounts
from aclnn_cts.judgement.bound import OutputElements

BINS = len(ERROR_RATIO_EDGES) + 1
_FIRST, _LAST = np.int64(0), np.int64(BINS - 1)
# Shares as integers: less one, so that a power of two falls into the bin that it ends; the exponent then counts bins.
_OFFSET = np.int64(-1 - ((1023 + ERROR_RATIO_EDGES[0] - 1) << 52))


def bins(error_ratio: Float64) -> NDArray[np.int64]:
    """The bin of each error ratio; flat."""
    found: NDArray[np.int64] = error_ratio.reshape(-1).view(np.int64) + _OFFSET
    found >>= 52
    np.clip(found, _FIRST, _LAST, out=found)
    return found


def histogram(error_ratio: Float64, ignored: int) -> tuple[int, ...]:
    """Counts by bin; open elements have the error ratio 0 and are taken out of the first bin."""
    counts: list[int] = np.bincount(bins(error_ratio), minlength=BINS).tolist()
    counts[0] -= ignored
    return tuple(counts)


def cancellation(expected: ExpectedOutput, position: int, exact: float, shape: tuple[int, ...]) -> float:
    """The largest magnitude among the terms over the value that they leave; at least 1, inf where nothing is left."""
    magnitude = abs(exact)
    if expected.arithmetic is not None:
        # A single rounding of terms of this size would explain the error.
        magnitude = max(magnitude, element(expected.error, position, shape) / expected.arithmetic.roundoff)
    if magnitude == 0.0 or not math.isfinite(magnitude):
        return 1.0
    return magnitude / abs(exact) if exact else math.inf


def element(array: Float64 | float, position: int, shape: tuple[int, ...]) -> float:
    """One element, by its row-major position in `shape`, of an array that broadcasts to it."""
    if isinstance(array, float):
        return float(array)  # NumPy's own scalars are floats too, and no record holds them
    if array.shape == shape:
        return float(array.item(position))
    own = array.shape
    index = index_of(position, shape)[len(shape) - len(own) :]
    return float(array[tuple(place if size > 1 else 0 for place, size in zip(index, own, strict=True))])


def index_of(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element by its place in row-major order."""
    index = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


BINADES = 8
"""Binades of a class of magnitudes."""
LOWEST = -160
"""Exponent of the lowest class: not zero and below 2^-152, which FLOAT's smallest subnormals (2^-149) are not."""
HIGHEST = 128
"""Exponent of the highest class: 2^128, beyond the largest FLOAT, and all above it."""

_CLASSES = (HIGHEST - LOWEST) // BINADES + 2
"""The first is zero."""


def by_magnitude(expected: ExpectedOutput, elements: OutputElements) -> tuple[MagnitudeCounts, ...]:
    """Elements by class of magnitude, each with its counts by error ratio; classes without one are left out.

    Open elements, and those whose exact value is inf or nan, have no place in it.
    """
    error_ratio = elements.error_ratio
    if error_ratio.size == 0:
        return ()
    value = np.broadcast_to(expected.value, error_ratio.shape)
    chosen = np.isfinite(value)
    chosen &= ~elements.open
    value, error_ratio = value[chosen], error_ratio[chosen]
    exponent = np.frexp(value)[1] - 1
    place = 1 + (np.minimum(np.maximum(exponent, LOWEST), HIGHEST) - LOWEST) // BINADES
    place[value == 0.0] = 0
    counts = np.bincount(place * BINS + bins(error_ratio), minlength=_CLASSES * BINS).reshape(_CLASSES, BINS)
    return tuple(
        MagnitudeCounts(
            exponent=None if index == 0 else LOWEST + (index - 1) * BINADES, counts=tuple(counts[index].tolist())
        )
        for index in np.flatnonzero(counts.any(axis=1)).tolist()
    )
