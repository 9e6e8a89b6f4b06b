"""aclnnSparseFlashAttentionGrad: attention backwards; all heads share one key, and a query sees the keys that it names.

S is scale (Q K^T + Qr Kr^T), P is exp(S - max) / sum of the keys that are seen. Then dV = P^T dO, dS = P (dO V^T -
sum(dO O)), and the gradients of Q and Qr are scale dS times K and Kr, those of K and Kr scale dS^T times Q and Qr.
"""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.selected_keys import are_plain, seen
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.oracles._windows import Shape

_Numbers = NDArray[Any]


def _with_rope(f: F, array: Array, rope: Array | None) -> Array:
    return array if rope is None else f.concat((array, rope), array.ndim - 1)


def _backward(
    f: F, query: Array, key: Array, value: Array, sparseIndices: _Numbers, dOut: Array, out: Array,
    softmaxMax: Array, softmaxSum: Array, actualSeqLengthsQueryOptional: _Numbers | None,
    queryRopeOptional: Array | None, keyRopeOptional: Array | None, scaleValue: float, sparseBlockSize: int,
    layoutOptional: str, sparseMode: int, dQueryRopeOutOptional: Shape | None, dKeyRopeOutOptional: Shape | None,
    dtypes: Mapping[str, str],
) -> Outputs:  # fmt: skip
    batches = 1 if layoutOptional == "TND" else query.shape[0]
    rows, columns, heads, width = query.shape[-3], key.shape[-3], *query.shape[-2:]
    numbers, all_keys = sparseIndices.reshape(batches, rows, -1), sparseMode == 0
    sees = seen(numbers, columns, all_keys=all_keys)[:, :, None]
    q = _with_rope(f, query, queryRopeOptional).reshape(batches, rows, heads, -1)
    k = _with_rope(f, key, keyRopeOptional).reshape(batches, columns, -1)
    v = value.reshape(batches, columns, -1)
    gradient, result = (array.reshape(batches, rows, heads, -1) for array in (dOut, out))
    top, total = (array.reshape(batches, rows, heads, 1) for array in (softmaxMax, softmaxSum))
    scores = f.einsum("bthd,bsd->bths", q, k) * scaleValue
    p = f.where(sees, f.exp(scores - top) / total, 0.0)
    slope = f.einsum("bthd,bsd->bths", gradient, v) - (gradient * result).sum(3, keepdims=True)
    # The matrix unit takes both operands in one format.
    ds, weight = (f.narrowed(array, dtypes["query"]) for array in (p * slope, p))
    of_query = f.einsum("bths,bsd->bthd", ds, k) * scaleValue
    of_key = f.einsum("bths,bthd->bsd", ds, q) * scaleValue
    found = {
        "dQueryOut": of_query[:, :, :, :width].reshape(*query.shape),
        "dKeyOut": of_key[:, :, :width].reshape(*key.shape),
        "dValueOut": f.einsum("bths,bthd->bsd", weight, gradient).reshape(*value.shape),
    }
    for name, shape, whole in (
        ("dQueryRopeOutOptional", dQueryRopeOutOptional, of_query.reshape(-1, k.shape[2])),
        ("dKeyRopeOutOptional", dKeyRopeOutOptional, of_key.reshape(-1, k.shape[2])),
    ):
        if shape is None:
            continue
        if k.shape[2] == width:
            # Without an embedding, an output that is given holds anything.
            found[name] = f.undecided(f.lift(np.zeros(shape)), where=True)
        else:
            found[name] = whole[:, width:].reshape(*shape)
    # What a number counts in larger blocks or several sequences, and rows that name what they do not see, are not said.
    several = actualSeqLengthsQueryOptional is not None and actualSeqLengthsQueryOptional.size != 1
    unsaid = sparseBlockSize != 1 or several or not are_plain(numbers, columns, all_keys=all_keys)
    return {name: f.undecided(array, where=unsaid) for name, array in found.items()}


FORMULA = Operator.of(
    _backward,
    derivative="no call that the document allows is small enough: a head has 512 elements, a row 2048 numbers",
)
