"""aclnnUpsampleBilinear2dBackwardV2: each gradient is added to the four elements that it was interpolated from."""

from collections.abc import Mapping

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._interpolation import Sizes, interpolated, spread, weights_along


def _backward(f: F, gradOut: Array, outputSize: Sizes, inputSize: Sizes, formats: Mapping[str, str], *,
              alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = weights_along(f, outputSize, inputSize, (scalesH, scalesW), align_corners=alignCorners)
    total = spread(f, gradOut, along, inputSize, formats["gradOut"])
    return {"out": f.undecided(total, where=alignCorners and 1 in outputSize)}


def _forward(f: F, self: Array, outputSize: Sizes, inputSize: Sizes, formats: Mapping[str, str], *,
             alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = weights_along(f, outputSize, inputSize, (scalesH, scalesW), align_corners=alignCorners)
    return {"y": interpolated(f, self, along, formats["gradOut"])}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
