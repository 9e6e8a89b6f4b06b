"""aclnnKlDivBackward: the gradient of t (log t - x), or of e^t (t - x) for a target in log space.

It is summed over repetitions of x. The mean divides by the elements of the result, `batchmean` by its first size.
No document says what a gradient means that is larger than the result, or a negative t without a logarithm.
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
    target: Array,
    stored: Mapping[str, NDArray[Any]],
    self: Array,
    *,
    reduction: int,
    logTarget: bool,
    out: Shape,
) -> Outputs:
    result = np.broadcast_shapes(self.shape, target.shape)
    whole = np.broadcast_shapes(result, gradOutput.shape)
    weight = f.exp(target) if logTarget else target
    gradient = summed_to((gradOutput * weight * -1.0 / divisor(result, reduction)).broadcast_to(whole), out)
    unsaid = np.broadcast_to((stored["target"] < 0) & (not logTarget), whole)
    unsaid = np.any(unsaid, axis=repeated_axes(out, whole)).reshape(out) | (whole != result)
    return {"out": f.undecided(gradient, where=unsaid)}


def _forward(f: F, self: Array, target: Array, *, reduction: int, logTarget: bool) -> Outputs:
    result = np.broadcast_shapes(self.shape, target.shape)
    loss = f.exp(target) * (target - self) if logTarget else target * (f.lift(0.0) - self)
    return {"loss": (loss / divisor(result, reduction)).broadcast_to(result)}


FORMULA = Operator.of(
    _backward, derivative=Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"})
)
