"""aclnnL1LossBackward: the gradient times the sign of x - y, or its mean; of equal x and y any slope from -1 to 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor

NORMAL = float(np.finfo(np.float32).tiny)
"""A difference below this may be computed as 0."""


def _backward(
    f: F, gradOutput: Array, self: Array, target: Array, reduction: int, stored: Mapping[str, NDArray[Any]]
) -> Outputs:
    with np.errstate(all="ignore"):
        d = np.abs(stored["self"].astype(np.float64) - stored["target"].astype(np.float64))
    equal = f.either(f.lift(-1.0), f.lift(1.0))
    slope = f.where(self > target, 1.0, f.where(target > self, -1.0, equal))
    gradient = gradOutput * f.undecided(slope, where=(d > 0.0) & (d < NORMAL))
    return {"gradInput": gradient / divisor(np.broadcast_shapes(self.shape, target.shape), reduction)}


def _forward(f: F, self: Array, target: Array, reduction: int) -> Outputs:
    d = self - target
    return {"loss": f.where(d > 0.0, d, -d) / divisor(np.broadcast_shapes(self.shape, target.shape), reduction)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
