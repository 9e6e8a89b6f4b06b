"""aclnnCircularPad3dBackward: an element gets the gradients of its place and of its repetitions."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._padding import padded, padding_gradient, wrapped
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, padding: Shape, gradInput: Shape) -> Outputs:
    return {"gradInput": padding_gradient(f, gradOutput, padding, gradInput, wrapped)}


def _forward(f: F, self: Array, padding: Shape, gradOutput: Shape) -> Outputs:
    return {"gradOutput": padded(f, self, padding, gradOutput, wrapped)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "gradOutput"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
