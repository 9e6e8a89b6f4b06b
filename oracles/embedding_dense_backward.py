r"""aclnnEmbeddingDenseBackward: the gradient of an embedding table, summed over the occurrences of each row.

With D the last dimension of `grad`, G = `grad` as (N, D), and idx = `indices` as (N):

    out[w, d] = r[w] sum_{n: idx[n] = w, idx[n] != paddingIdx} G[n, d]

r = 1, or with `scaleGradByFreq` the reciprocal of the number c[w] of occurrences that are summed. The rows of
`paddingIdx` are skipped and not multiplied by zero: row `paddingIdx` of `out` is 0 whatever its gradients hold. A
`paddingIdx` outside [0, numWeights), such as a negative number held in the uint64_t, has no effect. Rows without
an occurrence are 0. Floating indices are integers held in floats, truncated towards zero.

Error terms, with M[w, d] the sum of the absolute values and gamma_k = k u / (1 - k u) (Higham, *Accuracy and
Stability of Numerical Algorithms*, 2nd ed.): c terms summed in any order take c - 1 additions and are off by at most
gamma_{c-1} M (section 4.2, (4.4)). The scale adds the rounding of the reciprocal and that of the product
(Lemma 3.3), gamma_{c+1} M / c, whether the terms are scaled or their sum. A power of two has an exact reciprocal
and product, so that no rounding is added there.

Underflow: the loads and the additions (where the model flushes), and with the scale a product for each term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.expected import ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput, with_arguments, with_values
from aclnn_cts.oracles import _laws
from aclnn_cts.oracles._exact import sum_of_products
from aclnn_cts.oracles._single_precision import Float32, single
from aclnn_cts.oracles._special_values import finite_part

__all__ = ["LAWS", "benchmark", "exact", "expected"]


def expected(call: OracleInput) -> Expected:
    """The gradient `out`, (numWeights, D).

    An index outside [0, numWeights) is beyond what the document promises anything for, and a device may write
    anywhere for it: then all of `out` is open.
    """
    with np.errstate(all="ignore"):
        return {"out": _table(call)}


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
    indices, _ = _rows(call.tensors["indices"].reshape(-1), rows)
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
    indices, inside = _rows(call.tensors["indices"].reshape(-1), rows)
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
    underflows = np.maximum(2 * counts - 1, 0)
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


def _rows(indices: NDArray[Any], rows: int) -> tuple[NDArray[np.int64], bool]:
    """The indices as int64, and whether all of them name a row; what cannot be an integer becomes -1."""
    if indices.dtype.kind == "f":
        whole = np.trunc(indices)
        indices = np.where((whole >= 0) & (whole < rows), whole, -1.0)
    numbers = indices.astype(np.int64, copy=False)
    inside = not numbers.size or bool(np.minimum.reduce(numbers) >= 0 and np.maximum.reduce(numbers) < rows)
    return numbers, inside


def _sums(cells: NDArray[np.int64], grad: Float64, shape: tuple[int, int]) -> Float64:
    """The sum of the gradients that fall into each cell of the table."""
    sums = np.bincount(cells, weights=grad.reshape(-1), minlength=shape[0] * shape[1])
    # Of nothing it returns integers, weights or not.
    return sums.astype(np.float64, copy=False).reshape(shape)


def _flat(base: LawInput) -> tuple[NDArray[Any], Float64, int, int]:
    """The indices (N), the gradients (N, D), numWeights and paddingIdx."""
    indices = base.tensors["indices"].reshape(-1)
    grad = base.tensors["grad"]
    rows, padding = base.case.arguments["numWeights"], base.case.arguments["paddingIdx"]
    if not isinstance(rows, int) or not isinstance(padding, int):
        raise TypeError(f"numWeights is {rows!r} and paddingIdx {padding!r}, not integers")
    return indices, grad.reshape(indices.size, grad.shape[-1]), rows, padding


def _with_rows(base: LawInput, indices: NDArray[Any], grad: Float64) -> Case:
    """The base case with other indices and gradients, in the tensors' own shapes where they have as many elements."""
    shapes = [base.tensors[name].shape for name in ("indices", "grad")]
    if indices.size == base.tensors["indices"].size:
        indices, grad = indices.reshape(shapes[0]), grad.reshape(shapes[1])
    return with_arguments(
        base.case,
        {
            "indices": with_values(base.tensor("indices"), indices),
            "grad": with_values(base.tensor("grad"), grad),
        },
    )


def _forward(base: LawInput, output: str, v: Float64) -> tuple[float, float]:
    """<E v, grad> with the lookup E: row n is v[idx[n]], scaled with `scaleGradByFreq`, and 0 for the padding row."""
    indices, grad, rows, padding = _flat(base)
    numbers, _ = _rows(indices, rows)
    looked = v[numbers]
    looked[numbers == padding] = 0.0
    if base.case.arguments["scaleGradByFreq"]:
        looked = looked / np.bincount(numbers, minlength=rows)[numbers][:, None]
    products = (grad * looked).reshape(-1)
    return math.fsum(products.tolist()), float(np.abs(products).sum())


def _split() -> Law:
    """F over all rows of grad = f over the first + f over the others, within e1 + e2 + e3.

    Without `scaleGradByFreq`, which looks at all of them. Source: the formula is a sum over the rows.
    """

    def parts(base: LawInput) -> tuple[Case, Case]:
        indices, grad, _, _ = _flat(base)
        at = 1 + base.parameters["at"] % (indices.size - 1)
        return _with_rows(base, indices[:at], grad[:at]), _with_rows(base, indices[at:], grad[at:])

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        whole, first, second = (call.outputs["out"] for call in done)
        terms = ((1.0, first), (1.0, second))
        yield _laws.combined("out", terms, whole, "the sum of two parts of the batch, and the whole")

    return _laws.split_law(
        calls=lambda base: (base.case, *parts(base)),
        check=check,
        applies=lambda case: not case.arguments["scaleGradByFreq"] and _several(case),
    )


def _several(case: Case) -> bool:
    return case.nbytes > 0 and any(name == "indices" and tensor.numel > 1 for name, tensor in case.tensors())


def _index_order() -> Law:
    """Rows of grad with their indices, in another order: one exact value.

    Source: the formula is a sum over all rows with one index.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, _, _ = _flat(base)
        places = _laws.shuffled(indices.size, base.parameters["key"])
        return base.case, _with_rows(base, indices[places], grad[places])

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        one, other = (call.outputs["out"] for call in done)
        yield _laws.same("out", one, other, "the rows of grad with their indices in one order, and in another")

    return Law(
        id="index-order",
        en="the order of equal indices does not matter",
        zh="相同索引的先后顺序不影响结果",
        applies=_several,
        draw=_laws.key,
        calls=calls,
        check=check,
    )


def _padding() -> Law:
    """Row paddingIdx is exactly 0, also where all of its gradients are nan or inf, and no other row sees them.

    The other rows have one exact value on both sides. Source: the document skips the rows of paddingIdx.
    """

    def padded(base: LawInput) -> int:
        indices, _, rows, _ = _flat(base)
        numbers, _ = _rows(indices, rows)
        return int(numbers[base.parameters["at"] % numbers.size])

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, rows, _ = _flat(base)
        padding = padded(base)
        grad = grad.copy()
        grad[_rows(indices, rows)[0] == padding] = (math.nan, math.inf, -math.inf)[base.parameters["special"] % 3]
        changes = {"paddingIdx": padding}
        return with_arguments(base.case, changes), with_arguments(_with_rows(base, indices, grad), changes)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        plain, special = (call.outputs["out"] for call in done)
        padding = padded(base)
        yield LawCheck(
            output="out",
            left=special.got[padding],
            right=np.zeros(special.got.shape[1]),
            bound=np.zeros(special.got.shape[1]),
            relation=f"row {padding}, which is paddingIdx, with gradients that are not finite, and 0",
            place=f"the column of row {padding}",
        )
        yield _laws.same("out", plain, special, "finite gradients in the rows of paddingIdx, and nan or inf there")

    return Law(
        id="padding",
        en="the padding row is zero even where its gradients are nan, and no other row sees them",
        zh="即使填充行的梯度为 nan,填充行结果仍为零,其它行不受影响",
        applies=lambda case: any(name == "indices" and tensor.numel > 0 for name, tensor in case.tensors()),
        draw=lambda choose: {"at": choose(0, 2**16), "special": choose(0, 2)},
        calls=calls,
        check=check,
    )


def _unused() -> Law:
    """Rows that no index names are exactly 0; one of those that the base names is taken away beforehand.

    Source: the formula's sum over no terms.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, rows, _ = _flat(base)
        numbers, inside = _rows(indices, rows)
        gone = numbers[base.parameters["at"] % numbers.size]
        other = numbers[numbers != gone]
        if not inside or (not other.size and rows < 2):
            return ()
        # Where the base names one row alone, that one or the first takes its place: every dtype holds 0 and 1.
        instead = int(other[0]) if other.size else int(gone == 0)
        return (_with_rows(base, np.where(numbers == gone, instead, numbers), grad),)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        output = done[0].outputs["out"]
        _, _, rows, _ = _flat(base)
        used = np.zeros((rows, 1), np.bool_)
        used[_rows(done[0].tensors["indices"].reshape(-1), rows)[0]] = True
        yield LawCheck(
            output="out",
            left=output.got,
            right=np.zeros(output.got.shape),
            bound=np.broadcast_to(np.where(used, np.inf, 0.0), output.got.shape),
            relation="rows that no index names, and 0",
        )

    return Law(
        id="unused",
        en="rows that no index names are zero",
        zh="没有索引指向的行为零",
        applies=lambda case: any(name == "indices" and tensor.numel > 0 for name, tensor in case.tensors()),
        draw=lambda choose: {"at": choose(0, 2**16)},
        calls=calls,
        check=check,
    )


_COLUMNS = _laws.Axis(name="columns", tensors={"grad": -1, "out": -1})

LAWS: tuple[Law, ...] = (
    _laws.adjoint(_forward),
    _laws.linear("grad"),
    _laws.zero("grad"),
    _laws.scaling("grad"),
    _split(),
    _laws.permute((_COLUMNS,)),
    _laws.layout(),
    _laws.repeat("grad"),
    _padding(),
    _unused(),
    _index_order(),
)
