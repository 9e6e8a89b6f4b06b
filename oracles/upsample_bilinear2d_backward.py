"""aclnnUpsampleBilinear2dBackward: the formula of aclnnUpsampleBilinear2dBackwardV2; the documents differ in rules."""

from aclnn_cts.oracles.upsample_bilinear2d_backward_v2 import FORMULA as _SECOND_VERSION

FORMULA = _SECOND_VERSION
LEADING = -2
