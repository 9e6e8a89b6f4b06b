"""aclnnFastGeluBackward: the gradient of x s(1.702 x), where s is the logistic function."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles.swish_backward import slope

_BETA = 1.702


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula."""
    return {"gradInput": gradOutput * slope(f, self, _BETA)}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": self * f.sigmoid(self * _BETA)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
