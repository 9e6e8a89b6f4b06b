"""aclnnThreeInterpolateBackward: each gradient goes back to the three points that it was interpolated from."""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape


def _cells(idx: Numbers, channels: int, count: int) -> Numbers:
    """(b, c, n, 3): the elements of an array (b, c, count) that `idx` (b, n, 3) names; -1 is none."""
    planes = np.arange(idx.shape[0] * channels).reshape(idx.shape[0], channels, 1, 1)
    near = idx[:, None].astype(np.int64)
    cells: Numbers = np.where((near >= 0) & (near < count), planes * count + near, -1)
    return cells


def _backward(f: F, grad_x: Array, idx: Numbers, weight: Array, grad_y: Shape) -> Outputs:
    batches, channels, points = grad_x.shape[:3]
    terms = grad_x.reshape(batches, channels, points, 1) * weight.reshape(batches, 1, points, 3)
    total = f.scatter_add(terms, _cells(idx, channels, grad_y[2]), grad_y[:3])
    return {"grad_y": total.reshape(*grad_y)}


def _forward(f: F, y: Array, idx: Numbers, weight: Array, grad_x: Shape) -> Outputs:
    batches, channels, points = grad_x[:3]
    near = f.take(y, _cells(idx, channels, y.shape[2]))
    return {"x": (near * weight.reshape(batches, 1, points, 3)).sum(-1).reshape(*grad_x)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"grad_x": "x"}, wrt={"grad_y": "y"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
