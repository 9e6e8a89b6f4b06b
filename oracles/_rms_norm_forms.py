"""The orders of evaluation that RMS normalisation's gradients may be computed in: on inf and nan, and on exact data.

Those of dxOut are dx = (g - xhat mean(g xhat)) r, the last product distributed, and the form with r^3; those of
dgammaOut have the row's r first or last. The letters are those of `rms_norm_grad`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64, OracleInput
from aclnn_cts.oracles._special_values import flushing_product

Real: TypeAlias = NDArray[Any]


def row_mean(terms: Real) -> Real:
    """The mean of each row in the precision of the terms; the width is exact in it."""
    mean: Real = np.add.reduce(terms, axis=1, keepdims=True) / terms.dtype.type(max(terms.shape[1], 1))
    return mean


def factored(dy: Real, x: Real, rstd: Real, gamma: Real) -> Real:
    xhat, g = flushing_product(x, rstd), flushing_product(dy, gamma)
    dx: Real = (g - flushing_product(xhat, row_mean(g * xhat))) * rstd
    return dx


def expanded(dy: Real, x: Real, rstd: Real, gamma: Real) -> Real:
    xhat, g = flushing_product(x, rstd), flushing_product(dy, gamma)
    dx: Real = g * rstd - xhat * flushing_product(row_mean(g * xhat), rstd)
    return dx


def cubed(dy: Real, x: Real, rstd: Real, gamma: Real) -> Real:
    g, cube = flushing_product(dy, gamma), flushing_product(flushing_product(rstd, rstd), rstd)
    dx: Real = g * rstd - flushing_product(cube, x) * row_mean(g * x)
    return dx


def weight_first(dy: Real, x: Real, rstd: Real) -> Real:
    dgamma: Real = np.add.reduce(dy * flushing_product(x, rstd), axis=0)
    return dgamma


def weight_last(dy: Real, x: Real, rstd: Real) -> Real:
    dgamma: Real = np.add.reduce(flushing_product(dy, x) * rstd, axis=0)
    return dgamma


def dx_lattice(call: OracleInput, rstd: Float64) -> float | None:
    """A power of two that divides every intermediate of every form of dxOut; None where none is known.

    A mean over a number of elements that is no power of two leaves none. Neither does an r below 1, whose powers may
    need more digits than any magnitude shows. A derivative's factor of a half may go with r^3.
    """
    width = max(call.tensors["gamma"].size, 1)
    steps = [call.lattices.get(name) for name in ("dy", "gamma", "x", "rstd")]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps) or width & (width - 1) or (rstd < 1.0).any():
        return None
    dy, gamma, x, r = known
    g, xhat = dy * gamma, x * r
    cube = 0.5 * r * r * r
    products = (g * r, xhat, cube, cube * x)
    mean, meaned = g * x, g * xhat
    means = (mean, mean * x, meaned, meaned * r, meaned * xhat, meaned * xhat * r, cube * mean, cube * mean * x)
    return min(g, *products, *(step / width for step in means))


def dgamma_lattice(call: OracleInput) -> float | None:
    """The same of dgammaOut, whose terms are products dy x rstd."""
    dy, x, rstd = (call.lattices.get(name) for name in ("dy", "x", "rstd"))
    return None if dy is None or x is None or rstd is None else dy * x * rstd
