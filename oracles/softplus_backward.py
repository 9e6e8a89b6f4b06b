"""aclnnSoftplusBackward: the gradient of log(1 + exp(beta x)) / beta, which is x where beta x is above a threshold."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array, beta: float, threshold: float) -> Outputs:
    """The document's formula."""
    scaled = self * beta
    return {"gradInput": f.where(scaled > threshold, gradOutput, gradOutput * f.sigmoid(scaled))}


def forward(f: F, self: Array, beta: float, threshold: float) -> Outputs:
    """What it is the derivative of."""
    scaled = self * beta
    return {"y": f.where(scaled > threshold, self, f.softplus(scaled) / beta)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
