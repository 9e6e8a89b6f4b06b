"""aclnnBinaryCrossEntropyWithLogitsBackward: the weighted gradient times (p t + 1 - t) s - p t, or its mean.

s is the logistic function of x, and p the weight of the positive class.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor, logits_loss
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, self: Array, target: Array, weightOptional: Array | None,
              posWeightOptional: Array | None, reduction: int, out: Shape) -> Outputs:  # fmt: skip
    logistic = f.sigmoid(self)
    if posWeightOptional is None:
        slope = logistic - target
    else:
        positive = posWeightOptional * target
        slope = (positive + 1.0 - target) * logistic - positive
    each = gradOutput * slope if weightOptional is None else gradOutput * weightOptional * slope
    return {"out": (each / divisor(self.shape, reduction)).broadcast_to(out)}


_DERIVATIVE = Derivative(forward=logits_loss, gradients={"gradOutput": "loss"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
