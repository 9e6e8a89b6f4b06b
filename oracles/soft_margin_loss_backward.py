"""aclnnSoftMarginLossBackward: less the gradient times y, times the logistic function of -x y, or its mean."""

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor


def _backward(f: F, gradOutput: Array, self: Array, target: Array, reduction: int) -> Outputs:
    less = gradOutput * -target
    return {"out": less * f.sigmoid(-target * self) / divisor(np.broadcast_shapes(self.shape, target.shape), reduction)}


def _forward(f: F, self: Array, target: Array, reduction: int) -> Outputs:
    return {"loss": f.softplus(-target * self) / divisor(np.broadcast_shapes(self.shape, target.shape), reduction)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
