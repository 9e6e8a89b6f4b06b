"""aclnnGluBackward: the gradients of a s(b), where s is the logistic function and a, b are halves of self."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._glu import halves, joined


def backward(f: F, gradOut: Array, self: Array, dim: int) -> Outputs:
    """The document's formula."""
    a, b = halves(self, dim)
    s = f.sigmoid(b)
    front = gradOut * s
    return {"out": joined(f, front, front * (a - a * s), dim)}


def factored(f: F, gradOut: Array, self: Array, dim: int) -> Outputs:
    """With the slope of the logistic function as one factor."""
    a, b = halves(self, dim)
    s = f.sigmoid(b)
    return {"out": joined(f, gradOut * s, gradOut * a * (s * (1.0 - s)), dim)}


def forward(f: F, self: Array, dim: int) -> Outputs:
    """What it is the derivative of."""
    a, b = halves(self, dim)
    return {"y": a * f.sigmoid(b)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOut": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, factored, derivative=_DERIVATIVE)
LEADING = "dim"
