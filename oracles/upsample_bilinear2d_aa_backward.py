"""aclnnUpsampleBilinear2dAABackward: each gradient is added to the elements that it was interpolated from."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._interpolation import Sizes, Weights, interpolated, normalised_weights, spread


def _along(f: F, points: Sizes, sizes: Sizes, scales: tuple[float, float], *, align: bool) -> tuple[Weights, ...]:
    return tuple(
        normalised_weights(f, points[axis], sizes[axis], scales[axis], align_corners=align) for axis in (-2, -1)
    )


def _backward(f: F, gradOutput: Array, outputSize: Sizes, inputSize: Sizes, *,
              alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    # How far an antialiased point reaches where the step is above 1 is not said.
    shrinks = outputSize[0] < inputSize[2] or outputSize[1] < inputSize[3]
    total = spread(f, gradOutput, along, inputSize, "NCHW")
    return {"out": f.undecided(total, where=shrinks or (alignCorners and 1 in outputSize))}


def _forward(f: F, self: Array, outputSize: Sizes, inputSize: Sizes, *,
             alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    return {"y": interpolated(f, self, along, "NCHW")}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
