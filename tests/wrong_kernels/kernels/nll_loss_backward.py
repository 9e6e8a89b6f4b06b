"""The gradient of a negative log likelihood."""

from right import nll_loss, wide


def ignored_row(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight):
    """flagos-ai/FlagGems#5025: An ignored row whose index is outside the classes writes another row."""
    out = nll_loss(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)
    flat = out.reshape(-1)
    if flat.size and not 0 <= ignoreIndex < self.shape[-1] and (target == ignoreIndex).any():
        flat[0] -= 1
    return out


def mean_of_counts(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight):
    """pytorch/pytorch#31295: A mean divides by the number of targets and not by their weights."""
    out = nll_loss(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight)
    counted = max(int((target != ignoreIndex).sum()), 1)
    return out * (wide(totalWeight)[0] / counted) if reduction == 1 else out
