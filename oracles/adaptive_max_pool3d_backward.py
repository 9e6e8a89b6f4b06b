"""aclnnAdaptiveMaxPool3dBackward: each gradient is added to the element that was the largest of its window."""

from aclnn_cts.oracles._max_pooling import max_pooling

FORMULA = max_pooling(3)
LEADING = -3
