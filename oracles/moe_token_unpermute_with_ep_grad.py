"""aclnnMoeTokenUnpermuteWithEpGrad: that of aclnnMoeTokenUnpermuteGrad, where the copies in a range alone are there."""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import copy_rows, named_rows, of_range, rows_at, rows_put, sum_copies
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(
    f: F, unpermutedTokensGrad: Array, sortedIndices: Numbers, permutedTokensOptional: Array | None,
    probsOptional: Array | None, *, rangeOptional: Shape | None, permutedTokensGradOut: Shape,
    probsGradOut: Shape | None,
) -> Outputs:  # fmt: skip
    rows = permutedTokensGradOut[0]
    gradient, weighted = copy_rows(f, unpermutedTokensGrad, probsOptional)
    places = of_range(sortedIndices, rangeOptional)
    there = named_rows(places, rows)
    # With probabilities, the rows are those without the start of the range by one formula, and with it by the other.
    other = there if probsOptional is None else named_rows(np.where(places < 0, -1, sortedIndices), rows)
    open_rows = (there != other)[:, None]
    results = {"permutedTokensGradOut": f.undecided(rows_put(f, weighted, places, rows), where=open_rows)}
    if probsGradOut is not None:
        # Without probabilities, an output that is given holds anything.
        copies = 0.0 if permutedTokensOptional is None else rows_at(f, permutedTokensOptional, places)
        results["probsGradOut"] = (gradient * copies).sum(1).reshape(unpermutedTokensGrad.shape[0], -1)
    return results


def _forward(
    f: F, permutedTokensOptional: Array | None, sortedIndices: Numbers, probsOptional: Array | None,
    *, rangeOptional: Shape | None, unpermutedTokensGrad: Shape,
) -> Outputs:  # fmt: skip
    if permutedTokensOptional is None:
        return {"unpermutedTokens": f.lift(np.zeros(unpermutedTokensGrad))}
    copies = rows_at(f, permutedTokensOptional, of_range(sortedIndices, rangeOptional))
    return {"unpermutedTokens": sum_copies(copies, probsOptional)}


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"unpermutedTokensGrad": "unpermutedTokens"},
    wrt={"permutedTokensGradOut": "permutedTokensOptional", "probsGradOut": "probsOptional"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
