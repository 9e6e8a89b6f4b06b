"""aclnnCrossEntropyLossGrad: a row of log-probabilities p has g exp(p), and g less at its target.

g is the gradient times the weight of the target, 0 where the target is ignored; a mean divides by the sum of the
weights. labelSmoothing is 0 in all valid calls, which leaves the smoothed terms out; those of zloss have no effect.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._labels import Labels, Shape, named


def _weights(f: F, labels: Labels, weightOptional: Array | None) -> Array:
    """The weight of each row's target; 0 where that is ignored."""
    weights: Array = f.lift((labels >= 0) * 1.0) if weightOptional is None else f.take(weightOptional, labels)
    return weights


def _backward(f: F, gradLoss: Array, logProb: Array, target: Labels, weightOptional: Array | None,
              reductionOptional: str, ignoreIndex: int) -> Outputs:  # fmt: skip
    labels, cells = named(target, ignoreIndex, logProb.shape)
    weights = _weights(f, labels, weightOptional)
    rows = gradLoss.reshape(-1).broadcast_to(labels.shape)
    rows = rows / weights.sum() * weights if reductionOptional == "mean" else rows * weights
    return {"out": f.exp(logProb) * rows.reshape(-1, 1) - f.scatter_add(rows, cells, logProb.shape)}


def _forward(f: F, x: Array, target: Labels, weightOptional: Array | None, reductionOptional: str, ignoreIndex: int,
             gradLoss: Shape) -> Outputs:  # fmt: skip
    labels, cells = named(target, ignoreIndex, x.shape)
    weights = _weights(f, labels, weightOptional)
    centred = x - x.max(1, keepdims=True)
    scores = centred - f.log(f.exp(centred).sum(1, keepdims=True))
    losses = f.take(scores.reshape(-1), cells) * -weights
    loss = losses if reductionOptional == "none" else losses.sum()
    loss = loss / weights.sum() if reductionOptional == "mean" else loss
    return {"loss": loss.reshape(*gradLoss), "logProb": scores}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradLoss": "loss"}, wrt={"out": "x"}, saved=("logProb",))
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
