"""aclnnCircularPad3dBackward: an element gets the gradients of its place and of its repetitions."""

from aclnn_cts.oracles._padding import padding_operator, wrapped

FORMULA = padding_operator(wrapped)
LEADING = -3
