"""aclnnHardsigmoidBackward: a sixth of the gradient where self lies between -3 and 3, 0 beyond, and open at both."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_BORDER = 3.0 + 2.0**-23
"""Between 3 and the next FLOAT: which side 3 belongs to is open, so that no comparison may turn on it."""


def backward(f: F, gradOutput: Array, self: Array, stored: Mapping[str, Any]) -> Outputs:
    """The derivative of Hardsigmoid, which the document refers to."""
    inside = f.where(self > -_BORDER, f.where(self < _BORDER, gradOutput * (1.0 / 6.0), 0.0), 0.0)
    return {"out": f.undecided(inside, where=np.abs(stored["self"]) == 3)}


def forward(f: F, self: Array) -> Outputs:
    """What it is the derivative of."""
    return {"y": f.where(self > 3.0, 1.0, f.where(self < -3.0, 0.0, self / 6.0 + 0.5))}


_DERIVATIVE = Derivative(forward=forward, gradients={"gradOutput": "y"}, wrt={"out": "self"})
FORMULA = Operator.of(backward, derivative=_DERIVATIVE)
