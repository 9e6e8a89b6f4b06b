"""aclnnFusedLinearCrossEntropyLossGrad: the gradients of a cross entropy of logits by a matrix product, in one pass.

A row of the softmax, less 1 at its target where that counts, times the row's gradient is the gradient of the logits.
"""

from collections.abc import Mapping

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._bits import unpacked
from aclnn_cts.oracles._windows import Numbers, Shape


def _targets(f: F, targetMask: Numbers, maskedTarget: Numbers, shape: Shape) -> Array:
    """(rows, classes): 1 at the target of each row, 0 where its bit says that it lies elsewhere."""
    counted = 1.0 - unpacked(targetMask, shape[:1])
    cells = np.arange(shape[0]) * shape[1] + maskedTarget.astype(np.int64)
    found: Array = f.scatter_add(f.lift(counted), cells, shape)
    return found


def _backward(  # noqa: PLR0913, PLR0917 - the parameters of the prototype
    f: F, grad: Array, input: Array, weight: Array, targetMask: Numbers, maskedTarget: Numbers,
    logitsMaxOptional: Array, sumExpLogitsOptional: Array, softmaxOptional: Array | None,
    dtypes: Mapping[str, str],
) -> Outputs:  # fmt: skip
    if softmaxOptional is None:
        logits = f.einsum("rh,ch->rc", input, weight)
        share = f.exp(logits - logitsMaxOptional.reshape(-1, 1)) / sumExpLogitsOptional.reshape(-1, 1)
    else:
        share = softmaxOptional
    shape = (input.shape[0], weight.shape[0])
    logits_gradient = (share - _targets(f, targetMask, maskedTarget, shape)) * grad.reshape(-1, 1)
    # The matrix unit takes both operands in one format.
    operand = f.narrowed(logits_gradient, dtypes["input"])
    return {
        "inputGradOut": f.einsum("rc,ch->rh", operand, weight),
        "weightGradOut": f.einsum("rc,rh->ch", operand, input),
    }


def _forward(f: F, input: Array, weight: Array, targetMask: Numbers, maskedTarget: Numbers) -> Outputs:
    logits = f.einsum("rh,ch->rc", input, weight)
    peak = logits.max(1, keepdims=True)
    each = f.exp(logits - peak)
    total = each.sum(1, keepdims=True)
    scores = logits - peak - f.log(total)
    loss = -(scores * _targets(f, targetMask, maskedTarget, logits.shape)).sum(1)
    counted = 1.0 - unpacked(targetMask, input.shape[:1])
    # A row whose target lies elsewhere still has its sum of exponentials in the loss.
    rest = (peak + f.log(total)).reshape(-1) * (1.0 - counted)
    saved = {
        "logitsMaxOptional": peak.reshape(-1),
        "sumExpLogitsOptional": total.reshape(-1),
        "softmaxOptional": each / total,
    }
    return {"loss": loss + rest, **saved}


DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"grad": "loss"},
    wrt={"inputGradOut": "input", "weightGradOut": "weight"},
    saved=("logitsMaxOptional", "sumExpLogitsOptional", "softmaxOptional"),
)
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
