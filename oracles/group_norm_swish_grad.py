"""aclnnGroupNormSwishGrad: the gradients of y sigmoid(scale y), where y is a group normalisation of x."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalised


def backward(  # noqa: PLR0913 - the parameters of the C prototype
    f: F,
    dy: Array,
    mean: Array,
    rstd: Array,
    x: Array,
    gamma: Array,
    beta: Array,
    *,
    numGroups: int,
    swishScale: float,
    dgammaOut: Sizes,
    dbetaOut: Sizes,
) -> Outputs:
    """The gradient of the activation, then that of the normalisation."""
    groups = Groups((x.shape[0], numGroups, x.shape[1] // numGroups, -1), within=(2, 3), across=(0, 3))
    h = f.as_written(x.reshape(*groups.shape) - groups.statistic(mean)) * groups.statistic(rstd)
    z = swishScale * (h * groups.weight(gamma) + groups.weight(beta))
    g = dy.reshape(*groups.shape) * (f.sigmoid(z) * (1.0 + z * f.sigmoid(-z)))
    shapes = {"dxOut": x.shape, "dgammaOut": dgammaOut, "dbetaOut": dbetaOut}
    return gradients(f, groups, g, x, mean, rstd, gamma, shapes)


def forward(f: F, x: Array, gamma: Array, beta: Array, *, numGroups: int, swishScale: float, mean: Sizes) -> Outputs:
    """What it is the derivative of."""
    groups = Groups((x.shape[0], numGroups, x.shape[1] // numGroups, -1), within=(2, 3), across=(0, 3))
    found = normalised(f, groups, x, gamma, beta, mean)
    return {**found, "y": found["y"] * f.sigmoid(swishScale * found["y"])}


_DERIVATIVE = Derivative(
    forward=forward,
    gradients={"dy": "y"},
    wrt={"dxOut": "x", "dgammaOut": "gamma", "dbetaOut": "beta"},
    saved=("mean", "rstd"),
)
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
