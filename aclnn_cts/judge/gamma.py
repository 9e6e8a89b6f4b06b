"""The growth of rounding errors: gamma_n, and the unit roundoff of the oracles' own arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORACLE_ROUNDOFF", "gamma"]

ORACLE_ROUNDOFF = 2.0**-53
"""Unit roundoff of the oracle's own arithmetic."""


def gamma(count: int | NDArray[np.int64], roundoff: float) -> Any:  # noqa: ANN401 - a float or an array, as `count` is
    """gamma_n = n u / (1 - n u) for n u up to one half, above it 2 n u.

    There gamma_n runs away, while n u holds for sums and inner products without a limit on n (Jeannerod and Rump,
    *Improved error bounds for inner products in floating-point arithmetic*, SIAM J. Matrix Anal. Appl. 34, 2013).
    """
    product = count * roundoff
    return (
        product / (1.0 - np.minimum(product, 0.5))
        if isinstance(product, np.ndarray)
        else product / (1.0 - min(product, 0.5))
    )
