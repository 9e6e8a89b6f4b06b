"""aclnnMoeTokenPermuteWithRoutingMapGrad: the gradient of a token is the sum of those of the rows it was copied to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import added_up, named_rows, repeated, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers, Shape


def _padded_cells(sortedIndices: Numbers, experts: int) -> Numbers:
    """(rows,): the place in probs, row-major, of the token and the expert of each row."""
    capacity = max(sortedIndices.size // max(experts, 1), 1)
    found: Numbers = sortedIndices.astype(np.int64) * experts + np.arange(sortedIndices.size) // capacity
    return found


def _cells(sortedIndices: Numbers, routingMap: Numbers | None, experts: int, *, padded: bool) -> Numbers:
    """(rows,): the place in probs, row-major, of the probability of each row; -1 for none, or for that of several."""
    rows = sortedIndices.size
    if padded:
        places = _padded_cells(sortedIndices, experts)
        _, first, count = np.unique(places, return_inverse=True, return_counts=True)
        return np.where(count[first] == 1, places, -1)
    cells = np.full(rows, -1)
    ones = np.flatnonzero(routingMap)[:rows] if routingMap is not None else cells[:0]
    cells[: ones.size] = ones
    return cells


def _are_in_another_order(routingMap: Numbers | None, rows: int, places: int) -> NDArray[np.bool_]:
    """(places,): the ones of a map whose number is another one by experts than by tokens; all of unsuitable maps."""
    if routingMap is None or np.count_nonzero(routingMap) != rows:
        return np.ones(places, np.bool_)
    by_tokens = np.cumsum(routingMap != 0).reshape(routingMap.shape)
    by_experts = np.cumsum(routingMap.T != 0).reshape(routingMap.T.shape).T
    found: NDArray[np.bool_] = ((routingMap != 0) & (by_tokens != by_experts)).reshape(-1)
    return found


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, permutedTokenOutputGrad: Array, permutedProbsOutputGradOptional: Array | None, sortedIndices: Numbers,
    routingMapOptional: Numbers | None, *, numExperts: int, dropAndPad: bool, tokensGradOut: Shape,
    probsGradOutOptional: Shape | None,
) -> Outputs:  # fmt: skip
    tokens, rows = tokensGradOut[0], sortedIndices.size
    if dropAndPad:
        gradient = rows_put(f, permutedTokenOutputGrad, sortedIndices, tokens)
    else:
        gradient = added_up(rows_at(f, permutedTokenOutputGrad, sortedIndices), rows // tokens)
        if rows == tokens:
            # The equation puts row i at token sortedIndices[i], the forward operator token i into that row.
            differs = sortedIndices[sortedIndices] != np.arange(rows)
            gradient = f.undecided(gradient, where=differs[:, None])
    found = {"tokensGradOut": gradient}
    if probsGradOutOptional is None:
        return found
    if permutedProbsOutputGradOptional is None:
        # Without gradients of probabilities, an output that is given holds anything.
        return {**found, "probsGradOutOptional": f.lift(np.zeros(probsGradOutOptional))}
    cells = _cells(sortedIndices, routingMapOptional, numExperts, padded=dropAndPad)
    places = probsGradOutOptional[0] * probsGradOutOptional[1]
    if dropAndPad:
        # Of several numbers for one probability it is not said which is written last.
        unsaid = np.isin(np.arange(places), np.setdiff1d(_padded_cells(sortedIndices, numExperts), cells))
    else:
        # The equation takes the ones of the map by tokens, the forward operator by experts.
        unsaid = _are_in_another_order(routingMapOptional, rows, places)
    probs = f.undecided(f.take(permutedProbsOutputGradOptional, named_rows(cells, places)), where=unsaid)
    return {**found, "probsGradOutOptional": probs.reshape(*probsGradOutOptional)}


def _forward(
    f: F, tokens: Array, probs: Array | None, sortedIndices: Numbers, routingMapOptional: Numbers | None, *,
    numExperts: int, dropAndPad: bool,
) -> Outputs:  # fmt: skip
    if dropAndPad:
        permuted = {"permutedTokens": rows_at(f, tokens, sortedIndices)}
    else:
        rows = sortedIndices.size
        permuted = {"permutedTokens": rows_put(f, repeated(f, tokens, rows // tokens.shape[0]), sortedIndices, rows)}
    if probs is None:
        return permuted
    cells = _cells(sortedIndices, routingMapOptional, numExperts, padded=dropAndPad)
    return {**permuted, "permutedProbs": f.take(probs.reshape(-1), cells)}


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"permutedTokenOutputGrad": "permutedTokens", "permutedProbsOutputGradOptional": "permutedProbs"},
    wrt={"tokensGradOut": "tokens", "probsGradOutOptional": "probs"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
