"""aclnnUpsampleNearestExact3dBackward: each gradient is added to the element that nearest-exact sampling took."""

from aclnn_cts.oracles._nearest import volume_operator

FORMULA = volume_operator(shift=0.5)
LEADING = -3
