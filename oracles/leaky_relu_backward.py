"""aclnnLeakyReluBackward: the gradient g where self is above 0, and the negative slope times g elsewhere.

Where selfIsResult is true, self is the result of the forward pass. With a slope that is not negative its sign is that
of the argument, so that the formula is the same.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(f: F, gradOutput: Array, self: Array, negativeSlope: float) -> Outputs:
    """The document's formula."""
    return {"out": f.where(self > 0.0, gradOutput, gradOutput * negativeSlope)}


def forward(f: F, self: Array, negativeSlope: float) -> Outputs:
    """What it is the derivative of."""
    return {"y": f.where(self > 0.0, self, self * negativeSlope)}


FORMULA = Operator.of(
    backward, derivative=Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
)
