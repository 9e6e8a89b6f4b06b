"""aclnnMoeTokenUnpermuteWithRoutingMapGrad: a token was the sum of its rows, by probabilities that a map routes."""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._routing import named_rows, rows_at, rows_put
from aclnn_cts.oracles._windows import Numbers, Shape


def _tokens(outIndex: Numbers, permuteTokenId: Numbers, rows: int) -> Numbers:
    """(rows,): the token of each row; -1 for a row that is not named."""
    named = named_rows(outIndex, rows)
    found: Numbers = np.where(named < 0, -1, permuteTokenId[named])
    return found


def _counts(places: Numbers, count: int) -> Numbers:
    """(count,): how often each place is named."""
    found: Numbers = np.bincount(places[(places >= 0) & (places < count)], minlength=count)
    return found


def _cells(routingMap: Numbers, tokens: Numbers, *, padded: bool) -> Numbers:
    """(rows,): the place in probs, row-major, of the probability of each row; -1 for none, or for that of several."""
    experts = routingMap.shape[1]
    if padded:
        capacity = max(tokens.size // experts, 1)
        places: Numbers = np.where(tokens < 0, -1, tokens * experts + np.arange(tokens.size) // capacity)
        return np.where(_counts(places, routingMap.size)[places] == 1, places, -1)
    expert, token = np.nonzero(routingMap.T)
    cells = np.full(tokens.size, -1)
    ones = (token * experts + expert)[: tokens.size]
    cells[: ones.size] = ones
    return cells


def _backward(  # noqa: PLR0913 - the parameters of the prototype
    f: F, unpermutedTokensGrad: Array, outIndex: Numbers, permuteTokenId: Numbers, routingMapOptional: Numbers | None,
    permutedTokensOptional: Array | None, probsOptional: Array | None, *, dropAndPad: bool,
    permutedTokensGradOut: Shape, probsGradOutOptional: Shape | None,
) -> Outputs:  # fmt: skip
    rows = permutedTokensGradOut[0]
    tokens = _tokens(outIndex, permuteTokenId, rows)
    # A row that is not named once has no gradient, or one of several.
    gradient = f.undecided(rows_at(f, unpermutedTokensGrad, tokens), where=(_counts(outIndex, rows) != 1)[:, None])
    if probsOptional is None or routingMapOptional is None or permutedTokensOptional is None:
        # Without probabilities, an output that is given holds anything.
        zeros = {} if probsGradOutOptional is None else {"probsGradOutOptional": f.lift(np.zeros(probsGradOutOptional))}
        return {"permutedTokensGradOut": gradient, **zeros}
    cells = _cells(routingMapOptional, tokens, padded=dropAndPad)
    weighted = f.take(probsOptional.reshape(-1), cells).reshape(-1, 1) * gradient
    # With padding, the probability of a row is element i of a view of one element.
    odd = np.count_nonzero(routingMapOptional) != rows
    named = named_rows(cells, routingMapOptional.size)
    probs = f.undecided(
        f.take((gradient * permutedTokensOptional).sum(1), named), where=named < 0 if dropAndPad else odd
    )
    return {
        "permutedTokensGradOut": f.undecided(weighted, where=dropAndPad or odd),
        "probsGradOutOptional": probs.reshape(*routingMapOptional.shape),
    }


def _forward(
    f: F, permutedTokensOptional: Array | None, unpermutedTokensGrad: Shape, outIndex: Numbers, permuteTokenId: Numbers,
    routingMapOptional: Numbers | None, probsOptional: Array | None, *, dropAndPad: bool,
) -> Outputs:  # fmt: skip
    if permutedTokensOptional is None:
        return {"unpermutedTokens": f.lift(np.zeros(unpermutedTokensGrad))}
    tokens = _tokens(outIndex, permuteTokenId, permutedTokensOptional.shape[0])
    weighted = permutedTokensOptional
    if probsOptional is not None and routingMapOptional is not None:
        cells = _cells(routingMapOptional, tokens, padded=dropAndPad)
        weighted = f.take(probsOptional.reshape(-1), cells).reshape(-1, 1) * weighted
    return {"unpermutedTokens": rows_put(f, weighted, tokens, unpermutedTokensGrad[0])}


_DERIVATIVE = Derivative(
    forward=_forward,
    gradients={"unpermutedTokensGrad": "unpermutedTokens"},
    wrt={"permutedTokensGradOut": "permutedTokensOptional", "probsGradOutOptional": "probsOptional"},
)
FORMULA = Operator.of(_backward, derivative=_DERIVATIVE)
