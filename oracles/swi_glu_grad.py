"""aclnnSwiGluGrad: the gradients of a s(a) b, where s is the logistic function and a, b are halves of x."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._glu import halves, joined


def backward(f: F, yGrad: Array, x: Array, dim: int) -> Outputs:
    """The document's formula."""
    a, b = halves(x, dim)
    s = f.sigmoid(a)
    return {"out": joined(f, yGrad * (s + s * (1.0 - s) * a) * b, yGrad * s * a, dim)}


def factored(f: F, yGrad: Array, x: Array, dim: int) -> Outputs:
    """With the logistic function taken out."""
    a, b = halves(x, dim)
    s = f.sigmoid(a)
    return {"out": joined(f, yGrad * b * (s * (1.0 + a * (1.0 - s))), yGrad * (s * a), dim)}


def forward(f: F, x: Array, dim: int) -> Outputs:
    """What it is the derivative of."""
    a, b = halves(x, dim)
    return {"y": f.sigmoid(a) * a * b}


_DERIVATIVE = Derivative(forward=forward, gradients={"yGrad": "y"}, wrt={"out": "x"})
FORMULA = Operator.of(backward, factored, derivative=_DERIVATIVE)
LEADING = "dim"
