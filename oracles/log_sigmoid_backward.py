"""aclnnLogSigmoidBackward: the gradient of log(1 / (1 + exp(-x))), which is the gradient over 1 + exp(x)."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula, by the logistic function of -self."""
    return {"gradInput": gradOutput * f.sigmoid(-self)}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": -f.softplus(-self)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
