"""aclnnLogitGrad: the gradient of log(x / (1 - x)), dy over x (1 - x), between eps and 1 - eps.

Outside it is 0, with a negative eps nan outside of [0, 1]. The document's remarks on special values contradict that
in places.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_Stored: TypeAlias = "Mapping[str, NDArray[Any]]"


def _within(f: F, x: Array, eps: float, inside: Array, outside: Array) -> Array:
    """What counts from eps to 1 - eps, without a positive eps from 0 to 1, and what elsewhere."""
    lower = f.lift(max(eps, 0.0))
    found: Array = f.where(x < lower, outside, f.where(x > 1.0 - lower, outside, inside))
    return found


def _backward(f: F, x: Array, dy: Array, eps: float, stored: _Stored) -> Outputs:
    outside = f.lift(np.full(x.shape, np.nan if eps < 0.0 else 0.0))
    is_end = (stored["x"] == 0) | (stored["x"] == 1)
    contradicted = is_end & ((stored["dy"] == 0) | (eps > 0.0))
    return {"out": f.undecided(_within(f, x, eps, dy / (x * (1.0 - x)), outside), where=contradicted)}


def _by_remarks(f: F, x: Array, dy: Array, eps: float) -> Outputs:
    """Inf and nan stay what they are outside, too."""
    outside = f.lift(np.full(x.shape, np.nan)) if eps < 0.0 else dy * 0.0 + x * 0.0
    return {"out": _within(f, x, eps, dy / x / (1.0 - x), outside)}


def _forward(f: F, x: Array, eps: float) -> Outputs:
    """The logarithms are of squares, so that they exist everywhere."""
    other = 1.0 - x
    return {"y": _within(f, x, eps, 0.5 * (f.log(x * x) - f.log(other * other)), f.lift(np.zeros(x.shape)))}


FORMULA = Operator.of(
    _backward,
    _by_remarks,
    derivative=Derivative(forward=_forward, gradients={"dy": "y"}, wrt={"out": "x"}),
    adds_zeros=True,
)
