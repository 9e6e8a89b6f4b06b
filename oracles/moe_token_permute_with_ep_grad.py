"""aclnnMoeTokenPermuteWithEpGrad: that of aclnnMoeTokenPermuteGrad where the copies in a range have gradients."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import added_up, of_range, repeated, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers, Shape


def _backward(
    f: F, permutedTokensOutputGrad: Array, sortedIndices: Numbers, permutedProbsOutputGradOptional: Array | None, *,
    numTopk: int, rangeOptional: Shape | None, probsGradOut: Shape | None,
) -> Outputs:  # fmt: skip
    places = of_range(sortedIndices, rangeOptional)
    results = {"tokenGradOut": added_up(rows_at(f, permutedTokensOutputGrad, places), numTopk)}
    if probsGradOut is not None:
        # Beside a call that does not compute it, an output that is given holds anything.
        probs = permutedProbsOutputGradOptional
        table = permutedTokensOutputGrad[:, :1] * 0.0 if probs is None else probs.reshape(-1, 1)
        results["probsGradOut"] = rows_at(f, table, places).reshape(*probsGradOut)
    return results


def _forward(
    f: F, tokens: Array, probs: Array | None, sortedIndices: Numbers, permutedTokensOutputGrad: Shape, *, numTopk: int,
    rangeOptional: Shape | None,
) -> Outputs:  # fmt: skip
    places, rows = of_range(sortedIndices, rangeOptional), permutedTokensOutputGrad[0]
    results = {"permutedTokens": rows_put(f, repeated(f, tokens, numTopk), places, rows)}
    if probs is not None:
        results["permutedProbs"] = rows_put(f, probs.reshape(-1, 1), places, rows).reshape(-1)
    return results


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"permutedTokensOutputGrad": "permutedTokens", "permutedProbsOutputGradOptional": "permutedProbs"},
    wrt={"tokenGradOut": "tokens", "probsGradOut": "probs"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
