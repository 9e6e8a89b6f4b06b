"""Losses of one number an element: what a mean divides by, and the loss that two operators share."""

from __future__ import annotations

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._windows import Shape

_MEAN, _BATCH_MEAN = 1, 3


def divisor(shape: Shape, reduction: int) -> float:
    """The elements of a loss of `shape` for a mean, its first size for a `batchmean`, else 1; never 0."""
    whole = math.prod(shape) if reduction == _MEAN else shape[0] if reduction == _BATCH_MEAN and shape else 1
    return float(max(whole, 1))


def logits_loss(f: F, self: Array, target: Array, weightOptional: Array | None, posWeightOptional: Array | None,
                reduction: int) -> Outputs:  # fmt: skip
    """Binary cross entropy of logits: the weighted loss t p softplus(-x) + (1 - t) softplus(x), or its mean."""
    positive = target * f.softplus(-self)
    loss = (1.0 - target) * f.softplus(self) + (positive if posWeightOptional is None else positive * posWeightOptional)
    weighted = loss if weightOptional is None else loss * weightOptional
    return {"loss": weighted / divisor(self.shape, reduction)}
