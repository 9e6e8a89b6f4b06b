"""aclnnNsaCompressGrad: rows of a sequence are compressed window by window, each the sum of its rows times a weight."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers


def _window_starts(ends: Sequence[int], size: int, step: int) -> Numbers:
    """(windows,): the first row of each window of `size` rows; a sequence begins where the one before it ends."""
    found = [np.arange(low, high - size + 1, step) for low, high in pairwise(ends)]
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)


def _rows_of_windows(f: F, table: Array, starts: Numbers, size: int) -> Array:
    """(size, windows, heads, width): row j of each window of a table (rows, heads, width)."""
    width = int(np.prod(table.shape[1:]))
    places = np.arange(size)[:, None] + starts
    cells = places[:, :, None] * width + np.arange(width)
    found: Array = f.take(table, cells).reshape(size, starts.size, *table.shape[1:])
    return found


def _backward(f: F, outputGrad: Array, input: Array, weight: Array, actSeqLenOptionalOptional: Sequence[int],
              compressBlockSize: int, compressStride: int) -> Outputs:  # fmt: skip
    starts = _window_starts(actSeqLenOptionalOptional, compressBlockSize, compressStride)
    rows, heads, width = input.shape
    # A row lies in at most so many windows: the last that begins at or in front of it, and those before that one.
    most = -(-compressBlockSize // compressStride)
    windows = np.searchsorted(starts, np.arange(rows), side="right")[:, None] - 1 - np.arange(most)
    offsets = np.arange(rows)[:, None] - starts[np.maximum(windows, 0)]
    inside = (windows >= 0) & (offsets < compressBlockSize)
    windows, offsets = np.where(inside, windows, -1), np.where(inside, offsets, -1)
    size = heads * width
    cells = np.where(inside[:, :, None], windows[:, :, None] * size + np.arange(size), -1)
    gradients = f.take(outputGrad, cells).reshape(rows, most, heads, width)
    weights = f.take(weight, np.where(inside[:, :, None], offsets[:, :, None] * heads + np.arange(heads), -1))
    of_input = (gradients * weights.reshape(rows, most, heads, 1)).sum(1)
    of_weight = f.einsum("jwnd,wnd->jn", _rows_of_windows(f, input, starts, compressBlockSize), outputGrad)
    return {"inputGradOut": of_input, "weightGradOut": of_weight}


def _forward(f: F, input: Array, weight: Array, actSeqLenOptionalOptional: Sequence[int],
             compressBlockSize: int, compressStride: int) -> Outputs:  # fmt: skip
    starts = _window_starts(actSeqLenOptionalOptional, compressBlockSize, compressStride)
    rows = _rows_of_windows(f, input, starts, compressBlockSize)
    return {"output": (rows * weight.reshape(compressBlockSize, 1, weight.shape[1], 1)).sum(0)}


DERIVATIVE = Derivative(
    forward=_forward, gradients={"outputGrad": "output"}, wrt={"inputGradOut": "input", "weightGradOut": "weight"}
)
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
