"""aclnnAdaptiveAvgPool3dBackward: each gradient over the size of its window is added to every element of the window."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape, adaptive_windows, along_each, divisors


def _backward(f: F, gradOutput: Array, out: Shape) -> Outputs:
    windows = adaptive_windows(out[-3:], gradOutput.shape[-3:])
    quotient = gradOutput / divisors(*windows, override=0, padded=False)
    return {"out": along_each(f, quotient, *[along.covering() for along in windows])}


def _forward(f: F, self: Array, gradOutput: Shape) -> Outputs:
    windows = adaptive_windows(self.shape[-3:], gradOutput[-3:])
    total = along_each(f, self, *[along.members() for along in windows])
    return {"y": total / divisors(*windows, override=0, padded=False)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
LEADING = -3
