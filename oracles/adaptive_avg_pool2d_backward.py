"""aclnnAdaptiveAvgPool2dBackward: each gradient over the size of its window is added to every element of the window."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape, adaptive_windows, along_each, divisors


def _backward(f: F, gradOutput: Array, out: Shape) -> Outputs:
    h, w = adaptive_windows(out[-2:], gradOutput.shape[-2:])
    return {"out": along_each(f, gradOutput / divisors(h, w, override=0, padded=False), h.covering(), w.covering())}


def _forward(f: F, self: Array, gradOutput: Shape) -> Outputs:
    h, w = adaptive_windows(self.shape[-2:], gradOutput[-2:])
    return {"y": along_each(f, self, h.members(), w.members()) / divisors(h, w, override=0, padded=False)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
LEADING = -2
