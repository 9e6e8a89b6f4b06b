"""aclnnBinaryCrossEntropyBackward: the weighted gradient times x - t, over x (1 - x), or its mean.

The document says nothing of an x that is not between 0 and 1: the entropy has no logarithm of it.
"""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._reduction import divisor
from aclnn_cts.oracles._windows import Shape


def _backward(f: F, gradOutput: Array, self: Array, target: Array, weightOptional: Array | None, reduction: int,
              stored: Mapping[str, NDArray[Any]], out: Shape) -> Outputs:  # fmt: skip
    weighted = gradOutput if weightOptional is None else gradOutput * weightOptional
    each = weighted * f.difference(self, target) / (self * (1.0 - self))
    result = (each / divisor(self.shape, reduction)).broadcast_to(out)
    return {"out": f.undecided(result, where=(stored["self"] <= 0) | (stored["self"] >= 1))}


def _forward(f: F, self: Array, target: Array, weightOptional: Array | None, reduction: int) -> Outputs:
    other = 1.0 - self
    entropy = target * f.log(self * self) + (1.0 - target) * f.log(other * other)
    weighted = entropy if weightOptional is None else entropy * weightOptional
    return {"loss": weighted * (-0.5 / divisor(self.shape, reduction))}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "loss"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
