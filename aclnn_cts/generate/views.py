"""Views that are not contiguous: transposed, with gaps, and offset into a larger storage."""

from __future__ import annotations

from typing import TypeAlias

from aclnn_cts.core.case import contiguous_strides

View: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...]]
"""Strides, offset and storage shape."""

VIEWS = ("contiguous", "transposed", "gaps", "offset", "stepped", "transposed with gaps and offset")


def lay_out(shape: tuple[int, ...], view: int) -> View | None:
    """The view of the given number for a shape; None where it is contiguous (number 0, or no dimension to vary)."""
    rank = len(shape)
    if view == 0 or 0 in shape or rank == 0:
        return None
    order = tuple(range(rank))
    if view in (1, 5) and rank > 1:
        order = (*order[:-2], order[-1], order[-2]) if rank > 2 else (1, 0)
    step = 2 if view == 4 else 1
    padding = 3 if view in (2, 5) else 0
    lead = 1 if view in (3, 5) else 0
    storage = tuple(
        shape[axis] * (step if place == rank - 1 else 1)
        + (padding if place == rank - 1 else 0)
        + (lead if place == 0 else 0)
        for place, axis in enumerate(order)
    )
    by_place = contiguous_strides(storage)
    strides = [0] * rank
    for place, axis in enumerate(order):
        strides[axis] = by_place[place] * (step if place == rank - 1 else 1)
    offset = lead * by_place[0] + (1 if view == 5 else 0)
    return tuple(strides), offset, storage
