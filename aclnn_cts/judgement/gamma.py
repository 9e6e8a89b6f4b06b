r"""The growth of rounding errors: gamma_n, and the unit roundoff of the oracles' own arithmetic.

All bounds rest on three facts, which Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., has in its
chapters on the basics (3, inner products and products of 1 + delta) and on summation (4). They follow from the model
fl(x op y) = (x op y)(1 + delta), |delta| <= u, in a line each; with gamma_n = n u / (1 - n u) and n u < 1,

- n roundings: prod (1 + delta_i)^(+-1) differs from 1 by at most (1 - u)^(-n) - 1 <= gamma_n, since
  (1 - u)^n >= 1 - n u;
- roundings of roundings: gamma_j + gamma_k + gamma_j gamma_k <= gamma_{j+k};
- sums: in any order, a term of n meets at most n - 1 additions, and its own product in an inner product.

Underflow (chapter 2) adds an absolute error to the relative one: fl(x op y) = (x op y)(1 + delta) + eta.
Tests hold the first two in rational arithmetic. The book's own numbers of lemmas and equations are not given: no copy
was at hand to check them by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ORACLE_ROUNDOFF = 2.0**-53
"""Unit roundoff of the oracle's own arithmetic."""


def gamma(count: int | NDArray[np.int64], roundoff: float) -> Any:  # noqa: ANN401 - a float or an array, as `count` is
    """gamma_n = n u / (1 - n u) for n u up to one half, above it 2 n u.

    There gamma_n runs away, while n u holds for sums and inner products without a limit on n (Jeannerod and Rump,
    *Improved error bounds for inner products in floating-point arithmetic*, SIAM J. Matrix Anal. Appl. 34, 2013).
    """
    if isinstance(count, np.ndarray):
        # Converted first: NumPy multiplies integers by a float in pieces, through a buffer.
        products = count.astype(np.float64) * roundoff
        return products / (1.0 - np.minimum(products, 0.5))
    product = count * roundoff
    return product / (1.0 - min(product, 0.5))
