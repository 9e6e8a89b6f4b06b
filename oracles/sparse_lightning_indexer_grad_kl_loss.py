"""aclnnSparseLightningIndexerGradKLLoss: an indexer is trained towards the attention of the keys that queries name.

The index of a key is I = sum_g w_g relu(S_g), with S = q K^T of the indexer. p is the sum of the heads' attention
exp(scale (Q K^T + Qr Kr^T) - max) / sum over its own sum. The loss is the sum of p log(p / softmax(I)); its gradient by
I is softmax(I) - p.
"""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.selected_keys import are_plain, seen
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator

_Numbers = NDArray[Any]
_HIDDEN = -6.0e4
"""Below every index that is seen, and a number of FLOAT16."""


def _backward(
    f: F, query: Array, key: Array, queryIndex: Array, keyIndex: Array, weights: Array, sparseIndices: _Numbers,
    softmaxMax: Array, softmaxSum: Array, queryRope: Array, keyRope: Array, actualSeqLengthsQuery: Sequence[int],
    scaleValue: float, layout: str,
    dtypes: Mapping[str, str],
) -> Outputs:  # fmt: skip
    batches = 1 if layout == "TND" else query.shape[0]
    rows, columns = query.shape[-3], key.shape[-3]
    numbers = sparseIndices.reshape(batches, rows, -1)
    sees = seen(numbers, columns)
    p = _target(
        f,
        f.concat((query, queryRope), query.ndim - 1).reshape(batches, rows, query.shape[-2], -1),
        f.concat((key, keyRope), key.ndim - 1).reshape(batches, columns, -1),
        (softmaxMax.reshape(batches, rows, -1, 1), softmaxSum.reshape(batches, rows, -1, 1)),
        scaleValue,
        sees,
    )
    q = queryIndex.reshape(batches, rows, *queryIndex.shape[-2:])
    k = keyIndex.reshape(batches, columns, keyIndex.shape[-1])
    w = weights.reshape(batches, rows, -1, 1)
    scores, share = _indexed(f, q, k, w, sees)
    slope = f.where(sees, share - p, 0.0)
    of_weights = f.einsum("bts,btgs->btg", slope, f.where(scores > 0.0, scores, 0.0))
    of_scores = f.where(scores > 0.0, slope.reshape(batches, rows, 1, columns) * w, 0.0)
    # The matrix unit takes both operands in one format.
    of_scores = f.narrowed(of_scores, dtypes["query"])
    terms = f.where(sees, p * f.log(f.where(sees, p, 1.0) / f.where(sees, share, 1.0)), 0.0)
    found = {
        "dQueryIndex": f.einsum("btgs,bse->btge", of_scores, k).reshape(*queryIndex.shape),
        "dKeyKndex": f.einsum("btgs,btge->bse", of_scores, q).reshape(*keyIndex.shape),
        "dWeights": of_weights.reshape(*weights.shape),
        "loss": terms.sum().reshape(1),
    }
    # What several lengths count from, and rows that name what they do not see, are not said.
    unsaid = len(actualSeqLengthsQuery) != 1 or batches != 1 or not are_plain(numbers, columns)
    return {name: f.undecided(array, where=unsaid) for name, array in found.items()}


def _target(f: F, q: Array, k: Array, saved: tuple[Array, Array], scale: float, sees: NDArray[np.bool_]) -> Array:
    """[B, rows, columns]: the attention of all heads, whose sum is 1; statistics are [B, rows, N, 1]."""
    top, total = saved
    shares = f.exp(f.einsum("bthd,bsd->bths", q, k) * scale - top) / total
    summed = f.where(sees, shares.sum(2), 0.0)
    found: Array = summed / (summed.sum(2, keepdims=True) + ~sees.any(2, keepdims=True))
    return found


def _indexed(f: F, q: Array, k: Array, w: Array, sees: NDArray[np.bool_]) -> tuple[Array, Array]:
    """S, [B, rows, G, columns], and the softmax of the indices [B, rows, columns]."""
    scores = f.einsum("btge,bse->btgs", q, k)
    index = f.where(sees, (w * f.where(scores > 0.0, scores, 0.0)).sum(2), _HIDDEN)
    powers = f.where(sees, f.exp(index - index.max(2, keepdims=True)), 0.0)
    return scores, powers / (powers.sum(2, keepdims=True) + ~sees.any(2, keepdims=True))


FORMULA = Operator.of(
    _backward,
    derivative="no call that the document allows is small enough: a head has 512 elements, a row 2048 numbers",
)
