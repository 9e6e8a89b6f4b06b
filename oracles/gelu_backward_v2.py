"""aclnnGeluBackwardV2: the gradient of GELU, in the exact form (`none`) and in the one by tanh (`tanh`)."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._gelu import gelu, slope


def backward(f: F, gradOutput: Array, self: Array, approximate: str) -> Outputs:
    """The document's formula."""
    return {"gradInput": gradOutput * slope(f, self, by_tanh=approximate == "tanh")}


def forward(f: F, self: Array, approximate: str) -> Outputs:
    """What it is the derivative of."""
    return {"y": gelu(f, self, by_tanh=approximate == "tanh")}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
