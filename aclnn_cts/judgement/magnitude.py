"""Every element of an output by two things at once: the magnitude expected, and its error as a share of the bound.

The histogram of a deviation says how near elements come to their bounds, and not where. This says both, and costs a
second look at the output: it is made of a sample of what passes and of what fails alone (`Judge.thorough`).
"""

from __future__ import annotations

import numpy as np

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.verdict import MagnitudeCounts
from aclnn_cts.judgement.elements import Elements
from aclnn_cts.judgement.figures import BINS, bins

__all__ = ["BINADES", "HIGHEST", "LOWEST", "by_magnitude"]

BINADES = 8
"""Binades of a class of magnitudes."""
LOWEST = -160
"""Exponent of the lowest class: not zero and below 2^-152, which FLOAT's smallest subnormals (2^-149) are not."""
HIGHEST = 128
"""Exponent of the highest class: 2^128, beyond the largest FLOAT, and all above it."""

_CLASSES = (HIGHEST - LOWEST) // BINADES + 2
"""The first is zero."""


def by_magnitude(expected: ExpectedOutput, elements: Elements) -> tuple[MagnitudeCounts, ...]:
    """Elements by class of magnitude, each with its counts by share of the bound; classes without one are left out.

    Open elements, and those whose exact value is inf or nan, have no place in it.
    """
    share = elements.share
    if share.size == 0:
        return ()
    value = np.broadcast_to(expected.value, share.shape)
    chosen = np.isfinite(value)
    chosen &= ~elements.open
    value, share = value[chosen], share[chosen]
    exponent = np.frexp(value)[1] - 1
    place = 1 + (np.minimum(np.maximum(exponent, LOWEST), HIGHEST) - LOWEST) // BINADES
    place[value == 0.0] = 0
    counts = np.bincount(place * BINS + bins(share), minlength=_CLASSES * BINS).reshape(_CLASSES, BINS)
    return tuple(
        MagnitudeCounts(
            exponent=None if index == 0 else LOWEST + (index - 1) * BINADES, counts=tuple(counts[index].tolist())
        )
        for index in np.flatnonzero(counts.any(axis=1)).tolist()
    )
