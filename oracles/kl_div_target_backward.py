"""aclnnKlDivTargetBackward: the gradient times log t - x + 1, or times e^t (t - x + 1) for a target in log space.

It is summed over repetitions of t. The mean divides by the elements of the loss, `batchmean` by its first size. No
document says what a gradient means that is larger than the loss, or a t without a logarithm.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._broadcasting import repeated_axes, summed_to
from aclnn_cts.oracles._reduction import divisor
from aclnn_cts.oracles._windows import Shape


def _backward(
    f: F,
    gradOutput: Array,
    self: Array,
    target: Array,
    stored: Mapping[str, NDArray[Any]],
    *,
    reduction: int,
    logTarget: bool,
    gradTarget: Shape,
) -> Outputs:
    result = np.broadcast_shapes(self.shape, target.shape)
    whole = np.broadcast_shapes(result, gradOutput.shape)
    slope = f.exp(target) * (target - self + 1.0) if logTarget else f.log(target) - self + 1.0
    gradient = summed_to((gradOutput * slope / divisor(result, reduction)).broadcast_to(whole), gradTarget)
    unsaid = np.broadcast_to((stored["target"] <= 0) & (not logTarget), whole)
    unsaid = np.any(unsaid, axis=repeated_axes(gradTarget, whole)).reshape(gradTarget) | (whole != result)
    return {"gradTarget": f.undecided(gradient, where=unsaid)}


def _forward(f: F, self: Array, target: Array, *, reduction: int, logTarget: bool) -> Outputs:
    result = np.broadcast_shapes(self.shape, target.shape)
    loss = f.exp(target) * (target - self) if logTarget else target * (f.log(target) - self)
    return {"loss": (loss / divisor(result, reduction)).broadcast_to(result)}


FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"gradTarget": "target"})
)
