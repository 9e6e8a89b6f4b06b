"""aclnnAvgPool3dBackward: each gradient over its window's divisor is added to every element of the window."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Shape, along_each, divisors, windows_of


def _backward(f: F, gradOutput: Array, kernelSize: Shape, stride: Shape, padding: Shape, *, countIncludePad: bool,
              divisorOverride: int, output: Shape) -> Outputs:  # fmt: skip
    windows = windows_of(output, gradOutput.shape, kernelSize, stride, padding, dimensions=3)
    quotient = gradOutput / divisors(*windows, override=divisorOverride, padded=countIncludePad)
    return {"output": along_each(f, quotient, *[along.covering() for along in windows])}


def _forward(f: F, self: Array, kernelSize: Shape, stride: Shape, padding: Shape, *, countIncludePad: bool,
             divisorOverride: int, gradOutput: Shape) -> Outputs:  # fmt: skip
    windows = windows_of(self.shape, gradOutput, kernelSize, stride, padding, dimensions=3)
    total = along_each(f, self, *[along.members() for along in windows])
    return {"y": total / divisors(*windows, override=divisorOverride, padded=countIncludePad)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"output": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
LEADING = -3
