"""aclnnIm2colBackward: the columns of the blocks of an image, added up at the places that they came from."""

import math

import numpy as np

from aclnn_cts.formula.array import Array, Cells, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

Sizes = tuple[int, ...]


def _places(size: int, kernel: int, dilation: int, padding: int, stride: int) -> Cells:
    """(kernel, blocks): the place of each element of each block in a dimension; outside of it in the padding."""
    blocks = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return np.arange(kernel)[:, None] * dilation + np.arange(blocks) * stride - padding


def _cells(lead: Sizes, inputSize: Sizes, kernelSize: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Cells:
    """For each element of the columns, its cell in an image (lead, *inputSize); -1 in the padding."""
    rows, columns = (_places(*items) for items in zip(inputSize, kernelSize, dilation, padding, stride, strict=True))
    row, column = rows[:, None, :, None], columns[:, None, :]
    (height, width), planes = inputSize, np.arange(math.prod(lead)).reshape(-1, 1, 1, 1, 1)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return np.where(inside, (planes * height + row) * width + column, -1)


def _backward(
    f: F, gradOutput: Array, inputSize: Sizes, kernelSize: Sizes, dilation: Sizes, padding: Sizes, *, stride: Sizes,
    out: Sizes,
) -> Outputs:  # fmt: skip
    cells = _cells(out[:-2], inputSize, kernelSize, dilation, padding, stride)
    return {"out": f.scatter_add(gradOutput, cells.reshape(gradOutput.shape), out)}


def _forward(
    f: F, x: Array, inputSize: Sizes, kernelSize: Sizes, dilation: Sizes, padding: Sizes, *, stride: Sizes,
    gradOutput: Sizes,
) -> Outputs:  # fmt: skip
    cells = _cells(x.shape[:-2], inputSize, kernelSize, dilation, padding, stride)
    return {"y": f.take(x, cells.reshape(gradOutput))}


FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "x"})
)
