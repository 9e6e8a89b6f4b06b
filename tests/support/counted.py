"""What an oracle says of sums that so many roundings meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.formula.definition import default_arithmetic
from aclnn_cts.judgement.model import ORACLE_ROUNDOFF, gamma


def counted(
    value: Float64, count: int | NDArray[np.int64], magnitude: Float64 | None = None, **more: Any
) -> ExpectedOutput:
    """So many roundings to FLOAT, of sums whose terms have such absolute values (those of the results)."""
    arithmetic = default_arithmetic()
    size = np.abs(value) if magnitude is None else magnitude
    error = gamma(count, arithmetic.roundoff + ORACLE_ROUNDOFF) * size
    return ExpectedOutput(value=value, error=error, arithmetic=arithmetic, **more)
