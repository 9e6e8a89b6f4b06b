"""The gradient of a smooth L1 loss."""

import numpy as np
from right import smooth_l1, wide


def equal_values_without_beta(gradOut, self, target, reduction, beta):
    """pytorch/pytorch#96813: With beta 0 and equal values it gives nan."""
    found = smooth_l1(gradOut, self, target, reduction, beta)
    return np.where((wide(self) == wide(target)) & (beta == 0), np.nan, found)
