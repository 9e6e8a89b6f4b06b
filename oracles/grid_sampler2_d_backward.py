"""aclnnGridSampler2DBackward: each gradient goes back to the elements that its point of the grid was sampled from."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._grid_sampling import Sampling, gradients, sampled

Stored: TypeAlias = "Mapping[str, NDArray[np.float64]]"


def _backward(
    f: F, gradOutput: Array, input: Array, grid: Array, interpolationMode: int, paddingMode: int, stored: Stored,
    *, alignCorners: bool,
) -> Outputs:  # fmt: skip
    how = Sampling(interpolationMode, paddingMode, alignCorners)
    spread, moved = gradients(f, gradOutput, input, grid, stored["grid"], how)
    return {"inputGrad": spread, "gridGrad": moved}


def _forward(
    f: F, input: Array, grid: Array, interpolationMode: int, paddingMode: int, stored: Stored,
    *, alignCorners: bool,
) -> Outputs:  # fmt: skip
    return {"y": sampled(f, input, grid, stored["grid"], Sampling(interpolationMode, paddingMode, alignCorners))}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"inputGrad": "input", "gridGrad": "grid"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
