"""aclnnRoiAlignV2Backward: the gradients of a map of one element; of larger maps those that are 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape

Held: TypeAlias = "NDArray[np.float64]"
Mask: TypeAlias = "NDArray[np.bool_]"

_NEIGHBOURS = 4
"""Elements between which a point lies; of one element they are all the same."""
_MOST_POINTS = 16
"""Along a side of a pooled element: each is a term of the sum, and of many the bound says little."""


def _images(boxes: Held, count: int) -> Numbers:
    """(boxes,): the image of each box; -1 where there is none."""
    index = np.floor(boxes[:, 0])
    return np.where((index >= 0) & (index < count), index, -1).astype(np.int64)


def _pooled_as_they_are(boxes: Held, shape: Shape, scale: float, ratio: int) -> Mask:
    """(boxes,): whether a region has nothing but the only element of its map, beginning at its corner."""
    if shape[2:] != (1, 1) or not 0 < ratio <= _MOST_POINTS:
        return np.zeros(len(boxes), bool)
    corners = boxes[:, 1:] * scale
    found: Mask = (corners[:, :2] == 0).all(1) & (corners[:, 2:] >= 0).all(1) & (corners[:, 2:] <= 1).all(1)
    return found


def _cells(boxes: Held, shape: Shape) -> Numbers:
    """(boxes, channels): the plane of each channel of a box's image."""
    images = _images(boxes, shape[0])[:, None]
    return np.where(images < 0, -1, images * shape[1] + np.arange(shape[1]))


def _weight(f: F, ratio: int) -> Array:
    """What a pooled element takes of all neighbours of its points. It is 1 but for roundings.

    Fractions of a distance, their product and the number of points round once each.
    """
    terms = _NEIGHBOURS * min(max(ratio, 1), _MOST_POINTS) ** 2
    each: Array = f.lift(np.ones(terms)) / 3.0 * 3.0 / float(terms)
    return each.sum()


def _backward(
    f: F, gradOutput: Array, boxes: Held, stored: Mapping[str, Held], inputShape: Shape, *, spatialScale: float,
    samplingRatio: int,
) -> Outputs:  # fmt: skip
    planes = inputShape[:2]
    count, channels, *pooled = gradOutput.shape
    weights = _weight(f, samplingRatio).broadcast_to((math.prod(pooled),))
    shares = f.einsum("kcp,p->kc", gradOutput.reshape(count, channels, -1), weights)
    total = f.scatter_add(shares, _cells(boxes, inputShape), planes)
    # How a region of a larger map shares out what it receives is not said; 0 is 0 however it does.
    unclear = np.zeros(planes, bool)
    doubtful = ~_pooled_as_they_are(boxes, inputShape, spatialScale, samplingRatio) & (_images(boxes, planes[0]) >= 0)
    received = (stored["gradOutput"][doubtful] != 0).any((2, 3))
    np.logical_or.at(unclear, _images(boxes, planes[0])[doubtful], received)
    known = f.undecided(total, where=unclear)
    return {"gradInput": known.reshape(*planes, 1, 1).broadcast_to(inputShape)}


def _forward(f: F, self: Array, boxes: Held, gradOutput: Shape) -> Outputs:
    pooled = f.take(self.sum((2, 3)).reshape(-1), _cells(boxes, self.shape))
    return {"y": pooled.reshape(*pooled.shape, 1, 1).broadcast_to(gradOutput)}


DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt={"gradInput": "self"})
FORMULA = Operator.of(_backward, derivative=DERIVATIVE, raw=("boxes",))
