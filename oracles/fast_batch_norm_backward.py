"""aclnnFastBatchNormBackward: the gradients of a batch normalisation; either version computes the same formulas."""

from aclnn_cts.oracles.batch_norm_backward import FORMULA as _PLAIN

FORMULA = _PLAIN
