"""aclnnUpsampleNearest1dBackward: each gradient is added to the element that the nearest sampling took."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._nearest import nearest_gradient, nearest_samples
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOut: Array, scales: float, out: Shape) -> Outputs:
    return {"out": nearest_gradient(f, gradOut, out[2:], (scales,), shift=0.0)}


def _forward(f: F, self: Array, gradOut: Shape) -> Outputs:
    return {"y": nearest_samples(f, self, gradOut[2:], shift=0.0)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -1
