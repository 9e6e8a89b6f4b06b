"""aclnnMaxPool2dWithIndicesBackward: each gradient is added to the element that was the largest of its window."""

from collections.abc import Mapping

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, within_last_planes, within_planes


def _cells(indices: Numbers, shape: Shape, layout: str) -> Numbers:
    return (within_last_planes if layout == "NHWC" else within_planes)(indices, shape)


def _backward(f: F, gradOutput: Array, indices: Numbers, gradInput: Shape, formats: Mapping[str, str]) -> Outputs:
    return {"gradInput": f.scatter_add(gradOutput, _cells(indices, gradInput, formats["indices"]), gradInput)}


def _forward(f: F, self: Array, indices: Numbers, formats: Mapping[str, str]) -> Outputs:
    return {"y": f.take(self.reshape(-1), _cells(indices, self.shape, formats["indices"]))}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
