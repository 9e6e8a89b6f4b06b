"""aclnnUpsampleNearest3dBackward: each gradient is added to the element that the nearest sampling took."""

from aclnn_cts.oracles._nearest import volume_operator

FORMULA = volume_operator(shift=0.0)
LEADING = -3
