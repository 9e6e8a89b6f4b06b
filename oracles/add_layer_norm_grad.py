"""aclnnAddLayerNormGrad: the gradients of a layer normalisation of x1 + x2; to dxOut that of another use is added."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalised


def _backward(f: F, dy: Array, x1: Array, x2: Array, rstd: Array, mean: Array, gamma: Array,
              dsumOptional: Array | None) -> Outputs:  # fmt: skip
    rows = Groups.of_rows(x1.shape, gamma.shape)
    shapes = {"dxOut": x1.shape, "dgammaOut": gamma.shape, "dbetaOut": gamma.shape}
    found = gradients(f, rows, dy, x1 + x2, mean, rstd, gamma, shapes)
    return found if dsumOptional is None else {**found, "dxOut": found["dxOut"] + dsumOptional}


def _forward(f: F, x1: Array, x2: Array, gamma: Array, beta: Array, mean: Sizes) -> Outputs:
    found = normalised(f, Groups.of_rows(x1.shape, gamma.shape), x1 + x2, gamma, beta, mean)
    return {**found, "sum": x1 + x2}


DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"dy": "y", "dsumOptional": "sum"},
    wrt={"dxOut": "x1", "dgammaOut": "gamma", "dbetaOut": "beta"},
    saved=("mean", "rstd"),
)
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
