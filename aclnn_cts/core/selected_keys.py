"""Which keys a query sees that names them by number, where the last query sees the last key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Numbers = NDArray[Any]


def behind(rows: int, columns: int) -> Numbers:
    """[rows]: the last key that each query sees; below 0 for one that sees none."""
    return np.arange(rows) + (columns - rows)


def named(numbers: Numbers, columns: int) -> Flags:
    """[B, rows, columns]: where a query names a key, from numbers [B, rows, K]; others than those of keys name none."""
    batches, rows, _ = numbers.shape
    flags = np.zeros((batches, rows, columns + 1), np.bool_)
    places = np.where((numbers >= 0) & (numbers < columns), numbers, columns).astype(np.int64)
    np.put_along_axis(flags, places, values=True, axis=2)
    return flags[..., :columns]


def seen(numbers: Numbers, columns: int, *, all_keys: bool = False) -> Flags:
    """[B, rows, columns]: where a query sees a key that it names; `all_keys`: it sees whatever it names."""
    found = named(numbers, columns)
    return found if all_keys else found & (np.arange(columns) <= behind(numbers.shape[1], columns)[:, None])


def are_plain(numbers: Numbers, columns: int, *, all_keys: bool = False) -> bool:
    """Whether every query names some keys, each that it sees and once, and -1 in all other places."""
    found = seen(numbers, columns, all_keys=all_keys)
    return bool((found.sum(2) == (numbers != -1).sum(2)).all() and found.any(2).all())
