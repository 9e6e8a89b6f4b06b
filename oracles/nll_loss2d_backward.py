"""aclnnNLLLoss2dBackward: at its target a place has less the gradient times the weight of the target; 0 elsewhere."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._labels import MEAN, NONE, Labels, Shape, named_places


def _backward(f: F, gradOutput: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
              totalWeight: Array, out: Shape) -> Outputs:  # fmt: skip
    labels, cells = named_places(target, ignoreIndex, out)
    less = f.take(weight, labels) * gradOutput.reshape(-1).broadcast_to(labels.shape)
    return {"out": f.scatter_add(-(less / totalWeight if reduction == MEAN else less), cells, out)}


def _forward(f: F, self: Array, target: Labels, weight: Array, reduction: int, ignoreIndex: int,
             gradOutput: Shape) -> Outputs:  # fmt: skip
    labels, cells = named_places(target, ignoreIndex, self.shape)
    weights = f.take(weight, labels)
    losses, total = f.take(self.reshape(-1), cells) * -weights, weights.sum().reshape(1)
    loss = losses if reduction == NONE else losses.sum().reshape(1)
    return {"loss": (loss / total if reduction == MEAN else loss).reshape(*gradOutput), "totalWeight": total}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"}, saved=("totalWeight",))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
