r"""aclnnRmsNormGrad: the gradients of RMS normalisation with respect to its input and its weight.

x is seen as (n, d): d the product of gamma's dimensions (the trailing ones of x), n of the others. rstd is an input and
taken as given, one number r a row; it is never computed again from x. For each row, and over all rows,

    xhat = x r,   g = dy gamma,   m = (1/d) sum_j g[j] xhat[j]
    dxOut[i] = (g[i] - xhat[i] m) r,   dgammaOut[i] = sum_rows dy[i] xhat[i]

Error terms, with M = (1/d) sum_j |g[j] xhat[j]| and gamma_k = k u / (1 - k u) (Higham, *Accuracy and Stability of
Numerical Algorithms*, 2nd ed., chapter 3, which counts roundings and products of their factors). Roundings
that meet a quantity on its way into dxOut:

- g: its own product, the subtraction, the product with r: 3;
- the mean: each term has the products g, xhat and g xhat, 3; a sum of d terms in any order adds d - 1 (chapter 4);
  the product with a rounded 1/d adds 2, none where d is a power of two and both are exact: q = d + 4 or d + 2;
- xhat m: xhat has 1, m has q, their product 1, the subtraction 1, the product with r 1: q + 4.

    |error of dxOut[i]| <= gamma_3 |g[i] r| + gamma_{q+4} |xhat[i] r| M

A last product that is distributed over the difference stays within it, and so does g r - r^3 x mean(g x), whose mean
takes a rounding less for each term and whose r^3 takes two. dgammaOut sums n terms of two products each, n - 1
additions: gamma_{n+1} sum_rows |dy[i] xhat[i]|.

The form with r^3 is one of those that the published golden programs evaluate, so what overflows or underflows in it
counts as well: sum |g x| without r, r^3, and their products, in which the division by d may come last but one.

Underflow (Higham, chapter 2): ten operations lead to dxOut[i], those of the d terms of the mean counted once because
their errors are averaged. With X = max |xhat| and G = max |g| of the row, an error in any of them is multiplied by at
most max(1, X, |r| max(1, M, X max(1, G, X))); X alone meets m r where the last product is distributed. The form with
r^3 takes ten as well, and one more where a derivative's factor of a half goes with r^3. With Y = max |x| and
A = M / |r| = mean |g x|, an error in g x or in its mean is multiplied by at most r^2 X (that of g by |r| X^2, as
before), one in r^2 by Y A |r|, in r^3 by Y A, in r^3 mean by Y, in r^3 x by A: max(r^2 X, max(1, Y) max(1, A max(1,
|r|))) for all. dgammaOut: two products and an addition a row, multiplied by at most max(1, |dy|), or where the row's r
comes last, (dy x) r, by max(1, |r|); what overflows in dy x counts there. Where an input holds
subnormal numbers, a load of it may be an underflow too: two for each of the products g and xhat, multiplied by the
other factor first, and one of r, multiplied by the difference; in the form with r^3 two more of r, and one of x,
multiplied by G r^2 X; in dgammaOut one of each of the three factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._exact import sum_of_products
from aclnn_cts.oracles._rms_norm_forms import (
    cubed,
    dgamma_lattice,
    dx_lattice,
    expanded,
    factored,
    row_mean,
    weight_first,
    weight_last,
)
from aclnn_cts.oracles._special_values import finite_part, loads_may_underflow, settle

Mask = NDArray[np.bool_]


def expected(call: OracleInput) -> Expected:
    """The gradients `dxOut`, of the shape of `x`, and `dgammaOut`, of the shape of `gamma`.

    The inputs are reshaped by their numbers of elements alone, so that every shape of `rstd` with one element a row
    is understood.
    """
    tensors = call.tensors
    shape, gamma_shape = tensors["x"].shape, tensors["gamma"].shape
    gamma: Float64 = tensors["gamma"].reshape(-1)
    rstd: Float64 = tensors["rstd"].reshape(-1, 1)
    matrix = (rstd.size, gamma.size)
    dy: Float64 = tensors["dy"].reshape(matrix)
    x: Float64 = tensors["x"].reshape(matrix)
    dx_open = dgamma_open = None
    with np.errstate(all="ignore"):
        g, product = dy * gamma, dy * x
        sizes = _sizes(dy, x, rstd, g, product)
        if math.isfinite(np.add.reduce(sizes.mass, axis=None) * sizes.largest_r):
            dx = (g - x * (rstd * row_mean(g * x) * rstd)) * rstd
            dgamma = rstd.reshape(-1) @ product
        else:
            dx, dx_open = settle(factored, expanded, cubed, operands=(dy, x, rstd, gamma))
            dgamma, dgamma_open = settle(weight_first, weight_last, operands=(dy, x, rstd))
            dy, x, rstd, gamma = (finite_part(operand) for operand in (dy, x, rstd, gamma))
            sizes = _sizes(dy, x, rstd, dy * gamma, dy * x)
        loads = _loads({"dy": sizes.dy, "x": sizes.x, "rstd": sizes.r, "gamma": np.abs(gamma)}, call.lattices)
        return {
            "dxOut": _dx(dx, dx_open, sizes, loads=loads, shape=shape, lattice=dx_lattice(call, rstd)),
            "dgammaOut": _dgamma(
                dgamma, dgamma_open, sizes, loads=loads, shape=gamma_shape, lattice=dgamma_lattice(call)
            ),
        }


def exact(call: OracleInput, output: str, index: tuple[int, ...]) -> Fraction:
    """One element in rational arithmetic, over one row or one column; inputs must be finite.

    dx_k = r dy_k gamma_k - r^3 x_k / d sum_j dy_j gamma_j x_j, the derivative with r = 1 / rms(x) taken as given;
    dgamma_k = sum over rows of dy_k x_k r.
    """
    dy, x, gamma = call.tensors["dy"], call.tensors["x"], call.tensors["gamma"]
    width = gamma.size
    rows = x.size // width if width else 0
    dy2, x2, r, weight = (
        dy.reshape(rows, width),
        x.reshape(rows, width),
        call.tensors["rstd"].reshape(-1),
        gamma.reshape(-1),
    )
    if output == "dgammaOut":
        column = int(np.ravel_multi_index(index, gamma.shape)) if gamma.ndim else 0
        return sum_of_products(dy2[:, column].tolist(), x2[:, column].tolist(), r.tolist())
    place = int(np.ravel_multi_index(index, x.shape))
    row, column = divmod(place, width)
    scale = Fraction(float(r[row]))
    mass = sum_of_products(dy2[row].tolist(), weight.tolist(), x2[row].tolist())
    own = Fraction(float(dy2[row, column])) * Fraction(float(weight[column]))
    return scale * own - scale**3 * Fraction(float(x2[row, column])) * mass / width


class _Sizes(NamedTuple):
    """Absolute values that both outputs are made of, (n, d) but for `r` and `mass`."""

    dy: Float64
    x: Float64
    r: Float64
    g: Float64
    xhat: Float64
    product: Float64
    """Of dy and x."""
    mass: Float64
    """sum_j |g[j] x[j]| = d A for each row, (n, 1)."""
    largest_r: float


def _sizes(dy: Float64, x: Float64, rstd: Float64, g: Float64, product: Float64) -> _Sizes:
    of_x, r, of_g = np.abs(x), np.abs(rstd), np.abs(g)
    mass: Float64 = np.einsum("ij,ij->i", of_g, of_x)[:, None]
    largest_r = float(np.maximum.reduce(r, axis=None, initial=0.0))
    return _Sizes(np.abs(dy), of_x, r, of_g, of_x * r, np.abs(product), mass, largest_r)


def _dx(
    value: Float64,
    unsettled: Mask | None,
    sizes: _Sizes,
    *,
    loads: float | None,
    shape: tuple[int, ...],
    lattice: float | None,
) -> ExpectedOutput:
    """The output dxOut with its error terms."""
    g, r, xhat, plain_mass = sizes.g, sizes.r, sizes.xhat, sizes.mass
    columns = g.shape[1]
    width = max(columns, 1)
    rounded_reciprocal = width & (width - 1) != 0
    plain_mean = plain_mass / width
    mass = plain_mass * r
    mean = mass / width
    largest_x = np.maximum.reduce(sizes.x, axis=1, keepdims=True, initial=0.0)
    largest_g = np.maximum.reduce(g, axis=1, keepdims=True, initial=0.0)
    # Rounding is monotone: the largest product with the row's r is the product of the largest.
    largest_xhat = largest_x * r
    largest_x = np.maximum(largest_x, 1.0)
    # What overflows on the way to the mean meets the whole row, the difference and its product their element alone.
    larger = np.maximum(r, 1.0)
    row = np.maximum(np.maximum(largest_g, largest_xhat), np.maximum(mass, mean * larger))
    row = np.maximum(row, np.maximum(plain_mass, r * r * r * np.maximum(largest_x, plain_mass)))
    partial = np.maximum((g + xhat * mean) * larger, row)
    if unsettled is not None:
        partial[np.isnan(value)] = 0.0
        unsettled = unsettled.reshape(shape)
    scale = np.maximum(np.maximum(largest_g, largest_xhat), 1.0) * largest_xhat
    scale = np.maximum(np.maximum(np.maximum(scale, mean), 1.0) * r, np.maximum(largest_xhat, 1.0))
    cubed = np.maximum(largest_xhat * r * r, largest_x * np.maximum(plain_mean * larger, 1.0))
    if loads is not None:
        scale = np.maximum(scale * loads, largest_g + largest_xhat * mean)
        cubed = np.maximum(cubed, largest_g * largest_xhat * r * r)
    scale = np.maximum(scale, cubed)
    return ExpectedOutput(
        value=value.reshape(shape),
        terms=(
            ErrorTerm(kind="compute", count=3, magnitude=(g * r).reshape(shape)),
            ErrorTerm(
                kind="compute",
                count=width + 6 + 2 * rounded_reciprocal,
                magnitude=(xhat * (r * mean)).reshape(shape),
            ),
        ),
        underflows=11 if loads is None else 22,
        underflow_scale=scale.repeat(columns, axis=1).reshape(shape),
        partial=partial.reshape(shape),
        lattice=lattice,
        open=unsettled,
    )


def _dgamma(
    value: Float64,
    unsettled: Mask | None,
    sizes: _Sizes,
    *,
    loads: float | None,
    shape: tuple[int, ...],
    lattice: float | None,
) -> ExpectedOutput:
    """The output dgammaOut with its error terms."""
    dy, xhat = sizes.dy, sizes.xhat
    magnitude = np.einsum("ij,ij->j", dy, xhat)
    largest_xhat = np.maximum.reduce(xhat, axis=0, initial=0.0)
    largest_product = np.maximum.reduce(sizes.product, axis=0, initial=0.0)
    partial = np.maximum(np.maximum(largest_xhat, largest_product), magnitude)
    scale = np.maximum.reduce(dy, axis=0, initial=max(sizes.largest_r, 1.0))
    if loads is not None:
        scale = np.maximum(scale * loads, largest_xhat)
    if unsettled is not None:
        partial[np.isnan(value)] = 0.0
        unsettled = unsettled.reshape(shape)
    rows = dy.shape[0]
    return ExpectedOutput(
        value=value.reshape(shape),
        terms=(ErrorTerm(kind="compute", count=rows + 1, magnitude=magnitude.reshape(shape)),),
        underflows=(3 if loads is None else 6) * rows,
        underflow_scale=scale.reshape(shape),
        partial=partial.reshape(shape),
        lattice=lattice,
        open=unsettled,
    )


def _loads(sizes: Mapping[str, Float64], lattices: Mapping[str, float]) -> float | None:
    """The largest factor of a product, at least 1, where a load of an operand can underflow; else None."""
    if not loads_may_underflow(sizes, lattices):
        return None
    return max(1.0, *(float(size.max(initial=0.0)) for size in sizes.values()))


def factored_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> dict[str, Array]:
    """Both gradients, rstd taken as given."""
    matrix = (rstd.size, gamma.size)
    gradient, r = dy.reshape(*matrix), rstd.reshape(-1, 1)
    xhat, g = x.reshape(*matrix) * r, gradient * gamma.reshape(-1)
    dx = (g - xhat * (g * xhat).mean(1, keepdims=True)) * r
    return {"dxOut": dx.reshape(*x.shape), "dgammaOut": (gradient * xhat).sum(0).reshape(*gamma.shape)}


def _expanded_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> Outputs:
    matrix = (rstd.size, gamma.size)
    gradient, r, values = dy.reshape(*matrix), rstd.reshape(-1, 1), x.reshape(*matrix)
    xhat, g = values * r, gradient * gamma.reshape(-1)
    dx = g * r - xhat * ((g * xhat).mean(1, keepdims=True) * r)
    return {"dxOut": dx.reshape(*x.shape), "dgammaOut": ((gradient * values) * r).sum(0).reshape(*gamma.shape)}


def _cubed_formula(f: F, dy: Array, x: Array, rstd: Array, gamma: Array) -> Outputs:
    matrix = (rstd.size, gamma.size)
    gradient, r, values = dy.reshape(*matrix), rstd.reshape(-1, 1), x.reshape(*matrix)
    g = gradient * gamma.reshape(-1)
    dx = g * r - (r * r * r) * values * (g * values).mean(1, keepdims=True)
    return {"dxOut": dx.reshape(*x.shape), "dgammaOut": (gradient * (values * r)).sum(0).reshape(*gamma.shape)}


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
    derivative=Derivative(
        forward=rms_norm, gradients={"dy": "y"}, wrt={"dxOut": "x", "dgammaOut": "gamma"}, saved=("rstd",)
    ),
)
