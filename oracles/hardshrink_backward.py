"""aclnnHardshrinkBackward: the gradient where self is above lambd or below -lambd, and 0 elsewhere."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def outside(f: F, values: Array, self: Array, bound: float) -> Array:
    """The values where self lies outside [-bound, bound], and 0 inside."""
    found: Array = f.where(self > bound, values, f.where(self < -bound, values, 0.0))
    return found


def backward(f: F, gradOutput: Array, self: Array, lambd: float) -> Outputs:
    """The document's formula; a negative lambd counts as 0."""
    return {"gradInput": outside(f, gradOutput, self, max(lambd, 0.0))}


def forward(f: F, self: Array, lambd: float) -> Outputs:
    """What it is the derivative of."""
    # The constant changes no slope. It makes 0 a jump where lambd is 0: the document's slope there is no derivative.
    return {"y": outside(f, f.where(self > 0.0, self + 1.0, self), self, max(lambd, 0.0))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
