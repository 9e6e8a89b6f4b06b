"""aclnnLightningIndexerGrad: gradients that are 0, since dy is 0 or no query names the key; others are open."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.oracles._windows import Numbers, Shape

Held: TypeAlias = "NDArray[np.float64]"
Mask: TypeAlias = "NDArray[np.bool_]"


def _batches(held: NDArray[Any], rank: int) -> NDArray[Any]:
    """With a dimension of batches in front, which TND lacks."""
    return held if held.ndim == rank else held[None]


def _is_still(query: Held, key: Held, dy: Held, weights: Held) -> Mask:
    """(batches, queries): whether dy is 0 throughout, and meets nothing that is or may become inf or nan."""
    keys: Mask = np.logical_and.reduce(np.isfinite(key), (1, 2, 3))
    finite = np.isfinite(query).all((2, 3)) & np.isfinite(weights).all(2) & keys[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        most = np.abs(query).max((2, 3), initial=0.0) * np.abs(key).max((1, 2, 3), initial=0.0)[:, None]
        below = most * query.shape[3] < np.finfo(np.float32).max
    found: Mask = np.logical_and.reduce(dy == 0, (2, 3)) & finite & below
    return found


def _named(indices: Numbers, moved: Mask, keys: int) -> Mask:
    """(batches, keys): which keys a query names whose gradients are not known to be 0."""
    found = np.zeros((len(indices), keys), bool)
    batch, query, place = np.nonzero(moved[..., None] & (indices >= 0) & (indices < keys))
    found[batch, indices[batch, query, place]] = True
    return found


def _backward(  # noqa: PLR0913, PLR0917 - the parameters of the operator
    f: F, query: Held, key: Held, dy: Held, spareIndices: Numbers, weights: Held,
    actucalSeqLengthsQuery: Numbers | None, dQuery: Shape, dKey: Shape, dWeights: Shape,
) -> Outputs:  # fmt: skip
    moved = ~_is_still(_batches(query, 4), _batches(key, 4), _batches(dy, 4), _batches(weights, 3))
    named = _named(_batches(spareIndices, 3), moved, dKey[-3])
    if actucalSeqLengthsQuery is not None and actucalSeqLengthsQuery.size > 1:
        # Of several sequences it is not said which of them the numbers count from.
        named |= moved.any()
    # Which number of dy belongs to a key is not said.
    moved, named = moved.reshape(dWeights[:-1]), named.reshape(dKey[:-2])
    where = {
        "dQuery": np.broadcast_to(moved[..., None, None], dQuery),
        "dKey": np.broadcast_to(named[..., None, None], dKey),
        "dWeights": np.broadcast_to(moved[..., None], dWeights),
    }
    return {name: f.undecided(f.lift(np.zeros(mask.shape)), where=mask) for name, mask in where.items()}


FORMULA = Operator.of(
    _backward,
    derivative="which number of dy belongs to a key is not said",
    raw=("query", "key", "dy", "weights"),
)
