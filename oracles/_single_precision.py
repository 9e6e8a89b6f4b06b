"""The plainest arithmetic in FLOAT: what `benchmark` functions are made of.

A benchmark is a second implementation in the same precision, against which the ecosystem's dual rules hold a device:
the operator's mathematics as a plain loop would compute it, every operation rounded to FLOAT, sums from the first term
to the last. Nothing is fused, blocked or widened.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Float32: TypeAlias = NDArray[np.float32]


def single(array: NDArray[Any]) -> Float32:
    """The numbers in FLOAT."""
    return array.astype(np.float32)


def forward_sum(terms: Float32, axis: int) -> Float32:
    """The sum along an axis, which stays with length 1, each partial sum rounded to FLOAT.

    `np.add.reduce` would sum in pairs along the last axis; partial sums that are asked for can only be made in order.
    """
    if terms.shape[axis] == 0:
        return np.add.reduce(terms, axis=axis, keepdims=True)
    partial: Float32 = np.add.accumulate(terms, axis=axis)
    return np.take(partial, [-1], axis=axis)
