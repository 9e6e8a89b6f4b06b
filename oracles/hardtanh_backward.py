"""aclnnHardtanhBackward: 0 where self is above max or below min, and the gradient elsewhere."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array, min: float, max: float) -> Outputs:
    """The document's formula."""
    return {"out": f.where(self > max, 0.0, f.where(self < min, 0.0, gradOutput))}


def forward(f: F, self: Array, min: float, max: float) -> Outputs:
    """What it is the derivative of."""
    return {"y": f.where(self > max, max, f.where(self < min, min, self))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
