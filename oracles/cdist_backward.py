"""aclnnCdistBackward: the gradient of p-norm distances for x1, the sum of grad d |d|^(p-2) / cdist^(p-1), d = x1 - x2.

A power is exp(y log x); |d|^(p-2) counts as exp((p-1) l - l), l = log |d|, so that |d|^(p-1) may be computed instead.
Where the formula has no value nothing is decided: differences of 0 with p up to 1, distances of 0 or less.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _differences(f: F, x1: Array, x2: Array) -> tuple[Array, Array]:
    """Every row of x1 less every row of x2, and its magnitude."""
    rows, others = x1.reshape(*x1.shape[:-1], 1, x1.shape[-1]), x2.reshape(*x2.shape[:-2], 1, *x2.shape[-2:])
    d = f.difference(rows, others)
    return d, f.where(d > 0.0, d, -d)


def _backward(f: F, grad: Array, x1: Array, x2: Array, cdist: Array, p: float) -> Outputs:
    g, c = grad.reshape(*grad.shape, 1), cdist.reshape(*cdist.shape, 1)
    d, size = _differences(f, x1, x2)
    logs = f.log(size if p <= 1.0 else f.where(size > 0.0, size, 1.0))
    return {"out": (g * (d * f.exp((p - 1.0) * logs - logs)) / f.exp((p - 1.0) * f.log(c))).sum(-2)}


def _without_gaps(f: F, grad: Array, x1: Array, x2: Array, cdist: Array, p: float) -> Outputs:
    """Terms of 0 where the formula has no value: what inf and nan elsewhere in a sum require must hold of both."""
    g, c = grad.reshape(*grad.shape, 1), cdist.reshape(*cdist.shape, 1)
    d, size = _differences(f, x1, x2)
    powers = 1.0 if p == 1.0 else f.exp((p - 1.0) * f.log(size)) / f.exp((p - 1.0) * f.log(c))
    return {"out": f.where(c > 0.0, f.where(size > 0.0, f.where(d > 0.0, g, -g) * powers, d), 0.0).sum(-2)}


def _forward(f: F, x1: Array, x2: Array, p: float) -> Outputs:
    _, size = _differences(f, x1, x2)
    return {"cdist": f.exp(f.log(f.exp(p * f.log(size)).sum(-1)) / p)}


FORMULA = Operator.of(
    _backward,
    _without_gaps,
    derivative=Derivative(forward=_forward, gradients={"grad": "cdist"}, wrt={"out": "x1"}, saved=("cdist",)),
)
