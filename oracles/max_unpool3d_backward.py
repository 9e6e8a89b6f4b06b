"""aclnnMaxUnpool3dBackward: the gradients at the places that the indices of a sample's channel name."""

from aclnn_cts.oracles._max_unpooling import max_unpooling

FORMULA = max_unpooling(3)
