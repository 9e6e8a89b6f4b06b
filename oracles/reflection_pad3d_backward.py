"""aclnnReflectionPad3dBackward: an element gets the gradients of its place and of its mirror images."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._padding import mirrored, padded, padding_gradient
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, padding: Shape, gradInput: Shape) -> Outputs:
    return {"gradInput": padding_gradient(f, gradOutput, padding, gradInput, mirrored)}


def _forward(f: F, self: Array, padding: Shape, gradOutput: Shape) -> Outputs:
    return {"gradOutput": padded(f, self, padding, gradOutput, mirrored)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "gradOutput"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
