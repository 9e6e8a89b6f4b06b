"""aclnnUpsampleNearestExact2dBackward: each gradient is added to the element that nearest-exact sampling took."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._nearest import nearest_gradient, nearest_samples
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, scalesH: float, scalesW: float, out: Shape) -> Outputs:
    return {"out": nearest_gradient(f, gradOutput, out[2:], (scalesH, scalesW), shift=0.5)}


def _forward(f: F, self: Array, outputSize: Shape) -> Outputs:
    return {"y": nearest_samples(f, self, outputSize, shift=0.5)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
