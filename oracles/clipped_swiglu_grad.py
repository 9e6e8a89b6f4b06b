"""aclnnClippedSwigluGrad: the gradients of a s(alpha a) (b + bias), where s is the logistic function.

a is x0 cut at l from above, b is x1 cut at -l and l; the gradients are those of x0 and x1. Rows beyond those that
groups count have none.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers


def _parts(x: Array, dim: int, *, interleaved: bool) -> tuple[Array, Array]:
    """The two parts of each row, (rows, half)."""
    rows = x.reshape(math.prod(x.shape[: dim % x.ndim]), math.prod(x.shape[dim % x.ndim :]))
    half = rows.shape[1] // 2
    return (rows[:, ::2], rows[:, 1::2]) if interleaved else (rows[:, :half], rows[:, half:])


def _counted(rows: int, groups: Numbers | None) -> NDArray[np.bool_]:
    """(rows, 1): which rows count."""
    counted: NDArray[np.bool_] = np.arange(rows)[:, None] < (rows if groups is None else int(groups.sum()))
    return counted


def backward(  # noqa: PLR0913 - a prototype's
    f: F, gradY: Array, x: Array, groupIndexOptional: Numbers | None, *, dim: int, alpha: float, limit: float,
    bias: float, interleaved: bool,
) -> Outputs:  # fmt: skip
    """The document's formula."""
    x0, x1 = _parts(x, dim, interleaved=interleaved)
    gradient = gradY.reshape(*x0.shape)
    a, b = f.where(x0 > limit, limit, x0), f.where(x1 > limit, limit, f.where(x1 < -limit, -limit, x1))
    s = f.sigmoid(alpha * a)
    of_a = f.where(x0 > limit, 0.0, gradient * (b + bias) * s * (1.0 + alpha * a * (1.0 - s)))
    of_b = f.where(x1 > limit, 0.0, f.where(x1 < -limit, 0.0, gradient * a * s))
    counted = _counted(x0.shape[0], groupIndexOptional)
    parts = [f.where(counted, part, 0.0) for part in (of_a, of_b)]
    return {"gradXOut": (f.stack(parts, 2) if interleaved else f.concat(parts, 1)).reshape(*x.shape)}


def forward(
    f: F, x: Array, groupIndexOptional: Numbers | None, *, dim: int, alpha: float, limit: float, bias: float,
    interleaved: bool,
) -> Outputs:  # fmt: skip
    """What it is the derivative of."""
    x0, x1 = _parts(x, dim, interleaved=interleaved)
    a = f.where(x0 > limit, limit, x0)
    b = f.where(x1 > limit, limit, f.where(x1 < -limit, -limit, x1))
    y = a * f.sigmoid(alpha * a) * (b + bias)
    y, axis = f.where(_counted(x0.shape[0], groupIndexOptional), y, 0.0), dim % x.ndim
    return {"y": y.reshape(*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :])}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradY": "y"}, wrt={"gradXOut": "x"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
