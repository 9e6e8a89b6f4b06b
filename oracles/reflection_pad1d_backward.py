"""aclnnReflectionPad1dBackward: an element gets the gradients of its place and of its mirror images."""

from aclnn_cts.oracles._padding import mirrored, padding_operator

FORMULA = padding_operator(mirrored)
LEADING = -1
