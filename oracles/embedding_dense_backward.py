r"""aclnnEmbeddingDenseBackward: the gradient of an embedding table, summed over the occurrences of each row.

With D the last dimension of `grad`, G = `grad` as (N, D), and idx = `indices` as (N):

    out[w, d] = r[w] sum_{n: idx[n] = w, idx[n] != paddingIdx} G[n, d]

r = 1, or with `scaleGradByFreq` the reciprocal of the number c[w] of occurrences that are summed. The rows of
`paddingIdx` are skipped and not multiplied by zero: row `paddingIdx` of `out` is 0 whatever its gradients hold. A
`paddingIdx` outside [0, numWeights), such as a negative number held in the uint64_t, has no effect. Rows without
an occurrence are 0. Floating indices are integers held in floats, truncated towards zero.

Error terms, with M[w, d] the sum of the absolute values and gamma_k = k u / (1 - k u) (Higham, *Accuracy and
Stability of Numerical Algorithms*, 2nd ed.): c terms summed in any order take c - 1 additions and are off by at most
gamma_{c-1} M (chapter 4). The scale adds the rounding of the reciprocal and that of the product,
gamma_{c+1} M / c, whether the terms are scaled or their sum. A power of two has an exact reciprocal
and product, so that no rounding is added there.

Underflow: the loads and the additions (where the model flushes), and with the scale a product for each term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Condensed, ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._embedding_rows import row_numbers
from aclnn_cts.oracles._exact import sum_of_products
from aclnn_cts.oracles._single_precision import Float32, single
from aclnn_cts.oracles._special_values import finite_part


def expected(call: OracleInput) -> Expected:
    """The gradient `out`, (numWeights, D).

    An index outside [0, numWeights) is beyond what the document promises anything for, and a device may write
    anywhere for it: then all of `out` is open.
    """
    with np.errstate(all="ignore"):
        return {"out": _table(call)}


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


def exact(call: OracleInput, output: str, index: tuple[int, ...]) -> Fraction:
    """One element in rational arithmetic, occurrence by occurrence; gradients must be finite."""
    row, column = index
    if row == call.integer("paddingIdx"):
        return Fraction(0)
    indices = call.tensors["indices"].reshape(-1).tolist()
    grad = call.tensors["grad"]
    rows = grad.reshape(len(indices), grad.shape[-1])
    places = [place for place, value in enumerate(indices) if int(value) == row]
    total = sum_of_products(rows[places, column].tolist())
    return total / len(places) if call.integer("scaleGradByFreq") and places else total


def benchmark(call: OracleInput) -> dict[str, Float32]:
    """The gradient in FLOAT: occurrences added in their order, then the row divided by their number."""
    rows, padding = call.integer("numWeights"), call.integer("paddingIdx")
    indices, _ = row_numbers(call.tensors["indices"].reshape(-1), rows)
    grad = single(call.tensors["grad"])
    grad = grad.reshape(indices.size, grad.shape[-1])
    keep = (indices >= 0) & (indices < rows) & (indices != padding)
    table = np.zeros((rows, grad.shape[-1]), np.float32)
    with np.errstate(all="ignore"):
        np.add.at(table, indices[keep], grad[keep])
        if call.integer("scaleGradByFreq"):
            counts = np.bincount(indices[keep], minlength=rows)[:, None]
            table /= np.maximum(counts, 1).astype(np.float32)
    return {"out": table}


def _table(call: OracleInput) -> ExpectedOutput:
    rows = call.integer("numWeights")
    indices, inside = row_numbers(call.tensors["indices"].reshape(-1), rows)
    grad: Float64 = call.tensors["grad"]
    width = grad.shape[-1]
    grad = grad.reshape(indices.size, width)
    padding = call.integer("paddingIdx")
    if not inside:
        keep = (indices >= 0) & (indices < rows) & (indices != padding)
        grad, indices = grad[keep], indices[keep]
    elif 0 <= padding < rows:
        keep = indices != padding
        grad, indices = grad[keep], indices[keep]
    shape = (rows, width)
    cells = (indices[:, None] * width + np.arange(width)).reshape(-1)
    counts = np.bincount(indices, minlength=rows)[:, None]
    value = _sums(cells, grad, shape)
    magnitude = _sums(cells, np.abs(grad), shape)
    partial = magnitude
    if not math.isfinite(np.add.reduce(magnitude, axis=None)):
        # Sums of inf and nan come out as in every order of summation; the magnitudes speak of the finite terms.
        magnitude = _sums(cells, np.abs(finite_part(grad)), shape)
        partial = np.where(np.isnan(value), 0.0, magnitude)
    roundings = np.maximum(counts - 1, 0)
    underflows = counts + roundings
    lattice = call.lattices.get("grad")
    if call.integer("scaleGradByFreq"):
        divisors = np.maximum(counts, 1)
        inexact = (divisors & (divisors - 1)) != 0
        value /= divisors
        magnitude = magnitude / divisors
        roundings = roundings + 2 * inexact
        underflows = underflows + counts
        if lattice is not None:
            lattice = None if inexact.any() else lattice / float(divisors.max(initial=1))
    return ExpectedOutput(
        value=value,
        terms=(ErrorTerm(kind="compute", count=roundings, magnitude=magnitude),),
        underflows=underflows,
        partial=partial,
        lattice=lattice,
        open=None if inside else np.ones(shape, np.bool_),
    )


def _sums(cells: NDArray[np.int64], grad: Float64, shape: tuple[int, int]) -> Float64:
    """The sum of the gradients that fall into each cell of the table."""
    sums = np.bincount(cells, weights=grad.reshape(-1), minlength=shape[0] * shape[1])
    # Of nothing it returns integers, weights or not.
    return sums.astype(np.float64, copy=False).reshape(shape)


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
    raw=["indices"],
    derivative=Derivative(forward=_embedding, gradients={"grad": "y"}, wrt={"out": "weight"}),
)
