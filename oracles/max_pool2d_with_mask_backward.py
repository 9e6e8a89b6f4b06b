"""aclnnMaxPool2dWithMaskBackward: each gradient is added to the element that the mask names; what none has is 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, Windows, windows_of, within_planes

_ONES = np.repeat(np.array([-1, 0], np.int8), 32)
"""The bits of a position of the kernel that every window takes, as the document's example has them."""


def _along(self: Shape, gradOutput: Shape, kernelSize: Shape, stride: Shape, padding: Shape) -> tuple[Windows, ...]:
    return windows_of(self, gradOutput, kernelSize, stride, padding)


def _names_first(indices: NDArray[Any], positions: int) -> NDArray[np.bool_]:
    """(N, C): whether the mask of a plane says, in any order of bits, that every window takes its first element."""
    expected = np.zeros((positions, _ONES.size), np.int8)
    expected[0] = _ONES
    if indices.shape[2:] != expected.shape:
        return np.zeros(indices.shape[:2], np.bool_)
    return np.asarray((indices == expected).all(axis=(2, 3)))


def _first_is_largest(values: NDArray[Any], rows: Windows, columns: Windows) -> NDArray[np.bool_]:
    """(N, C): whether the first element of every window exists and is larger than the others."""
    found = np.ones(values.shape[:2], np.bool_)
    for top, bottom in zip(rows.starts, rows.ends, strict=True):
        for left, right in zip(columns.starts, columns.ends, strict=True):
            if top < 0 or left < 0:
                return np.zeros_like(found)
            window = values[:, :, top:bottom, left:right].reshape(*values.shape[:2], -1)
            found &= (window[..., :1] > window[..., 1:]).all(-1)
    return found


def _cells(
    shapes: tuple[Shape, Shape], stored: Mapping[str, NDArray[Any]], kernelSize: Shape, stride: Shape, padding: Shape
) -> tuple[Numbers, NDArray[np.bool_]]:
    """The cell of self that each window takes, -1 for one that is not known, and which elements such windows have."""
    shape, count = shapes
    rows, columns = _along(shape, count, kernelSize, stride, padding)
    known = _names_first(stored["indices"], kernelSize[0] * kernelSize[-1])
    if known.any():
        known &= _first_is_largest(stored["self"], rows, columns)
    first = rows.starts[:, None] * shape[-1] + columns.starts
    cells = np.where(known[..., None, None], within_planes(np.broadcast_to(first, count), shape), -1)
    covered = np.outer(*(np.any(along.covering() >= 0, axis=1) for along in (rows, columns)))
    return cells, covered & ~known[..., None, None]


def _backward(f: F, gradOutput: Array, self: Array, stored: Mapping[str, NDArray[Any]], *,
              kernelSize: Shape, stride: Shape, padding: Shape) -> Outputs:  # fmt: skip
    cells, unsaid = _cells((self.shape, gradOutput.shape), stored, kernelSize, stride, padding)
    return {"gradInput": f.undecided(f.scatter_add(gradOutput, cells, self.shape), where=unsaid)}


def _forward(f: F, gradOutput: Shape, self: Array, stored: Mapping[str, NDArray[Any]], *,
             kernelSize: Shape, stride: Shape, padding: Shape) -> Outputs:  # fmt: skip
    cells, _ = _cells((self.shape, gradOutput), stored, kernelSize, stride, padding)
    return {"y": f.take(self.reshape(-1), cells)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
