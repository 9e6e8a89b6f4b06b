"""aclnnScaledMaskedSoftmaxBackward: scale y (g - sum(g y)) along the last dimension; 0 where the mask is set."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _backward(f: F, gradOutput: Array, y: Array, mask: NDArray[Any], scale: float) -> Outputs:
    product = gradOutput * y
    total = product.sum(-1, keepdims=True)
    # Both orders are in use; near the largest number they overflow at different elements.
    return {"out": _unmasked(f, f.either(product - total * y, (gradOutput - total) * y) * scale, mask)}


def _factored(f: F, gradOutput: Array, y: Array, mask: NDArray[Any], scale: float) -> Outputs:
    total = (gradOutput * y).sum(-1, keepdims=True)
    return {"out": _unmasked(f, (gradOutput - total) * y * scale, mask)}


def _unmasked(f: F, gradient: Array, mask: NDArray[Any]) -> Array:
    unmasked: Array = f.where(np.broadcast_to(mask != 0, gradient.shape), 0.0, gradient)
    return unmasked


def _forward(f: F, x: Array, mask: NDArray[Any], scale: float) -> Outputs:
    scaled = f.where(np.broadcast_to(mask != 0, x.shape), -1000.0, x * scale)
    powers = f.exp(scaled - scaled.max(-1, keepdims=True))
    return {"y": powers / powers.sum(-1, keepdims=True)}


FORMULA = Operator.of(
    _backward,
    _factored,
    derivative=Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "x"}, saved=("y",)),
)
LEADING = -1
