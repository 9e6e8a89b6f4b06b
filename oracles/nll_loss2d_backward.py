"""aclnnNLLLoss2dBackward: at its target a place has less the gradient times the weight of the target; 0 elsewhere."""

import numpy as np

from aclnn_cts.formula.array import Array, Cells, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._labels import MEAN, NONE, Labels, Shape


def _named(target: Labels, ignored: int, scores: Shape) -> tuple[Cells, Cells]:
    """The class of each place, and its cell in scores (images, classes, height, width); -1 where it is ignored."""
    labels = target.reshape(-1).astype(np.int64)
    size = scores[2] * scores[3]
    image, place = np.divmod(np.arange(labels.size), max(size, 1))
    cells = (image * scores[1] + labels) * size + place
    return np.where(labels == ignored, -1, labels), np.where(labels == ignored, -1, cells)


def _backward(f: F, gradOutput: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
              totalWeight: Array, out: Shape) -> Outputs:  # fmt: skip
    labels, cells = _named(target, ignoreIndex, out)
    less = f.take(weight, labels) * gradOutput.reshape(-1).broadcast_to(labels.shape)
    return {"out": f.scatter_add(-(less / totalWeight if reduction == MEAN else less), cells, out)}


def _forward(f: F, self: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
             gradOutput: Shape) -> Outputs:  # fmt: skip
    labels, cells = _named(target, ignoreIndex, self.shape)
    weights = f.take(weight, labels)
    losses, total = f.take(self.reshape(-1), cells) * -weights, weights.sum().reshape(1)
    loss = losses if reduction == NONE else losses.sum().reshape(1)
    return {"loss": (loss / total if reduction == MEAN else loss).reshape(*gradOutput), "totalWeight": total}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"}, saved=("totalWeight",))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
