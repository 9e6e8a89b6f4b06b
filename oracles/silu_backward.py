"""aclnnSiluBackward: the gradient of x s(x), where s is the logistic function."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula."""
    s = f.sigmoid(self)
    return {"gradInput": gradOutput * (s * (1.0 + self - self * s))}


def factored(f: F, gradOutput: Array, self: Array) -> Outputs:
    """With the argument taken out, as most kernels compute it."""
    s = f.sigmoid(self)
    return {"gradInput": gradOutput * (s * (1.0 + self * (1.0 - s)))}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": self * f.sigmoid(self)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, factored, derivative=_DERIVATIVE)
