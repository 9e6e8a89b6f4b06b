"""Which row of the table an index names, in whatever dtype indices come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_numbers(indices: NDArray[Any], rows: int) -> tuple[NDArray[np.int64], bool]:
    """The indices as int64, and whether all of them name a row; what cannot be an integer becomes -1."""
    if indices.dtype.kind == "f":
        whole = np.trunc(indices)
        indices = np.where((whole >= 0) & (whole < rows), whole, -1.0)
    numbers = indices.astype(np.int64, copy=False)
    inside = not numbers.size or bool(np.minimum.reduce(numbers) >= 0 and np.maximum.reduce(numbers) < rows)
    return numbers, inside
