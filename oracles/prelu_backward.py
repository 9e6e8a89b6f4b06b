"""aclnnPreluBackward: the gradient g of x above 0 and w x elsewhere, with a weight w for each channel or for all."""

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._broadcasting import summed_to
from aclnn_cts.oracles._windows import Shape


def _channels(weight: Array, rank: int) -> Shape:
    """The shape in which a weight broadcasts with an input: the second dimension is that of channels."""
    return tuple(weight.size if axis == 1 else 1 for axis in range(rank))


def _backward(f: F, gradOutput: Array, self: Array, weight: Array, gradWeight: Shape) -> Outputs:
    gradient, channels = gradOutput.broadcast_to(self.shape), _channels(weight, self.ndim)
    below = f.where(self > 0.0, 0.0, gradient * self)
    return {
        "gradInput": f.where(self > 0.0, gradient, gradient * weight.reshape(*channels)),
        "gradWeight": summed_to(below, channels).reshape(*gradWeight),
    }


def _forward(f: F, self: Array, weight: Array) -> Outputs:
    return {"y": f.where(self > 0.0, self, self * weight.reshape(*_channels(weight, self.ndim)))}


_WRT = {"gradInput": "self", "gradWeight": "weight"}
FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt=_WRT))
