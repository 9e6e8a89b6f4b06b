r"""aclnnEmbeddingDenseBackward: the gradient of an embedding table, summed over the occurrences of each row.

With D the last dimension of `grad`, G = `grad` as (N, D), and idx = `indices` as (N):

    out[w, d] = r[w] sum_{n: idx[n] = w, idx[n] != paddingIdx} G[n, d]

r = 1, or with `scaleGradByFreq` the reciprocal of the number c[w] of occurrences that are summed. The rows of
`paddingIdx` are skipped and not multiplied by zero: row `paddingIdx` of `out` is 0 whatever its gradients hold. A
`paddingIdx` outside [0, numWeights), such as a negative number held in the uint64_t, has no effect. Rows without
an occurrence are 0. Floating indices are integers held in floats, truncated towards zero.

The terms may be scaled, or their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Condensed, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._embedding_rows import row_numbers


def condensed(call: OracleInput, more: Mapping[str, NDArray[np.int64]]) -> Condensed | None:
    """The same sums in a table of the rows that indices name: those rows have new numbers, in their order."""
    rows, padding = call.integer("numWeights"), call.integer("paddingIdx")
    named = call.tensors["indices"]
    indices, inside = row_numbers(named.reshape(-1), rows)
    out = call.arguments["out"]
    if not inside or not isinstance(out, Tensor):
        return None
    # One row at least: a table without rows is another call.
    kept = np.unique(np.concatenate((indices, more.get("out", np.zeros(0, np.int64)), [0])))
    place = int(np.searchsorted(kept, padding)) if padding < rows and padding in kept else kept.size
    arguments = {
        **call.arguments,
        "numWeights": kept.size,
        "paddingIdx": place,
        "out": Tensor((kept.size, *out.shape[1:]), out.dtype, out.format),
    }
    tensors = {**call.tensors, "indices": np.searchsorted(kept, indices).reshape(named.shape)}
    question = msgspec.structs.replace(call, tensors=tensors, arguments=arguments)
    return Condensed(question=question, rows={"out": kept})


def _scaled_sum(
    f: F, grad: Array, indices: NDArray[Any], numWeights: int, paddingIdx: int, scaleGradByFreq: int
) -> Outputs:
    cells, counts, inside = _cells(indices, grad.shape[-1], numWeights, paddingIdx)
    out = f.scatter_add(grad.reshape(*cells.shape), cells, (numWeights, grad.shape[-1]))
    return {"out": f.undecided(out / counts[:, None] if scaleGradByFreq else out, where=not inside)}


def _sum_of_scaled(
    f: F, grad: Array, indices: NDArray[Any], numWeights: int, paddingIdx: int, scaleGradByFreq: int
) -> Outputs:
    cells, counts, inside = _cells(indices, grad.shape[-1], numWeights, paddingIdx)
    terms = grad.reshape(*cells.shape)
    if scaleGradByFreq and grad.size:
        terms = terms * (f.lift(1.0) / counts[np.maximum(cells, 0) // grad.shape[-1]])
    return {"out": f.undecided(f.scatter_add(terms, cells, (numWeights, grad.shape[-1])), where=not inside)}


def _cells(
    indices: NDArray[Any], width: int, rows: int, padding: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Where in `out` each element of `grad` is added, occurrences of each row, whether all indices name a row."""
    numbers, inside = row_numbers(indices.reshape(-1), rows)
    keep = (numbers >= 0) & (numbers < rows) & (numbers != padding)
    counts = np.bincount(numbers[keep], minlength=rows)
    return np.where(keep, numbers, -1)[:, None] * width + np.arange(width), np.maximum(counts, 1), inside


def _embedding(
    f: F, weight: Array, indices: NDArray[Any], paddingIdx: int, scaleGradByFreq: int, grad: tuple[int, ...]
) -> Outputs:
    """The lookup; what is skipped on the way back is a constant, and what is scaled then is scaled here."""
    cells, counts, _ = _cells(indices, weight.shape[1], weight.shape[0], paddingIdx)
    found = f.take(weight, cells)
    if scaleGradByFreq and found.size:
        found = found / counts[np.maximum(cells, 0) // weight.shape[1]]
    return {"y": found.reshape(*grad)}


FORMULA = Operator.of(
    _scaled_sum,
    _sum_of_scaled,
    any_form=True,
    raw=["indices"],
    derivative=Derivative(forward=_embedding, gradients={"grad": "y"}, wrt={"out": "weight"}),
)
