"""aclnnRepeatInterleaveGrad: elements were repeated along a dimension; their gradient is the sum over the copies."""

import math

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape


def _sources(repeats: Numbers, steps: int) -> Numbers:
    """(steps,): the element that each is a copy of; one number in `repeats` counts for all."""
    each = int(repeats.reshape(-1)[0])
    found: Numbers = (
        np.arange(steps) // max(each, 1) if repeats.size == 1 else np.repeat(np.arange(repeats.size), repeats)
    )
    return found


def _backward(f: F, yGrad: Array, repeats: Numbers, axis: int, out: Shape) -> Outputs:
    at = axis % yGrad.ndim
    before, steps, behind = math.prod(yGrad.shape[:at]), yGrad.shape[at], math.prod(yGrad.shape[at + 1 :])
    sources = _sources(repeats, steps)
    count = repeats.size if repeats.size > 1 else int(sources[-1]) + 1 if steps else 0
    cells = (np.arange(before)[:, None, None] * count + sources[:, None]) * behind + np.arange(behind)
    total = f.scatter_add(yGrad.reshape(before, steps, behind), cells, (before, count, behind))
    return {"out": total.reshape(*out)}


def _forward(f: F, self: Array, yGrad: Shape, repeats: Numbers, axis: int) -> Outputs:
    at = axis % len(yGrad)
    before, steps, behind = math.prod(yGrad[:at]), yGrad[at], math.prod(yGrad[at + 1 :])
    count = math.prod(self.shape) // max(before * behind, 1)
    cells = (np.arange(before)[:, None, None] * count + _sources(repeats, steps)[:, None]) * behind + np.arange(behind)
    return {"y": f.take(self, cells).reshape(*yGrad)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"yGrad": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
