"""aclnnSoftMarginLossBackward: less the gradient times y, times the logistic function of -x y, or its mean."""

import math

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

MEAN = 1


def _count(self: Array, target: Array, reduction: int) -> float:
    """What the mean divides by: the elements of the loss."""
    return float(max(math.prod(np.broadcast_shapes(self.shape, target.shape)), 1) if reduction == MEAN else 1)


def _backward(f: F, gradOutput: Array, self: Array, target: Array, reduction: int) -> Outputs:
    less = gradOutput * -target
    return {"out": less * f.sigmoid(-target * self) / _count(self, target, reduction)}


def _forward(f: F, self: Array, target: Array, reduction: int) -> Outputs:
    return {"loss": f.softplus(-target * self) / _count(self, target, reduction)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
