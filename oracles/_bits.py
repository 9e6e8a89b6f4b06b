"""Masks of bits, eight in a byte."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.oracles._windows import Shape


def unpacked(mask: NDArray[Any], shape: Shape) -> NDArray[np.uint8]:
    """A bit, 0 or 1, for each element of an array of this shape; the lowest of a byte comes first."""
    return np.unpackbits(mask.astype(np.uint8).reshape(-1), count=math.prod(shape), bitorder="little").reshape(shape)
