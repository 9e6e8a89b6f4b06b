"""aclnnMseLossBackward: the incoming gradient times that of (x - y)^2, over the number of elements for their mean."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor


def _backward(f: F, gradOutput: Array, self: Array, target: Array, reduction: int) -> Outputs:
    count = divisor(self.shape, reduction)
    return {"out": gradOutput * ((self - target) * (2.0 / count))}


def _forward(f: F, self: Array, target: Array, reduction: int) -> Outputs:
    count = divisor(self.shape, reduction)
    return {"loss": (self - target) * (self - target) / count}


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"}),
)
