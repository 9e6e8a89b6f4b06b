"""aclnnLogSoftmaxBackward: the gradient of log-softmax from its output y and the gradient g, g - exp(y) sum(g)."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    return {"out": gradOutput - f.exp(output) * gradOutput.sum(dim, keepdims=True)}


def _forward(f: F, self: Array, dim: int) -> Outputs:
    centred = self - self.max(dim, keepdims=True)
    return {"output": centred - f.log(f.exp(centred).sum(dim, keepdims=True))}


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(forward=_forward, gradients={"gradOutput": "output"}, wrt={"out": "self"}, saved=("output",)),
)
LEADING = "dim"
