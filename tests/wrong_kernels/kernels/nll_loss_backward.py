"""The gradient of a negative log likelihood."""

import numpy as np
from right import nll_loss, wide


def ignored_row(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight):
    """flagos-ai/FlagGems#5025: An ignored row whose index is outside the classes writes its 0 into another row."""
    out = nll_loss(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)
    classes = self.shape[-1]
    if not 0 <= ignoreIndex < classes:
        places = np.flatnonzero(target.reshape(-1) == ignoreIndex) * classes + ignoreIndex
        out.reshape(-1)[places[(places >= 0) & (places < out.size)]] = 0
    return out


def mean_of_counts(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight):
    """pytorch/pytorch#31295: A mean divides by the number of targets and not by their weights."""
    out = nll_loss(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)
    counted = max(int((target != ignoreIndex).sum()), 1)
    return out * (wide(totalWeight)[0] / counted) if reduction == 1 else out
