"""aclnnUpsampleBicubic2dAAGrad: each gradient is added to the sixteen elements that it was interpolated from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._interpolation import Sizes, Weights, cubic_weights, interpolated, spread


def _along(f: F, points: Sizes, sizes: Sizes, scales: tuple[float, float], *, align: bool) -> tuple[Weights, ...]:
    return tuple(
        cubic_weights(f, points[axis], sizes[axis], scales[axis], align_corners=align, a=-0.5) for axis in (-2, -1)
    )


def _beside_edges(points: int, size: int, scale: float, *, align: bool) -> NDArray[np.bool_]:
    """(size,): which elements share a point with something beyond an edge, of which it is not said what counts."""
    places = np.arange(points, dtype=np.float64)
    if align:
        position = places * (size - 1) / max(points - 1, 1)
    else:
        position = ((places + 0.5) / scale if scale > 0.0 else (places + 0.5) * size / points) - 0.5
    first = np.floor(position).astype(np.int64) - 1
    # A point on an element has no other.
    beyond = (position != np.floor(position)) & ((first < 0) | (first + 3 >= size))
    reached = first[beyond, None] + np.arange(4)
    found = np.zeros(size, dtype=np.bool_)
    found[reached[(reached >= 0) & (reached < size)]] = True
    return found


def _backward(f: F, gradOutput: Array, outputSize: Sizes, inputSize: Sizes, *,
              alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    total = spread(f, gradOutput, along, inputSize, "NCHW")
    rows, columns = (
        _beside_edges(outputSize[axis], inputSize[axis], scale, align=alignCorners)
        for axis, scale in ((-2, scalesH), (-1, scalesW))
    )
    # How far an antialiased point reaches where the step is above 1 is not said.
    shrinks = outputSize[0] < inputSize[2] or outputSize[1] < inputSize[3]
    unsaid = rows[:, None] | columns | (shrinks or (alignCorners and 1 in outputSize))
    return {"out": f.undecided(total, where=np.broadcast_to(unsaid, total.shape))}


def _forward(f: F, self: Array, outputSize: Sizes, inputSize: Sizes, *,
             alignCorners: bool, scalesH: float, scalesW: float) -> Outputs:  # fmt: skip
    along = _along(f, outputSize, inputSize, (scalesH, scalesW), align=alignCorners)
    return {"y": interpolated(f, self, along, "NCHW")}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
