"""aclnnHardswishBackwardV2: as aclnnHardswishBackward, but -3 has the slope 0 and 3 the slope 1."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles.hardswish_backward import forward


def backward(f: F, gradOutput: Array, self: Array) -> Outputs:
    """The document's formula."""
    middle = f.where(self < 3.0, gradOutput * (self / 3.0 + 0.5), gradOutput)
    return {"out": f.where(self > -3.0, middle, 0.0)}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
