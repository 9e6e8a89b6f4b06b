"""Tokens that are routed to experts: rows of a table by their places, and rows that are put there."""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, F
from aclnn_cts.oracles._windows import Numbers, Shape


def _cells(places: Numbers, shape: Shape) -> Numbers:
    """(n, columns): the cells of the rows of an array of `shape` at these places; -1 for a place outside."""
    rows, columns = shape
    places = places.astype(np.int64)
    inside = (places >= 0) & (places < rows)
    found: Numbers = np.where(inside[:, None], places[:, None] * columns + np.arange(columns), -1)
    return found


def rows_at(f: F, table: Array, places: Numbers) -> Array:
    """(n, columns): the rows of a table (rows, columns) at n places; zeros for a place outside."""
    found: Array = f.take(table.reshape(-1), _cells(places, table.shape))
    return found


def rows_put(f: F, rows: Array, places: Numbers, count: int) -> Array:
    """(count, columns): each of n rows (n, columns) added at its place; those at places outside are left out."""
    shape = (count, rows.shape[1])
    found: Array = f.scatter_add(rows, _cells(places, shape), shape)
    return found


def repeated(f: F, rows: Array, times: int) -> Array:
    """(rows * times, columns): each row so many times, one after the other."""
    return rows_at(f, rows, np.repeat(np.arange(rows.shape[0]), times))


def added_up(table: Array, times: int) -> Array:
    """(rows, columns): each the sum of so many rows of a table (rows * times, columns), one after the other."""
    return table.reshape(table.shape[0] // times, times, table.shape[1]).sum(1)


def copy_rows(f: F, rows: Array, weights: Array | None) -> tuple[Array, Array]:
    """(rows * K, columns): each row for each of its K copies, and the same times weights (rows, K); None: K is 1."""
    copies = repeated(f, rows, 1 if weights is None else weights.shape[1])
    return copies, copies if weights is None else copies * weights.reshape(-1, 1)


def sum_copies(copies: Array, weights: Array | None) -> Array:
    """(rows, columns): the sums of the K copies of each row, times their weights (rows, K); None: K is 1."""
    return copies if weights is None else added_up(copies * weights.reshape(-1, 1), weights.shape[1])


def _groups(ends: Numbers, rows: int) -> Numbers:
    """(rows,): the group of each row; group j ends in front of row ends[j]."""
    found: Numbers = np.searchsorted(ends, np.arange(rows), side="right")
    return found


def group_sums(f: F, rows: Array, ends: Numbers | None) -> Array:
    """(groups, columns): the sum of the rows of each group, which end at `ends`; None: of (groups, rows, columns)."""
    return rows.sum(1) if ends is None else rows_put(f, rows, _groups(ends, rows.shape[0]), ends.size)


def with_group_rows(f: F, table: Array, shape: Shape, ends: Numbers | None) -> Array:
    """For each row of an array of `shape`, that of its group in a table (groups, columns)."""
    if ends is None:
        return table.reshape(table.shape[0], 1, table.shape[1]).broadcast_to(shape)
    return rows_at(f, table, _groups(ends, shape[0]))


def of_range(places: Numbers, bounds: Shape | None) -> Numbers:
    """The places in a table of the rows from the first bound on; beyond it, those before or behind the bounds."""
    if bounds is None:
        return places
    low, high = bounds
    found: Numbers = np.where((places >= low) & (places < high), places.astype(np.int64) - low, -1)
    return found


def named_rows(places: Numbers, count: int) -> Numbers:
    """(count,): which of the copies is put into each row; -1 for none."""
    found: Numbers = np.full(count, -1)
    inside = (places >= 0) & (places < count)
    found[places[inside]] = np.flatnonzero(inside)
    return found
