"""The formula in plain FLOAT: the second implementation that acceptance criteria compare a device with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import OracleInput
from aclnn_cts.formula.definition import Operator, default_arithmetic, output_shapes
from aclnn_cts.formula.emulator import Emulated, Emulator, TooManyTermsError

__all__ = ["benchmark"]


def benchmark(operator: Operator, call: OracleInput) -> dict[str, NDArray[np.float32]]:
    """Every operation rounded to FLOAT, sums from the first term to the last, nothing fused.

    Nothing where a sum would have too many terms for that.
    """
    found: dict[str, NDArray[np.float32]] = {}
    with np.errstate(all="ignore"):
        try:
            results = operator.evaluate(operator.judging, Emulator(default_arithmetic()), call)
        except TooManyTermsError:
            return found
    for name in output_shapes(call):
        result = results[name]
        if isinstance(result, Emulated):
            found[name] = result.v.astype(np.float32, copy=False)
    return found
