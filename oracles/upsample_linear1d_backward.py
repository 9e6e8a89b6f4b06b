"""aclnnUpsampleLinear1dBackward: each gradient is added to the two elements that it was interpolated from."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._interpolation import Sizes, interpolated_line, spread_line, weights


def _backward(f: F, gradOut: Array, out: Sizes, *, alignCorners: bool, scales: float) -> Outputs:
    along = weights(f, gradOut.shape[-1], out[-1], scales, align_corners=alignCorners)
    total = spread_line(f, gradOut, along, out[-1])
    return {"out": f.undecided(total, where=alignCorners and gradOut.shape[-1] == 1)}


def _forward(f: F, self: Array, gradOut: Sizes, *, alignCorners: bool, scales: float) -> Outputs:
    along = weights(f, gradOut[-1], self.shape[-1], scales, align_corners=alignCorners)
    return {"y": interpolated_line(f, self, along)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -1
