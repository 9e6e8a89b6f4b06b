"""aclnnReflectionPad1dBackward: an element gets the gradients of its place and of its mirror images."""

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape, gathered


def _backward(f: F, gradOutput: Array, padding: Shape, gradInput: Shape) -> Outputs:
    places, (left, right), last = np.arange(gradInput[-1]), padding, gradInput[-1] - 1
    before = np.where((places > 0) & (places <= left), left - places, -1)
    after = np.where((places < last) & (places >= last - right), left + 2 * last - places, -1)
    return {"gradInput": gathered(f, gradOutput, np.stack([places + left, before, after], axis=-1))}


def _forward(f: F, self: Array, padding: Shape, gradOutput: Shape) -> Outputs:
    away, last = np.abs(np.arange(gradOutput[-1]) - padding[0]), self.shape[-1] - 1
    return {"gradOutput": gathered(f, self, (last - np.abs(last - away))[:, None])}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "gradOutput"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
