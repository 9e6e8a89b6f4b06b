"""aclnnAvgPool2dBackward: each gradient over its window's divisor is added to every element of the window."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape, along_each, divisors, windows_of


def _backward(f: F, gradOutput: Array, kernelSize: Shape, stride: Shape, padding: Shape, *, countIncludePad: bool,
              divisorOverride: int, gradInput: Shape) -> Outputs:  # fmt: skip
    h, w = windows_of(gradInput, gradOutput.shape, kernelSize, stride, padding)
    quotient = gradOutput / divisors(h, w, override=divisorOverride, padded=countIncludePad)
    return {"gradInput": along_each(f, quotient, h.covering(), w.covering())}


def _forward(f: F, self: Array, kernelSize: Shape, stride: Shape, padding: Shape, *, countIncludePad: bool,
             divisorOverride: int, gradOutput: Shape) -> Outputs:  # fmt: skip
    h, w = windows_of(self.shape, gradOutput, kernelSize, stride, padding)
    total = along_each(f, self, h.members(), w.members())
    return {"y": total / divisors(h, w, override=divisorOverride, padded=countIncludePad)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -2
