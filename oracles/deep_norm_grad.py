"""aclnnDeepNormGrad: the gradients of a layer normalisation of alpha x + gx.

With c = alpha x + gx - mean and t = dy gamma, that of gx is t rstd - avg(t c) rstd^3 c - avg(t) rstd. A normalised c
may come first as well; near the largest number the third power overflows elsewhere.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._normalisation import Groups, Sizes, centred, normalisation, normalised


def _backward(f: F, dy: Array, x: Array, gx: Array, gamma: Array, mean: Array, rstd: Array, alpha: float) -> Outputs:
    rows = Groups.of_rows(x.shape, gamma.shape)
    g, r = rows.grouped(dy), rows.statistic(rstd)
    c = f.as_written(rows.grouped(x * alpha + gx) - rows.statistic(mean))
    t = g * rows.weight(gamma)
    cubed = t * r - (t * c).mean(1, keepdims=True) * (r * r * r) * c - t.mean(1, keepdims=True) * r
    dgx = f.either(cubed, centred(t, c * r, (1,)) * r)
    return {
        "dxOut": (dgx * alpha).reshape(*x.shape),
        "dgxOut": dgx.reshape(*x.shape),
        "dbetaOut": g.sum(0).reshape(*gamma.shape),
        "dgammaOut": (g * (c * r)).sum(0).reshape(*gamma.shape),
    }


def _forward(f: F, x: Array, gx: Array, gamma: Array, beta: Array, alpha: float, mean: Sizes) -> Outputs:
    return normalised(f, Groups.of_rows(x.shape, gamma.shape), x * alpha + gx, gamma, beta, mean)


_WRT = {"dxOut": "x", "dgxOut": "gx", "dbetaOut": "beta", "dgammaOut": "gamma"}
FORMULA = normalisation(_backward, _forward, ("mean", "rstd"), gradient="dy", **_WRT)
