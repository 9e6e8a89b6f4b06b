"""aclnnThresholdBackward: the gradient where self is above the threshold, and 0 elsewhere."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array, threshold: float) -> Outputs:
    """The document's formula; integers are lifted, so that they go the way of other numbers."""
    return {"out": f.where(f.lift(self) > threshold, gradOutput, 0.0)}


def forward(f: F, self: Array, threshold: float) -> Outputs:
    """What it is the derivative of, with 0 in the place of its value."""
    return {"y": f.where(f.lift(self) > threshold, self, 0.0)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
