"""aclnnGeluBackwardV2: the gradient of GELU, in the exact form (`none`) and in the one by tanh (`tanh`)."""

import math

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_C, _A = math.sqrt(2.0 / math.pi), 0.044715


def backward(f: F, gradOutput: Array, self: Array, approximate: str) -> Outputs:
    """The document's formula."""
    square = self * self
    if approximate == "tanh":
        t = f.tanh(_C * (self + _A * (square * self)))
        slope = (1.0 - t * t) * (_C * (1.0 + 3.0 * _A * square))
        return {"gradInput": gradOutput * (0.5 * (1.0 + t) + 0.5 * self * slope)}
    density = f.exp(-0.5 * square) * (1.0 / math.sqrt(2.0 * math.pi))
    return {"gradInput": gradOutput * (0.5 * (1.0 + f.erf(self * math.sqrt(0.5))) + self * density)}


def forward(f: F, self: Array, approximate: str) -> Outputs:
    """What it is the derivative of."""
    cubed = self + _A * (self * self * self)
    inner = f.tanh(_C * cubed) if approximate == "tanh" else f.erf(self * math.sqrt(0.5))
    return {"y": 0.5 * self * (1.0 + inner)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
