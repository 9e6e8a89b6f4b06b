"""aclnnSigmoidBackward: g y (1 - y), the gradient of the logistic function from its output y; conjugate if complex."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.complex import Complex
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, gradOutput: Array, output: Array) -> Outputs:
    if isinstance(output, Complex):
        return {"gradInput": gradOutput * ((1.0 - output) * output).conj()}
    # Where (1 - y) y is exact, g (1 - y) y still rounds twice from the left, as kernels compute it.
    return {"gradInput": gradOutput * (1.0 - output) * output}


def _distributed(f: F, gradOutput: Array, output: Array) -> Outputs:
    return {"gradInput": gradOutput * (output - output * output).conj()}


def _forward(f: F, self: Array) -> Outputs:
    return {"output": f.sigmoid(self)}


FORMULA = Operator.of(
    _backward,
    _distributed,
    derivative=Derivative(
        forward=_forward, gradients={"gradOutput": "output"}, wrt={"gradInput": "self"}, saved=("output",)
    ),
)
