"""Formulas of large calls, some places of a dimension at a time, so that their intermediates take little memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from aclnn_cts.formula.array import Array, F

Compute: TypeAlias = Callable[[slice], tuple[Sequence[Array], Sequence[Array]]]
"""Of places of a dimension: results that have these places along an axis, and results that are sums over them."""

_MOST = 1 << 17
"""Elements of an intermediate: bounds hold some seventy arrays of a block, a megabyte each."""


def in_blocks(f: F, compute: Compute, *, count: int, each: int, axis: int) -> tuple[Sequence[Array], Sequence[Array]]:
    """What a formula gives of `count` places, each with so many elements of an intermediate.

    Sums over blocks are bounded as sums over all places are: in any order.
    """
    step = max(_MOST // max(each, 1), 1)
    if step >= count:
        return compute(slice(None))
    along: list[Sequence[Array]] = []
    sums: Sequence[Array] = ()
    for start in range(0, count, step):
        own, added = ([f.released(array) for array in arrays] for arrays in compute(slice(start, start + step)))
        along.append(own)
        sums = [f.released(before + more) for before, more in zip(sums, added, strict=True)] if sums else added
    pieces = [list(arrays) for arrays in zip(*along, strict=True)]
    along.clear()  # the pieces of one result go before those of the next are joined
    return [f.released(f.concat(pieces.pop(0), axis)) for _ in range(len(pieces))], sums
