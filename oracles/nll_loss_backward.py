"""aclnnNLLLossBackward: at its target a row has less the gradient times the weight of the target; 0 elsewhere."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, Cells, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

__all__ = ["MEAN", "NONE", "Labels", "Shape", "named"]

NONE, MEAN = 0, 1
"""Reductions of a loss."""

Labels: TypeAlias = "NDArray[Any]"
Shape: TypeAlias = "tuple[int, ...]"


def named(target: Labels, ignored: int, scores: Shape) -> tuple[Cells, Cells]:
    """The class of each row, and its cell in a table of scores (rows, classes); -1 for a row that is ignored."""
    labels = target.reshape(-1).astype(np.int64)
    cells = np.arange(labels.size) * scores[-1] + labels
    return np.where(labels == ignored, -1, labels), np.where(labels == ignored, -1, cells)


def _backward(f: F, gradOutput: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
              totalWeight: Array, out: Shape) -> Outputs:  # fmt: skip
    labels, cells = named(target, ignoreIndex, out)
    less = f.take(weight, labels) * gradOutput.reshape(-1).broadcast_to(labels.shape)
    return {"out": f.scatter_add(-(less / totalWeight if reduction == MEAN else less), cells, out)}


def _forward(f: F, self: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
             gradOutput: Shape) -> Outputs:  # fmt: skip
    labels, cells = named(target, ignoreIndex, self.shape)
    weights = f.take(weight, labels)
    losses, total = f.take(self.reshape(-1), cells) * -weights, weights.sum().reshape(1)
    loss = losses if reduction == NONE else losses.sum().reshape(1)
    return {"loss": (loss / total if reduction == MEAN else loss).reshape(*gradOutput), "totalWeight": total}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"}, saved=("totalWeight",))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
