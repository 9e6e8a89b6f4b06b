"""aclnnGroupNormSwishGrad: the gradients of y sigmoid(scale y), where y is a group normalisation of x."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalisation, normalised


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, *, numGroups: int,
    swishScale: float, dgammaOut: Sizes, dbetaOut: Sizes,
) -> Outputs:  # fmt: skip
    groups = Groups.of_channels(x.shape, numGroups)
    z = swishScale * (groups.normal(f, x, mean, rstd) * groups.weight(gamma) + groups.weight(beta))
    g = groups.grouped(dy) * (f.sigmoid(z) * (1.0 + z * f.sigmoid(-z)))
    shapes = {"dxOut": x.shape, "dgammaOut": dgammaOut, "dbetaOut": dbetaOut}
    return gradients(f, groups, g, x, mean, rstd, gamma, shapes)


def _forward(f: F, x: Array, gamma: Array, beta: Array, *, numGroups: int, swishScale: float, mean: Sizes) -> Outputs:
    found = normalised(f, Groups.of_channels(x.shape, numGroups), x, gamma, beta, mean)
    return {**found, "y": found["y"] * f.sigmoid(swishScale * found["y"])}


_WRT = {"dxOut": "x", "dgammaOut": "gamma", "dbetaOut": "beta"}
FORMULA = normalisation(_backward, _forward, ("mean", "rstd"), gradient="dy", **_WRT)
