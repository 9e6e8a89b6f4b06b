"""aclnnHardswishBackward: the gradient times 0, self/3 + 1/2 or 1, by the range of self; 3 is in the middle."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula, in which -3 and 3 belong to the middle range."""
    middle = f.where(self > 3.0, gradOutput, gradOutput * (self / 3.0 + 0.5))
    return {"out": f.where(self < -3.0, 0.0, middle)}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    middle = f.where(self > 3.0, self, self * (self + 3.0) / 6.0)
    return {"y": f.where(self < -3.0, 0.0, middle)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
