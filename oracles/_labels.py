"""Labels of a classification: which element of a table of scores each of them names."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Cells

NONE, MEAN = 0, 1
"""Reductions of a loss."""

Labels: TypeAlias = "NDArray[Any]"
Shape: TypeAlias = "tuple[int, ...]"


def named(target: Labels, ignored: int, scores: Shape) -> tuple[Cells, Cells]:
    """The class of each row, and its cell in a table of scores (rows, classes); -1 for a row that is ignored."""
    labels = target.reshape(-1).astype(np.int64)
    cells = np.arange(labels.size) * scores[-1] + labels
    return np.where(labels == ignored, -1, labels), np.where(labels == ignored, -1, cells)


def named_places(target: Labels, ignored: int, scores: Shape) -> tuple[Cells, Cells]:
    """The same of places of images, whose scores are (images, classes, height, width)."""
    labels = target.reshape(-1).astype(np.int64)
    size = scores[2] * scores[3]
    image, place = np.divmod(np.arange(labels.size), max(size, 1))
    cells = (image * scores[1] + labels) * size + place
    return np.where(labels == ignored, -1, labels), np.where(labels == ignored, -1, cells)
