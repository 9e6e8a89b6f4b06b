"""aclnnDeformableConv2dBackward: the gradients of a convolution whose taps are sampled at offsets and times masks.

Tap (p, q) of the output (i, j) lies at y = i stride - padding + p dilation + its offset; so does its x. It is
interpolated between the two rows and columns around it, with zeros outside. `offset` holds x, y and the mask of every
tap of all deformable groups, and `offsetOut` what was sampled, times the mask: the gradient of `weight` is of that.

At integers an interpolation has a kink, and its slope is open. Rounding takes a position to an integer at most and
never across one. Where it may come to the next one the row or column behind that has a weight of 0, which matters to
inf and nan alone.
"""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._blocks import in_blocks

Sizes: TypeAlias = tuple[int, ...]
Stored: TypeAlias = Mapping[str, NDArray[Any]]
Numbers: TypeAlias = "NDArray[np.float64]"


class _Taps(NamedTuple):
    """Columns or rows (2, or 3 where rounding reaches a third), batch, deformable group, its channels, taps, output."""

    by_x: Array
    """The weights of the two columns around each."""
    by_y: Array
    """Those of the two rows, with another dimension behind the first."""
    mask: Array
    cells: NDArray[np.int64]
    """In `input`, of both rows and both columns."""
    kinks: NDArray[np.bool_]
    """Of x and y, as `offset` by groups."""


def _by_groups(offset: Any, kernelSize: Sizes, groups: int) -> Any:  # noqa: ANN401 - NumPy's or a formula's
    """`offset` as batch, x and y and mask, deformable group, taps, output."""
    return offset.reshape(offset.shape[0], 3, groups, *kernelSize, *offset.shape[2:])


def _taps(f: F, moves: Array, stored: Numbers, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> _Taps:
    """Those of an offset by groups, and of an input of such batches, deformable groups, channels, rows and columns."""
    (batch, groups, channels, height, width), taps = shape, moves.shape[3:]
    known = stored[:, :2]
    p, q, i, j = np.ogrid[tuple(slice(size) for size in taps)]
    pairs = (j * stride[3], i * stride[2]), (q * dilation[3], p * dilation[2])
    steps, reach = (np.stack(np.broadcast_arrays(*pair))[:, None].astype(np.float64) for pair in pairs)
    before, size = (np.array(pair).reshape(2, 1, 1, 1, 1, 1) for pair in ((padding[2], padding[0]), (width, height)))
    first, nearest = (round_(known) + (steps + reach - before) for round_ in (np.floor, np.rint))
    rounding = 2.0**-21 * (np.abs(known) + steps + reach + np.abs(before) + 1.0)
    fraction = f.as_written(moves[:, :2] + steps + reach - before - first)
    near = np.clip(first, -2, size).astype(np.int64)
    kinks = (np.abs(known - np.rint(known)) <= rounding) & (nearest >= -1) & (nearest <= size)
    beyond = kinks & (nearest > first)
    third = [f.lift(np.zeros(near.shape))] if beyond.any() else []
    weights = f.stack([1.0 - fraction, fraction, *third]).reshape(-1, batch, 2, groups, 1, *taps)
    near = np.stack([near, near + 1, np.where(beyond, near + 2, -1)][: 2 + len(third)])
    inside = (near >= 0) & (near < size)
    (x, y), (there_x, there_y) = (np.moveaxis(array[:, :, :, :, None], 2, 0) for array in (near, inside))
    planes = np.arange(batch * groups * channels).reshape(batch, groups, channels, 1, 1, 1, 1) * (height * width)
    cells = np.where(there_y[:, None] & there_x, planes + y[:, None] * width + x, -1)
    by_y = weights[:, :, 1].reshape(-1, 1, batch, groups, 1, *taps)
    return _Taps(weights[:, :, 0], by_y, moves[:, 2].reshape(batch, groups, 1, *taps), cells, kinks)


def _backward(
    f: F, input: Array, gradOutput: Array, offsetOut: Array, weight: Array, offset: Array, stored: Stored,
    kernelSize: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, deformableGroups: int,
) -> Outputs:  # fmt: skip
    (batch, _, high, wide), (rows, columns) = gradOutput.shape, kernelSize
    g = gradOutput.reshape(batch, groups, -1, high, wide)
    kernel = weight.reshape(groups, -1, *weight.shape[1:])
    saved = offsetOut.reshape(batch, groups, -1, high, rows, wide, columns)
    moves, known = (_by_groups(array, kernelSize, deformableGroups) for array in (offset, stored["offset"]))
    planes = input.reshape(batch, deformableGroups, -1, *input.shape[2:])
    pulls = f.store(f.einsum("ngoij,gocpq->ngcpqij", g, kernel)).reshape(*planes.shape[:3], *moves.shape[3:])

    def compute(place: slice) -> tuple[Sequence[Array], Sequence[Array]]:
        own, sampled, moved = planes, pulls, moves
        if place != slice(None):
            own, sampled, moved = planes[:, place], pulls[:, place], moves[:, :, place]
        by_x, by_y, mask, cells, kinks = _taps(f, moved, known[:, :, place], own.shape, stride, padding, dilation)
        pulled, corners = sampled * mask, f.take(own, cells)
        along_y, along_x = (corners * by_x).sum(1, keepdims=True), (corners * by_y).sum(0)
        slopes = along_x[1] - along_x[0], along_y[1, 0] - along_y[0, 0]
        values = [f.undecided((pulled * slopes[axis]).sum(2), where=kinks[:, axis]) for axis in range(2)]
        values.append((sampled * (along_y * by_y).sum((0, 1))).sum(2))
        return [f.scatter_add(pulled * by_y * by_x, cells, own.shape), *values], ()

    corners = 4 * pulls.size // deformableGroups
    [pushed, *values], _ = in_blocks(f, compute, count=deformableGroups, each=corners, axis=1)
    return {
        "gradInput": pushed.reshape(*input.shape),
        "gradWeight": f.einsum("ngoij,ngcipjq->gocpq", g, saved).reshape(*weight.shape),
        "gradOffset": f.stack(values, 1).reshape(*offset.shape),
        "gradBias": gradOutput.sum((0, 2, 3)),
    }


def _forward(
    f: F, input: Array, weight: Array, bias: Array, offset: Array, stored: Stored, kernelSize: Sizes, stride: Sizes,
    padding: Sizes, dilation: Sizes, groups: int, deformableGroups: int,
) -> Outputs:  # fmt: skip
    (batch, channels, *_), (high, wide) = input.shape, offset.shape[2:]
    moves, known = (_by_groups(array, kernelSize, deformableGroups) for array in (offset, stored["offset"]))
    planes = batch, deformableGroups, channels // deformableGroups, *input.shape[2:]
    by_x, by_y, mask, cells, _ = _taps(f, moves, known, planes, stride, padding, dilation)
    taps = ((f.take(input, cells) * by_x * by_y).sum((0, 1)) * mask).reshape(batch, channels, *cells.shape[5:])
    kernel = weight.reshape(groups, -1, *weight.shape[1:])
    y = f.einsum("ngcpqij,gocpq->ngoij", taps.reshape(batch, groups, -1, *cells.shape[5:]), kernel)
    saved = taps.transpose(0, 1, 4, 2, 5, 3).reshape(batch, channels, high * kernelSize[0], wide * kernelSize[1])
    return {"y": y.reshape(batch, -1, high, wide) + bias.reshape(-1, 1, 1), "offsetOut": saved}


WRT = {"gradInput": "input", "gradWeight": "weight", "gradOffset": "offset", "gradBias": "bias"}
DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt=WRT, saved=("offsetOut",))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
