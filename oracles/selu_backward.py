"""aclnnSeluBackward: the gradient of SELU, scale x above 0 and scale alpha (exp(x) - 1) elsewhere, from its result."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def backward(f: F, gradOutput: Array, result: Array) -> Outputs:
    """The program's formula; at 0 the slope of either side. Integers are lifted: they go the way of other numbers."""
    gradient, y = f.lift(gradOutput), f.lift(result)
    above, below = gradient * _SCALE, gradient * (y + _SCALE * _ALPHA)
    border = f.either(above, below)
    return {"gradInput": f.where(y > 0.0, above, f.where(y < 0.0, below, border))}


def forward(f: F, x: Array) -> Outputs:
    """What it is the derivative of."""
    x = f.lift(x)
    return {"result": f.where(x > 0.0, x * _SCALE, (f.exp(x) - 1.0) * (_SCALE * _ALPHA))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "result"}, wrt={"gradInput": "x"}, saved=("result",))
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
