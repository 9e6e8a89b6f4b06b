"""Reductions of losses: what a loss of one number an element is divided by."""

from __future__ import annotations

import math

from aclnn_cts.oracles._windows import Shape

_MEAN, _BATCH_MEAN = 1, 3


def divisor(shape: Shape, reduction: int) -> float:
    """The elements of a loss of `shape` for a mean, its first size for a `batchmean`, else 1; never 0."""
    whole = math.prod(shape) if reduction == _MEAN else shape[0] if reduction == _BATCH_MEAN and shape else 1
    return float(max(whole, 1))
