"""aclnnGroupedBiasAddGradV2: that of aclnnGroupedBiasAddGrad by the ends or by the sizes of groups."""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import group_sums, with_group_rows
from aclnn_cts.oracles._windows import Numbers, Shape


def _ends(groupIdxOptional: Numbers | None, groupIdxType: int) -> Numbers | None:
    """Where each group ends, from the ends themselves or, for 1, from the sizes of the groups."""
    if groupIdxOptional is None or groupIdxType == 0:
        return groupIdxOptional
    found: Numbers = np.cumsum(groupIdxOptional, dtype=np.int64)
    return found


def _backward(f: F, gradY: Array, groupIdxOptional: Numbers | None, groupIdxType: int) -> Outputs:
    return {"out": group_sums(f, gradY, _ends(groupIdxOptional, groupIdxType))}


def _forward(f: F, bias: Array, gradY: Shape, groupIdxOptional: Numbers | None, groupIdxType: int) -> Outputs:
    return {"y": with_group_rows(f, bias, gradY, _ends(groupIdxOptional, groupIdxType))}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradY": "y"}, wrt={"out": "bias"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
