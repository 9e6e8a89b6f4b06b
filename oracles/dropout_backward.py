"""aclnnDropoutBackward: the gradient times scale where the packed mask has a 1, lowest bit first, and 0 elsewhere."""

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._bits import unpacked


def _chosen(f: F, gradOutput: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"out": f.where((unpacked(mask, gradOutput.shape) > 0) & (scale != 0), gradOutput * scale, 0.0)}


def _product(f: F, gradOutput: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"out": gradOutput * unpacked(mask, gradOutput.shape).astype(np.float64) * scale}


def _forward(f: F, self: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"y": _product(f, self, mask, scale)["out"]}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(_chosen, _product, derivative=_DERIVATIVE)
