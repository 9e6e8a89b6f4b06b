"""aclnnUpsampleBicubic2dBackward: each gradient is added to the sixteen elements that it was interpolated from."""

from collections.abc import Mapping

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._interpolation import Sizes, Weights, cubic_weights, interpolated, spread


def _along(f: F, points: Sizes, sizes: Sizes, scales: tuple[float, float], *, align: bool) -> tuple[Weights, ...]:
    return tuple(
        cubic_weights(f, points[axis], sizes[axis], scales[axis], align_corners=align, a=-0.75) for axis in (-2, -1)
    )


def _backward(f: F, gradOut: Array, outputSize: Sizes, inputSize: Sizes, formats: Mapping[str, str], *,
              alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    total = spread(f, gradOut, along, inputSize, formats["gradOut"])
    return {"gradInput": f.undecided(total, where=alignCorners and 1 in outputSize)}


def _forward(f: F, self: Array, outputSize: Sizes, inputSize: Sizes, formats: Mapping[str, str], *,
             alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    return {"y": interpolated(f, self, along, formats["gradOut"])}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
