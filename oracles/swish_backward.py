"""aclnnSwishBackward: the gradient of x s(beta x), where s is the logistic function."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def slope(f: F, x: Array, beta: float) -> Array:
    """The derivative of x s(beta x) by x."""
    scaled = x * beta
    s = f.sigmoid(scaled)
    found: Array = s * (1.0 + scaled * (1.0 - s))
    return found


def backward(f: F, gradOutput: Array, self: Array, betaOptional: float | None) -> Outputs:
    """The document's formula."""
    return {"gradInput": gradOutput * slope(f, self, 1.0 if betaOptional is None else betaOptional)}


def expanded(f: F, gradOutput: Array, self: Array, betaOptional: float | None) -> Outputs:
    """By the result of the forward pass, as the document writes it too."""
    beta = 1.0 if betaOptional is None else betaOptional
    s = f.sigmoid(self * beta)
    result = self * s * beta
    return {"gradInput": gradOutput * (result + s * (1.0 - result))}


def forward(f: F, self: Array, betaOptional: float | None) -> Outputs:
    """What it is the derivative of."""
    return {"y": self * f.sigmoid(self * (1.0 if betaOptional is None else betaOptional))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, expanded, derivative=_DERIVATIVE)
