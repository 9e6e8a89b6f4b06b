"""aclnnEluBackward: the gradient g of ELU, whose slope at 0 and below is read from its argument or from its result.

Above 0 the slope is scale, elsewhere inputScale alpha scale exp(inputScale x), which is inputScale (y + alpha scale) by
the result y. Which of them holds is told by the sign of what the call is given.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def backward(
    f: F, gradOutput: Array, selfOrResult: Array, *, alpha: float, scale: float, inputScale: float, isResult: bool
) -> Outputs:
    """The document's formula."""
    # From the left: where the product of the scalars is exact, gradOutput still rounds with each of them.
    below = gradOutput * inputScale
    if isResult:
        below = below * (selfOrResult + f.lift(alpha) * scale)
    else:
        below = below * alpha * scale * f.exp(selfOrResult * inputScale)
    return {"gradInput": f.where(selfOrResult > 0.0, gradOutput * scale, below)}


def forward(f: F, x: Array, *, alpha: float, scale: float, inputScale: float, isResult: bool) -> Outputs:
    """What it is the derivative of, and what of it the call is given."""
    # A negative scale turns the result's sign.
    side = x * scale if isResult else x
    y = f.where(side > 0.0, x * scale, (f.exp(x * inputScale) - 1.0) * (f.lift(alpha) * scale))
    return {"y": y, "selfOrResult": y if isResult else x}


_GIVEN = ("selfOrResult",)
_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "x"}, saved=_GIVEN)
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
