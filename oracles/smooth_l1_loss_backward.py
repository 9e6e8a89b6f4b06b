"""aclnnSmoothL1LossBackward: the gradient times x - y over beta, no less than -1 and no more than 1, or its mean."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor


def _backward(f: F, gradOut: Array, self: Array, target: Array, reduction: int, beta: float) -> Outputs:
    d = f.difference(self, target)
    inner = d if beta == 0.0 else f.where(d > beta, 1.0, f.where(-d > beta, -1.0, d / beta))
    slope = inner if beta > 0.0 else f.where(d > 0.0, 1.0, f.where(-d > 0.0, -1.0, d))
    return {"gradInput": gradOut * slope / divisor(self.shape, reduction)}


def _forward(f: F, self: Array, target: Array, reduction: int, beta: float) -> Outputs:
    d = self - target
    size = f.where(d > 0.0, d, -d)
    each = size if beta == 0.0 else f.where(size > beta, size - 0.5 * beta, d * d * (0.5 / beta))
    return {"loss": each / divisor(self.shape, reduction)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOut": "loss"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
