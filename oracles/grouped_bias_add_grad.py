"""aclnnGroupedBiasAddGrad: a bias was added to each row of a group; its gradient is the sum of the group's rows."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import group_sums, with_group_rows
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(f: F, gradY: Array, groupIdxOptional: Numbers | None) -> Outputs:
    return {"out": group_sums(f, gradY, groupIdxOptional)}


def _forward(f: F, bias: Array, gradY: Shape, groupIdxOptional: Numbers | None) -> Outputs:
    return {"y": with_group_rows(f, bias, gradY, groupIdxOptional)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradY": "y"}, wrt={"out": "bias"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
