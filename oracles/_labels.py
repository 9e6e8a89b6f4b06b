"""Labels of a classification: which element of a table of scores each of them names."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Cells

NONE, MEAN = 0, 1
"""Reductions of a loss."""

Labels: TypeAlias = "NDArray[Any]"
Shape: TypeAlias = "tuple[int, ...]"


def named(target: Labels, ignored: int, scores: Shape) -> tuple[Cells, Cells]:
    """The class of each row, and its cell in a table of scores (rows, classes); -1 for a row that is ignored.

    Of images, whose scores are (images, classes, height, width): the class of each place.
    """
    labels = target.reshape(-1).astype(np.int64)
    classes, size = scores[:2][-1], math.prod(scores[2:])
    image, place = np.divmod(np.arange(labels.size), max(size, 1))
    cells = (image * classes + labels) * size + place
    return np.where(labels == ignored, -1, labels), np.where(labels == ignored, -1, cells)
