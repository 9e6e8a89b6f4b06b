r"""aclnnSoftmaxBackward: the gradient of softmax along `dim`.

With y = `output` and g = `gradOutput`, for every slice along `dim` of n elements:

    out[i] = y[i] g[i] - y[i] s,    s = sum_j y[j] g[j]

y need not be the result of a softmax. The document's formula is this one; an implementation may as well evaluate
y (g - s). Either conforms.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _expanded_formula(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    product = output * gradOutput
    return {"out": product - output * product.sum(dim, keepdims=True)}


def _factored_formula(f: F, gradOutput: Array, output: Array, dim: int) -> Outputs:
    return {"out": output * (gradOutput - f.grouped((output * gradOutput).sum(dim, keepdims=True)))}


def _softmax(f: F, self: Array, dim: int) -> Outputs:
    power = f.exp(self - self.max(dim, keepdims=True))
    return {"output": power / power.sum(dim, keepdims=True)}


FORMULA = Operator.of(
    _expanded_formula,
    _factored_formula,
    any_form=True,
    derivative=Derivative(forward=_softmax, gradients={"gradOutput": "output"}, wrt={"out": "self"}, saved=("output",)),
)

LEADING = "dim"
