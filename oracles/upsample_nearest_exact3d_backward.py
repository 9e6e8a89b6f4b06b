"""aclnnUpsampleNearestExact3dBackward: each gradient is added to the element that nearest-exact sampling took."""

from collections.abc import Mapping

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._nearest import nearest_gradient, nearest_samples
from aclnn_cts.oracles._windows import Shape


def _backward(
    f: F,
    gradOut: Array,
    gradInput: Shape,
    formats: Mapping[str, str],
    *,
    scalesD: float,
    scalesH: float,
    scalesW: float,
) -> Outputs:
    last = -2 if formats["gradOut"] == "NDHWC" else -1
    sizes = gradInput[1:4] if last == -2 else gradInput[2:]
    return {"gradInput": nearest_gradient(f, gradOut, sizes, (scalesD, scalesH, scalesW), shift=0.5, last=last)}


def _forward(f: F, self: Array, outputSize: Shape, formats: Mapping[str, str]) -> Outputs:
    return {"y": nearest_samples(f, self, outputSize, shift=0.5, last=-2 if formats["gradOut"] == "NDHWC" else -1)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
