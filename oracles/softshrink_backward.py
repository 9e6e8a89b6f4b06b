"""aclnnSoftshrinkBackward: the gradient where self is above lambda or below -lambda, and 0 elsewhere."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles.hardshrink_backward import outside


def backward(f: F, gradOutput: Array, self: Array, lambda_: float) -> Outputs:
    """The document's formula."""
    return {"gradInput": outside(f, gradOutput, self, lambda_)}


def forward(f: F, self: Array, lambda_: float) -> Outputs:
    """What it is the derivative of."""
    # The constant changes no slope. It makes 0 a jump where lambda is 0: the document's slope there is no derivative.
    shrunk = f.where(self > 0.0, self + (1.0 - lambda_), self + lambda_)
    return {"y": outside(f, shrunk, self, lambda_)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
