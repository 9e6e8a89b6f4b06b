"""aclnnDropoutV3Grad: the gradient times the bits of the packed mask, lowest bit first, times scale."""

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._bits import unpacked


def _backward(f: F, gradY: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"gradX": gradY * unpacked(mask, gradY.shape).astype(np.float64) * scale}


def _forward(f: F, x: Array, mask: NDArray[np.int64], scale: float) -> Outputs:
    return {"y": x * unpacked(mask, x.shape).astype(np.float64) * scale}


FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"gradY": "y"}, wrt={"gradX": "x"}))
