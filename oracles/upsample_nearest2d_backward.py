"""aclnnUpsampleNearest2dBackward: each gradient is added to the element that the nearest sampling took."""

from collections.abc import Mapping

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._nearest import nearest_gradient, nearest_samples
from aclnn_cts.oracles._windows import Shape


def _backward(
    f: F, gradOut: Array, scalesH: float, scalesW: float, gradInput: Shape, formats: Mapping[str, str]
) -> Outputs:
    last = -2 if formats["gradOut"] == "NHWC" else -1
    sizes = gradInput[1:3] if last == -2 else gradInput[2:]
    return {"gradInput": nearest_gradient(f, gradOut, sizes, (scalesH, scalesW), shift=0.0, last=last)}


def _forward(f: F, self: Array, outputSize: Shape, formats: Mapping[str, str]) -> Outputs:
    return {"y": nearest_samples(f, self, outputSize, shift=0.0, last=-2 if formats["gradOut"] == "NHWC" else -1)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
