"""Laws of an embedding table's gradient: sums over rows of grad, and what order, numbers and padding do to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Case
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import Law, LawCall, LawCheck, LawInput, with_arguments, with_values
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.oracles._embedding_rows import row_numbers
from aclnn_cts.oracles._law_axes import combined, key, same, shuffled, split_law, taken


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


def forward(base: LawInput, output: str, v: Float64) -> tuple[float, float]:
    """<E v, grad> with the lookup E: row n is v[idx[n]], scaled with `scaleGradByFreq`, and 0 for the padding row."""
    indices, grad, rows, padding = _flat(base)
    numbers, _ = row_numbers(indices, rows)
    looked = v[numbers]
    looked[numbers == padding] = 0.0
    if base.case.arguments["scaleGradByFreq"]:
        looked = looked / np.bincount(numbers, minlength=rows)[numbers][:, None]
    products = (grad * looked).reshape(-1)
    return math.fsum(products.tolist()), float(np.abs(products).sum())


def split() -> Law:
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
        yield combined("out", terms, whole, "the sum of two parts of the batch, and the whole")

    return split_law(
        calls=lambda base: (base.case, *parts(base)),
        check=check,
        applies=lambda case: not case.arguments["scaleGradByFreq"] and _several(case),
    )


def _has_indices(case: Case, least: int = 1) -> bool:
    return any(name == "indices" and tensor.numel >= least for name, tensor in case.tensors())


def _several(case: Case) -> bool:
    return case.nbytes > 0 and _has_indices(case, 2)


def index_order() -> Law:
    """Rows of grad with their indices, in another order: one exact value.

    Source: the formula is a sum over all rows with one index.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, _, _ = _flat(base)
        places = shuffled(indices.size, base.parameters["key"])
        return base.case, _with_rows(base, indices[places], grad[places])

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        one, other = (call.outputs["out"] for call in done)
        yield same("out", one, other, "the rows of grad with their indices in one order, and in another")

    return Law(
        id="index-order",
        en="the order of equal indices does not matter",
        zh="相同索引的先后顺序不影响结果",
        applies=_several,
        draw=key,
        calls=calls,
        check=check,
    )


def padding() -> Law:
    """Row paddingIdx is exactly 0, also where all of its gradients are nan or inf, and no other row sees them.

    The other rows have one exact value on both sides. Source: the document skips the rows of paddingIdx.
    """

    def padded(base: LawInput) -> int:
        indices, _, rows, _ = _flat(base)
        numbers, _ = row_numbers(indices, rows)
        return int(numbers[base.parameters["at"] % numbers.size])

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, rows, _ = _flat(base)
        padding = padded(base)
        grad = grad.copy()
        grad[row_numbers(indices, rows)[0] == padding] = (math.nan, math.inf, -math.inf)[base.parameters["special"] % 3]
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
        yield same("out", plain, special, "finite gradients in the rows of paddingIdx, and nan or inf there")

    return Law(
        id="padding",
        en="the padding row is zero even where its gradients are nan, and no other row sees them",
        zh="即使填充行的梯度为 nan，填充行结果仍为零，其它行不受影响",
        applies=_has_indices,
        draw=lambda choose: {"at": choose(0, 2**16), "special": choose(0, 2)},
        calls=calls,
        check=check,
    )


def unused() -> Law:
    """Rows that no index names are exactly 0; one of those that the base names is taken away beforehand.

    Source: the formula's sum over no terms.
    """

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, rows, _ = _flat(base)
        numbers, inside = row_numbers(indices, rows)
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
        used[row_numbers(done[0].tensors["indices"].reshape(-1), rows)[0]] = True
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
        applies=_has_indices,
        draw=lambda choose: {"at": choose(0, 2**16)},
        calls=calls,
        check=check,
    )


def relabel() -> Law:
    """Other numbers for the table's rows, in the indices and in paddingIdx: the same rows of out under those numbers.

    Numbers are exchanged among those that the indices' dtype holds exactly. Both sides have one exact value. Source:
    the formula names no row by its number but paddingIdx.
    """

    def numbers_of(base: LawInput) -> NDArray[np.int64]:
        """Which number each row gets."""
        _, _, rows, _ = _flat(base)
        numbers = np.arange(rows, dtype=np.int64)
        known = min(rows, _held(base.tensor("indices").dtype))
        moved = shuffled(known, base.parameters["key"])
        # A shuffle that changes nothing would leave nothing to see.
        numbers[:known] = np.roll(numbers[:known], 1) if (moved == np.arange(known)).all() else moved
        return numbers

    def calls(base: LawInput) -> tuple[Case, ...]:
        indices, grad, rows, padding = _flat(base)
        places, inside = row_numbers(indices, rows)
        if not inside:
            return ()
        numbers = numbers_of(base)
        changes = {"paddingIdx": int(numbers[padding])} if 0 <= padding < rows else {}
        return base.case, with_arguments(_with_rows(base, numbers[places], grad), changes)

    def check(base: LawInput, done: Sequence[LawCall]) -> Iterator[LawCheck]:
        one, other = (call.outputs["out"] for call in done)
        back = taken(other, numbers_of(base), 0)
        yield same("out", one, back, "rows of the table, and the same rows under other numbers")

    return Law(
        id="relabel",
        en="rows of the table under other numbers get the same gradients",
        zh="给表的各行重新编号，各行梯度不变",
        applies=lambda case: _several_rows(case) and _has_indices(case),
        draw=key,
        calls=calls,
        check=check,
    )


def _several_rows(case: Case) -> bool:
    rows = case.arguments["numWeights"]
    return isinstance(rows, int) and rows > 1


def _held(dtype: str) -> int:
    """How many integers from 0 on an indices' dtype holds exactly."""
    if dtype == "BOOL":
        return 2
    if dtype in BINARY_FORMATS:
        significand: int = BINARY_FORMATS[dtype].significand
        return int(2**significand) + 1
    return int(np.iinfo(numpy_dtype(dtype)).max) + 1
