"""aclnnGeGluV3Backward: the gradient of one half of self times GELU of the other; activateLeft says which."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._glu import geglu, geglu_gradient


def backward(
    f: F, gradOutput: Array, self: Array, gelu: Array, *, dim: int, approximate: int, activateLeft: bool
) -> Outputs:
    """The derivative, by the result of GELU as it is given."""
    return {"gradInput": geglu_gradient(f, gradOutput, self, gelu, dim, by_tanh=approximate == 1, left=activateLeft)}


def forward(f: F, self: Array, *, dim: int, approximate: int, activateLeft: bool) -> Outputs:
    """What it is the derivative of."""
    return geglu(f, self, dim, by_tanh=approximate == 1, left=activateLeft)


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"}, saved=("gelu",))
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
LEADING = "dim"
