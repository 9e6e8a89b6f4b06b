r"""aclnnRmsNormGrad: the gradients of RMS normalisation with respect to its input and its weight.

x is seen as (n, d): d the product of gamma's dimensions (the trailing ones of x), n of the others. rstd is an input and
taken as given, one number r a row; it is never computed again from x. For each row, and over all rows,

    xhat = x r,   g = dy gamma,   m = (1/d) sum_j g[j] xhat[j]
    dxOut[i] = (g[i] - xhat[i] m) r,   dgammaOut[i] = sum_rows dy[i] xhat[i]

A last product that is distributed over the difference conforms, and so does g r - r^3 x mean(g x), one of those that
the published golden programs evaluate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._blocks import in_blocks

Gradients: TypeAlias = "tuple[Array, Array]"
"""Of some rows: dx, and what the gradient of gamma sums up over them."""


def factored_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> dict[str, Array]:
    """Both gradients, rstd taken as given."""

    def compute(gradient: Array, g: Array, values: Array, r: Array) -> Gradients:
        xhat = f.grouped(values * r)
        return (g - xhat * f.grouped((g * xhat).mean(1, keepdims=True))) * r, gradient * xhat

    return _by_rows(f, compute, dy, x, rstd, gamma)


def _expanded_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> Outputs:
    def compute(gradient: Array, g: Array, values: Array, r: Array) -> Gradients:
        xhat = f.grouped(values * r)
        dx = g * r - xhat * f.grouped(f.grouped((g * xhat).mean(1, keepdims=True)) * r)
        return dx, (gradient * values) * r

    return _by_rows(f, compute, dy, x, rstd, gamma)


def _cubed_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> Outputs:
    def compute(gradient: Array, g: Array, values: Array, r: Array) -> Gradients:
        dx = g * r - f.grouped(r * r * r * values) * f.grouped((g * values).mean(1, keepdims=True))
        return dx, gradient * (values * r)

    return _by_rows(f, compute, dy, x, rstd, gamma)


def _cubed_mean_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> Outputs:
    def compute(gradient: Array, g: Array, values: Array, r: Array) -> Gradients:
        dx = g * r - values * f.grouped(r * r * r * (g * values).mean(1, keepdims=True))
        return dx, gradient * (values * r)

    return _by_rows(f, compute, dy, x, rstd, gamma)


def _by_rows(
    f: F, gradients: Callable[[Array, Array, Array, Array], Gradients], dy: Array, x: Array, rstd: Array, gamma: Array
) -> dict[str, Array]:
    """Both gradients from those of rows: dy and x as (n, d), r as (n, 1), and g."""
    matrix = rstd.size, gamma.size
    whole = dy.reshape(*matrix), x.reshape(*matrix), rstd.reshape(-1, 1)
    weight = gamma.reshape(-1)

    def compute(place: slice) -> tuple[Sequence[Array], Sequence[Array]]:
        gradient, values, r = whole if place == slice(None) else (array[place] for array in whole)
        dx, terms = gradients(gradient, f.grouped(gradient * weight), values, r)
        return (dx,), (terms.sum(0),)

    [dx], [dgamma] = in_blocks(f, compute, count=rstd.size, each=gamma.size, axis=0)
    return {"dxOut": dx.reshape(*x.shape), "dgammaOut": dgamma.reshape(*gamma.shape)}


def rms_norm(f: F, x: Array, gamma: Array, rstd: tuple[int, ...]) -> Outputs:
    """The forward operator, and its reciprocals in a shape."""
    values = x.reshape(math.prod(rstd), -1)
    r = 1.0 / f.sqrt((values * values).mean(1, keepdims=True) + _EPSILON)
    return {"y": (values * r * gamma.reshape(-1)).reshape(*x.shape), "rstd": r.reshape(*rstd)}


_EPSILON = 1e-6
"""Of the forward operator, whose derivative knows it by `rstd` alone."""

FORMULA = Operator.of(
    factored_formula,
    _expanded_formula,
    _cubed_formula,
    _cubed_mean_formula,
    any_form=True,
    derivative=Derivative(
        forward=rms_norm, gradients={"dy": "y"}, wrt={"dxOut": "x", "dgammaOut": "gamma"}, saved=("rstd",)
    ),
)
