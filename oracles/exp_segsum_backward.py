"""aclnnExpSegsumBackward: element i sums gradOutput gradSelf over the rows from i on and the columns before i.

These are what the document's steps leave: zeros on and above the diagonal, suffix sums of columns, zeros, sums of rows.
"""

import math

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, gradOutput: Array, gradSelf: Array) -> Outputs:
    size = gradOutput.shape[-1]
    below = np.tri(size, k=-1, dtype=bool)
    product = f.where(below, gradOutput * gradSelf, 0.0).reshape(math.prod(gradOutput.shape[:-2]), size, size)
    columns = f.einsum("ik,bkj->bij", f.lift(np.tri(size).T), product)
    return {"gradInput": f.where(below, columns, 0.0).sum(-1).reshape(*gradOutput.shape[:-1])}


def _forward(f: F, self: Array) -> Outputs:
    size = self.shape[-1]
    row, column, place = np.ogrid[:size, :size, :size]
    firsts = np.arange(math.prod(self.shape[:-1])).reshape(*self.shape[:-1], 1, 1, 1) * size
    segments = f.take(self, np.where((column < place) & (place <= row), firsts + place, -1)).sum(-1)
    return {"gradSelf": f.where(np.tri(size, dtype=bool), f.exp(segments), 0.0)}


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(
        forward=_forward, gradients={"gradOutput": "gradSelf"}, wrt={"gradInput": "self"}, saved=("gradSelf",)
    ),
)
