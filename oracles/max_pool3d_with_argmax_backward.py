"""aclnnMaxPool3dWithArgmaxBackward: each gradient is added to the element that was the largest of its window."""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, naming, within_planes


def _scattered(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape) -> Outputs:
    return {"gradInput": f.scatter_add(gradOutput, within_planes(indices, gradInput, 3), gradInput)}


def _gathered(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape) -> Outputs:
    named = naming(within_planes(indices, gradInput, 3), math.prod(gradInput))
    return {"gradInput": f.take(gradOutput.reshape(-1), named).sum(-1).reshape(*gradInput)}


def _forward(f: F, self: Array, indices: Numbers) -> Outputs:
    return {"y": f.take(self.reshape(-1), within_planes(indices, self.shape, 3))}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_scattered, _gathered, derivative=DERIVATIVE)
