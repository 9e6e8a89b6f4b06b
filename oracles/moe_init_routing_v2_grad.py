"""aclnnMoeInitRoutingV2Grad: the gradient of a token is the sum of those of its routed copies."""

import math

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import repeated, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(f: F, gradExpandedX: Array, expandedRowIdx: Numbers, topK: int) -> Outputs:
    table = gradExpandedX.reshape(-1, gradExpandedX.shape[-1])
    # Of many copies few may be kept: the rows of all of them would take gigabytes.
    kept = np.flatnonzero((expandedRowIdx >= 0) & (expandedRowIdx < table.shape[0]))
    rows = rows_at(f, table, expandedRowIdx[kept])
    return {"out": rows_put(f, rows, kept // topK, expandedRowIdx.size // topK)}


def _forward(f: F, x: Array, expandedRowIdx: Numbers, gradExpandedX: Shape, topK: int) -> Outputs:
    copies = rows_put(f, repeated(f, x, topK), expandedRowIdx, math.prod(gradExpandedX[:-1]))
    return {"expandedX": copies.reshape(*gradExpandedX)}


_DERIVATIVE = Derivative(forward=_forward, gradients={"gradExpandedX": "expandedX"}, wrt={"out": "x"})
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
