"""aclnnMishBackward: the gradient of Mish, x tanh(log(1 + exp(x)))."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The slope is t + x s (1 - t^2), with t the tangent and s the logistic function of x."""
    t = f.tanh(f.softplus(self))
    return {"gradInput": gradOutput * (t + self * f.sigmoid(self) * (1.0 - t * t))}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": self * f.tanh(f.softplus(self))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
