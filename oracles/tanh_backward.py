"""aclnnTanhBackward: the gradient of tanh from its output y and the incoming gradient g, g (1 - y^2)."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, gradOutput: Array, output: Array) -> Outputs:
    return {"gradInput": gradOutput * (1.0 - output * output)}


def _factored(f: F, gradOutput: Array, output: Array) -> Outputs:
    return {"gradInput": gradOutput * ((1.0 - output) * (1.0 + output))}


def _forward(f: F, self: Array) -> Outputs:
    return {"output": f.tanh(self)}


FORMULA = Operator.of(
    _backward,
    _factored,
    derivative=Derivative(
        forward=_forward, gradients={"gradOutput": "output"}, wrt={"gradInput": "self"}, saved=("output",)
    ),
)
