"""aclnnGridSampler3DBackward: each gradient goes back to the elements that its point of the grid was sampled from."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._grid_sampling import Sampling, gradients, sampled

Stored: TypeAlias = "Mapping[str, NDArray[np.float64]]"
Formats: TypeAlias = "Mapping[str, str]"

_TO_FRONT, _TO_BACK = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradOutput: Array, input: Array, grid: Array, interpolationMode: int, paddingMode: int, stored: Stored,
    formats: Formats, *, alignCorners: bool,
) -> Outputs:  # fmt: skip
    how = Sampling(interpolationMode, paddingMode, alignCorners)
    gradient = gradOutput.transpose(*_TO_FRONT) if formats["gradOutput"] == "NDHWC" else gradOutput
    last = formats["input"] == "NDHWC"
    values = input.transpose(*_TO_FRONT) if last else input
    spread, moved = gradients(f, gradient, values, grid, stored["grid"], how)
    return {"inputGrad": spread.transpose(*_TO_BACK) if last else spread, "gridGrad": moved}


def _forward(
    f: F, input: Array, grid: Array, interpolationMode: int, paddingMode: int, stored: Stored, formats: Formats,
    *, alignCorners: bool,
) -> Outputs:  # fmt: skip
    how = Sampling(interpolationMode, paddingMode, alignCorners)
    values = input.transpose(*_TO_FRONT) if formats["input"] == "NDHWC" else input
    y = sampled(f, values, grid, stored["grid"], how)
    return {"y": y.transpose(*_TO_BACK) if formats["gradOutput"] == "NDHWC" else y}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"inputGrad": "input", "gridGrad": "grid"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
