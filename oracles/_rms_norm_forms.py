"""The orders of evaluation that RMS normalisation's gradients may be computed in, for operands with inf or nan.

Those of dxOut are dx = (g - xhat mean(g xhat)) r, the last product distributed, and the form with r^3; those of
dgammaOut have the row's r first or last. The letters are those of `rms_norm_grad`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.oracles._special_values import flushing_product

__all__ = ["cubed", "expanded", "factored", "row_mean", "weight_first", "weight_last"]

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
