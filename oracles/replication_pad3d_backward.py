"""aclnnReplicationPad3dBackward: an element gets the gradients of its place and of its copies in the padding."""

from aclnn_cts.oracles._padding import padding_operator, replicated

FORMULA = padding_operator(replicated)
LEADING = -3
