"""aclnnMoeTokenUnpermuteGrad: a token was the sum of its K copies, weighted by probabilities; their gradients."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import copy_rows, rows_at, rows_put, sum_copies
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(
    f: F, permuteTokens: Array, unpermutedTokensGrad: Array, sortedIndices: Numbers, probsOptional: Array | None,
    probsGradOut: Shape | None,
) -> Outputs:  # fmt: skip
    gradient, weighted = copy_rows(f, unpermutedTokensGrad, probsOptional)
    results = {"permutedTokensGradOut": rows_put(f, weighted, sortedIndices, permuteTokens.shape[0])}
    if probsGradOut is not None:
        # Without probabilities, an output that is given holds anything.
        products = gradient * rows_at(f, permuteTokens, sortedIndices)
        results["probsGradOut"] = products.sum(1).reshape(unpermutedTokensGrad.shape[0], -1)
    return results


def _forward(f: F, permuteTokens: Array, sortedIndices: Numbers, probsOptional: Array | None) -> Outputs:
    return {"unpermutedTokens": sum_copies(rows_at(f, permuteTokens, sortedIndices), probsOptional)}


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"unpermutedTokensGrad": "unpermutedTokens"},
    wrt={"permutedTokensGradOut": "permuteTokens", "probsGradOut": "probsOptional"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
