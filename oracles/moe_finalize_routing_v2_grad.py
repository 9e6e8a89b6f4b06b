"""aclnnMoeFinalizeRoutingV2Grad: a token was the sum of its K copies, each plus its expert's bias, by scales."""

from __future__ import annotations

import math

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import added_up, repeated, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, gradY: Array, expandedRowIdx: Numbers, expandedXOptional: Array | None, scalesOptional: Array | None,
    expertIdxOptional: Numbers | None, biasOptional: Array | None, *, gradExpandedXOut: Shape,
    gradScalesOut: Shape | None,
) -> Outputs:  # fmt: skip
    rows = math.prod(gradExpandedXOut[:-1])
    gradient = repeated(f, gradY, expandedRowIdx.size // gradY.shape[0])
    weighted = gradient if scalesOptional is None else gradient * scalesOptional.reshape(-1, 1)
    results = {"gradExpandedXOut": rows_put(f, weighted, expandedRowIdx, rows).reshape(*gradExpandedXOut)}
    if gradScalesOut is not None:
        # Without scales, an output that is given holds anything.
        copies = _copies(f, gradY.shape[1], expandedRowIdx, expandedXOptional, expertIdxOptional, biasOptional)
        # Whether the bias of a copy without a row counts is not said.
        outside = ((expandedRowIdx < 0) | (expandedRowIdx >= rows)) & (biasOptional is not None)
        results["gradScalesOut"] = f.undecided((gradient * copies).sum(1), where=outside).reshape(*gradScalesOut)
    return results


def _copies(
    f: F, columns: int, places: Numbers, expandedX: Array | None, expertIdx: Numbers | None, bias: Array | None
) -> Array:
    """(copies, columns): the row of each copy, with the bias of its expert; zeros where there are no rows."""
    if expandedX is None:
        found: Array = f.lift(np.zeros((places.size, columns)))
    else:
        found = rows_at(f, expandedX.reshape(-1, columns), places)
    return found if bias is None or expertIdx is None else found + rows_at(f, bias, expertIdx.reshape(-1))


def _forward(
    f: F, expandedXOptional: Array | None, gradY: Shape, expandedRowIdx: Numbers, scalesOptional: Array | None,
    expertIdxOptional: Numbers | None, biasOptional: Array | None,
) -> Outputs:  # fmt: skip
    copies = _copies(f, gradY[1], expandedRowIdx, expandedXOptional, expertIdxOptional, biasOptional)
    weighted = copies if scalesOptional is None else copies * scalesOptional.reshape(-1, 1)
    return {"y": added_up(weighted, expandedRowIdx.size // gradY[0])}


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"gradY": "y"},
    wrt={"gradExpandedXOut": "expandedXOptional", "gradScalesOut": "scalesOptional"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
