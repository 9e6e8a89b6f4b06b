"""aclnnUnfoldGrad: slices of `size` elements, `step` apart along `dim`, added up at the places that they came from."""

import math

import numpy as np

from aclnn_cts.formula.array import Array, Cells, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape


def _cells(slices: Shape, sizes: Shape, dim: int, step: int) -> Cells:
    """For each element of the slices, its cell in an array of such sizes."""
    before, behind = math.prod(sizes[:dim]), math.prod(sizes[dim + 1 :])
    starts, places = np.arange(slices[dim])[:, None, None] * step, np.arange(slices[-1])
    along = (starts + places) * behind + np.arange(behind)[:, None]
    return (np.arange(before)[:, None, None, None] * sizes[dim] * behind + along).reshape(slices)


def _backward(f: F, gradOut: Array, inputSizes: Shape, dim: int, step: int) -> Outputs:
    return {"gradIn": f.scatter_add(gradOut, _cells(gradOut.shape, inputSizes, dim, step), inputSizes)}


def _forward(f: F, x: Array, inputSizes: Shape, dim: int, step: int, gradOut: Shape) -> Outputs:
    return {"y": f.take(x.reshape(-1), _cells(gradOut, inputSizes, dim, step))}


FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients={"gradOut": "y"}, wrt={"gradIn": "x"})
)
