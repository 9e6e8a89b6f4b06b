"""aclnnMaxPool2dWithIndicesBackward: each gradient is added to the element that was the largest of its window."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, within_planes


def _backward(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape) -> Outputs:
    return {"gradInput": f.scatter_add(gradOutput, within_planes(indices, gradInput), gradInput)}


def _forward(f: F, self: Array, indices: Numbers) -> Outputs:
    return {"y": f.take(self.reshape(-1), within_planes(indices, self.shape))}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}, linear=True)
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
