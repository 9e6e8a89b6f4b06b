"""aclnnGeluBackward: the gradient of GELU; the document gives it by erf, and GELU by tanh as well."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._gelu import gelu, slope


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula, or the slope of its approximation: which of them is computed is not said."""
    return {"gradInput": gradOutput * f.either(slope(f, self, by_tanh=False), slope(f, self, by_tanh=True))}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": gelu(f, self, by_tanh=False)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
