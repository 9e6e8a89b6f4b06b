"""aclnnSwigluGroupGrad: the gradients of w s(a) a b, where s is the logistic function, by the halves of x and by w.

a is x0 cut at c from above, b is x1 cut at -c and c, where there is such a c. Rows that groups leave out have no
gradient of x. That of w needs the result of the forward pass alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._glu import halves
from aclnn_cts.oracles._windows import Numbers, Shape


def _clipped(f: F, x: Array, limit: float) -> tuple[Array, Array]:
    a, b = halves(x, -1)
    if limit > 0.0:
        a = f.where(a > limit, limit, a)
        b = f.where(b > limit, limit, f.where(b < -limit, -limit, b))
    return a, b


def counted(shape: tuple[int, ...], groups: Numbers | None) -> NDArray[np.bool_]:
    """Which rows count, in the leading dimensions of `shape`."""
    rows = math.prod(shape[:-1])
    counted: NDArray[np.bool_] = np.arange(rows) < (rows if groups is None else int(groups.sum()))
    return counted.reshape(*shape[:-1], 1)


def of_x(f: F, gradY: Array, x: Array, weight: Array | None, groups: Numbers | None, *, clampLimit: float) -> Array:
    """The gradient of x, by the document's formula; `weight` has a number for each row."""
    a, b = _clipped(f, x, clampLimit)
    s = f.sigmoid(a)
    gradient = gradY if weight is None else gradY * weight
    of_a, of_b = gradient * b * (s * (1.0 + a * (1.0 - s))), gradient * (a * s)
    if clampLimit > 0.0:
        x0, x1 = halves(x, -1)
        of_a = f.where(x0 < clampLimit, of_a, 0.0)
        of_b = f.where(x1 < clampLimit, f.where(x1 > -clampLimit, of_b, 0.0), 0.0)
    kept: Array = f.where(counted(x.shape, groups), f.concat([of_a, of_b], -1), 0.0)
    return kept


def of_weight(gradY: Array, yOrigin: Array | None) -> Array:
    """The gradient of the weight of each row. Beside a call that does not compute it, it holds anything."""
    return (gradY * (0.0 if yOrigin is None else yOrigin)).sum(-1, keepdims=True)


def _backward(
    f: F, gradY: Array, x: Array, weightOptional: Array | None, yOriginOptional: Array | None,
    groupIndexOptional: Numbers | None, *, clampLimit: float, gradWeightOutOptional: Shape | None,
) -> Outputs:  # fmt: skip
    results = {"gradXOut": of_x(f, gradY, x, weightOptional, groupIndexOptional, clampLimit=clampLimit)}
    if gradWeightOutOptional is not None:
        results["gradWeightOutOptional"] = of_weight(gradY, yOriginOptional)
    return results


def _forward(
    f: F, x: Array, weightOptional: Array | None, groupIndexOptional: Numbers | None, *, clampLimit: float
) -> Outputs:
    """What the gradient of x is the derivative of."""
    a, b = _clipped(f, x, clampLimit)
    y = a * f.sigmoid(a) * b
    if weightOptional is not None:
        y = y * weightOptional
    return {"y": f.where(counted(x.shape, groupIndexOptional), y, 0.0)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradY": "y"}, wrt={"gradXOut": "x"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
