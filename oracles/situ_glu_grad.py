"""aclnnSituGluGrad: the gradients of a(gate) u(up) by both, where gate and up are halves of x.

a is beta tanh(gate / beta) s(gate), with s the logistic function. u is up, or c tanh(up / c) with c = linearBeta > 0.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._glu import halves, joined


def backward(f: F, gradY: Array, x: Array, *, dim: int, beta: float, linearBeta: float, activateLeft: bool) -> Outputs:
    """The document's formula."""
    gate, up = halves(x, dim)[:: 1 if activateLeft else -1]
    t, s = f.tanh(gate / beta), f.sigmoid(gate)
    of_up, u = gradY * (beta * t * s), up
    if linearBeta > 0.0:
        bent = f.tanh(up / linearBeta)
        of_up, u = of_up * (1.0 - bent * bent), linearBeta * bent
    of_gate = gradY * u * s * ((1.0 - t * t) + beta * t * (1.0 - s))
    return {"out": joined(f, *((of_gate, of_up) if activateLeft else (of_up, of_gate)), dim)}


def forward(f: F, x: Array, *, dim: int, beta: float, linearBeta: float, activateLeft: bool) -> Outputs:
    """What it is the derivative of."""
    gate, up = halves(x, dim)[:: 1 if activateLeft else -1]
    u = linearBeta * f.tanh(up / linearBeta) if linearBeta > 0.0 else up
    return {"y": beta * f.tanh(gate / beta) * f.sigmoid(gate) * u}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradY": "y"}, wrt={"out": "x"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
LEADING = "dim"
