"""aclnnDropoutBackward: the gradient times scale where the packed mask has a 1, lowest bit first, and 0 elsewhere."""

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _bits(mask: NDArray[np.int64], like: Array) -> NDArray[np.uint8]:
    return np.unpackbits(mask.astype(np.uint8), count=like.size, bitorder="little").reshape(like.shape)


def _chosen(f: F, gradOutput: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"out": f.where((_bits(mask, gradOutput) > 0) & (scale != 0), gradOutput * scale, 0.0)}


def _product(f: F, gradOutput: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"out": gradOutput * _bits(mask, gradOutput).astype(np.float64) * scale}


def _forward(f: F, self: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"y": _product(f, self, mask, scale)["out"]}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_chosen, _product, derivative=_DERIVATIVE)
