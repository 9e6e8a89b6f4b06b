"""aclnnBinaryCrossEntropyWithLogitsTargetBackward: the gradient times p softplus(-x) - softplus(x), or its mean.

It is the derivative by the target, weighted; p is the weight of the positive class, 1 where there is none.
"""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor, logits_loss
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, self: Array, weightOptional: Array | None, posWeightOptional: Array | None,
              reduction: int, gradTarget: Shape) -> Outputs:  # fmt: skip
    positive = f.softplus(-self)
    slope = (positive if posWeightOptional is None else positive * posWeightOptional) - f.softplus(self)
    each = gradOutput * slope if weightOptional is None else gradOutput * weightOptional * slope
    return {"gradTarget": (each / divisor(self.shape, reduction)).broadcast_to(gradTarget)}


FORMULA = Operator.of(
    _backward,
    derivative=Derivative(forward=logits_loss, gradients={"gradOutput": "loss"}, wrt={"gradTarget": "target"}),
)
