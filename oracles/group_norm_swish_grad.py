"""aclnnGroupNormSwishGrad: the gradients of y sigmoid(scale y), where y is a group normalisation of x."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._normalisation import Groups, Sizes, gradients, normalised


def _bwd(f: F, dy: Array, mean: Array, rstd: Array, x: Array, gamma: Array, beta: Array, *, numGroups: int,  # noqa: PLR0913
         swishScale: float, dgammaOut: Sizes, dbetaOut: Sizes) -> Outputs:  # fmt: skip
    groups = Groups((x.shape[0], numGroups, x.shape[1] // numGroups, -1), within=(2, 3), across=(0, 3))
    h = f.as_written(x.reshape(*groups.shape) - groups.statistic(mean)) * groups.statistic(rstd)
    z = swishScale * (h * groups.weight(gamma) + groups.weight(beta))
    g = dy.reshape(*groups.shape) * (f.sigmoid(z) * (1.0 + z * f.sigmoid(-z)))
    shapes = {"dxOut": x.shape, "dgammaOut": dgammaOut, "dbetaOut": dbetaOut}
    return gradients(f, groups, g, x, mean, rstd, gamma, shapes)


def _fwd(f: F, x: Array, gamma: Array, beta: Array, *, numGroups: int, swishScale: float, mean: Sizes) -> Outputs:
    groups = Groups((x.shape[0], numGroups, x.shape[1] // numGroups, -1), within=(2, 3), across=(0, 3))
    found = normalised(f, groups, x, gamma, beta, mean)
    return {**found, "y": found["y"] * f.sigmoid(swishScale * found["y"])}


_OF = {"dxOut": "x", "dgammaOut": "gamma", "dbetaOut": "beta"}
FORMULA = Operator.of(_bwd, derivative=Derivative(forward=_fwd, gradients={"dy": "y"}, wrt=_OF, saved=("mean", "rstd")))
