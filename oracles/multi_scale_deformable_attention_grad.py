"""aclnnMultiScaleDeformableAttentionGrad: gradients of points amid maps of one element, and those that are 0.

Maps are levels. A point samples `value` at its location in the map of its level, for each head. An element of the
output is the sum of what its points sample, times their weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape

Held: TypeAlias = "NDArray[np.float64]"
Mask: TypeAlias = "NDArray[np.bool_]"

_MIDDLE = 0.5
"""Of a map: locations are shares of its height and width."""


def _cells(levelStartIndex: Numbers, shape: Shape) -> Numbers:
    """(batch, levels, heads, channels): the place in `value` of the first element of each level; -1 for none."""
    batch, _, heads, channels = np.ogrid[tuple(slice(size) for size in shape)]
    start = levelStartIndex.astype(np.int64).reshape(1, -1, 1, 1)
    places = ((batch * shape[1] + start) * shape[2] + heads) * shape[3] + channels
    return np.where((start >= 0) & (start < shape[1]), places, -1)


def _is_key_of(spatialShape: Numbers, levelStartIndex: Numbers, keys: int) -> Mask:
    """(levels, keys): whether a key belongs to a level."""
    start = levelStartIndex.astype(np.int64)[:, None]
    place = np.arange(keys)
    found: Mask = (place >= start) & (place < start + spatialShape.astype(np.int64).prod(1)[:, None])
    return found


def _head(stored: Mapping[str, Held], shape: Shape) -> Held:
    """(batch, queries, heads, channels): the gradients of the output by heads."""
    return stored["gradOutput"].reshape(shape[0], -1, *shape[2:])


def _moves(stored: Mapping[str, Held], shape: Shape) -> tuple[Mask, Mask, Mask]:
    """(batch, queries, heads, levels, points): where gradients, weights and values of a point's head are not all 0."""
    gradient = (_head(stored, shape) != 0).any(-1)[..., None, None]
    values = (stored["value"] != 0).any((1, 3))[:, None, :, None, None]
    return gradient, stored["attnWeight"] != 0, values


def _may_overflow(stored: Mapping[str, Held], shape: Shape, side: int) -> Mask:
    """(batch, queries, heads, levels, points): where some of a product's factors may exceed FLOAT before one of 0."""
    gradient = np.abs(_head(stored, shape)).max(-1, initial=1.0)[..., None, None]
    values = np.abs(stored["value"]).max((1, 3), initial=1.0)[:, None, :, None, None]
    most = np.maximum(np.abs(stored["attnWeight"]), 1.0) * gradient * values * (side * shape[3])
    found: Mask = most >= np.finfo(np.float32).max
    return found


def _unknown(stored: Mapping[str, Held], shape: Shape) -> tuple[Held, Held]:
    """Nan where an operand is no number: (batch, queries, heads, levels, points), and of any point (batch, heads)."""
    finite = {name: np.isfinite(array) for name, array in stored.items()}
    gradient: Mask = np.logical_and.reduce(np.isfinite(_head(stored, shape)), -1, keepdims=True)
    values: Mask = np.logical_and.reduce(finite["value"], (1, 3), keepdims=True)
    points = np.logical_and.reduce(finite["location"], -1) & finite["attnWeight"] & gradient[..., None]
    each = points & values[..., None]
    return np.where(each, 0.0, np.nan), np.where(points.all((1, 3, 4)), 0.0, np.nan)


def _by_point(weights: Array) -> Array:
    """(batch, queries * points, heads, levels)."""
    batch, _, heads, levels, _ = weights.shape
    return weights.transpose(0, 1, 4, 2, 3).reshape(batch, -1, heads, levels)


def _at_each_point(gradient: Array, points: int) -> Array:
    """(batch, queries * points, heads, channels)."""
    batch, queries, *rest = gradient.shape
    repeated = gradient.reshape(batch, queries, 1, *rest).broadcast_to((batch, queries, points, *rest))
    return repeated.reshape(batch, -1, *rest)


def _backward(
    f: F, value: Array, spatialShape: Numbers, levelStartIndex: Numbers, attnWeight: Array, gradOutput: Array,
    stored: Mapping[str, Held], gradLocation: Shape,
) -> Outputs:  # fmt: skip
    shape, cells = value.shape, _cells(levelStartIndex, value.shape)
    gradient = gradOutput.reshape(shape[0], -1, *shape[2:])
    sampled = f.take(value.reshape(-1), cells)
    taken = f.einsum("bxhl,bxhc->blhc", _by_point(attnWeight), _at_each_point(gradient, attnWeight.shape[-1]))
    of_values = f.scatter_add(taken, cells, shape)
    of_points = f.einsum("bqhc,blhc->bqhl", gradient, sampled)
    of_weights = of_points.reshape(*of_points.shape, 1).broadcast_to(attnWeight.shape)
    # Of other points it is not said what they sample. A factor of 0 leaves nothing of it.
    is_single = (spatialShape == 1).all(1)[:, None]
    known = is_single & (stored["location"] == _MIDDLE).all(-1)
    moved, weighs, holds = _moves(stored, shape)
    doubtful = (~known & moved & weighs).any((1, 4))
    members = _is_key_of(spatialShape, levelStartIndex, shape[1])
    unclear = np.einsum("bhl,lk->bkh", doubtful.astype(np.float64), members.astype(np.float64))[..., None] > 0
    none, lost = _unknown(stored, shape)
    overflows = _may_overflow(stored, shape, int(spatialShape.max(initial=1)))
    unsaid = (moved & weighs & holds) | overflows
    unmoved = f.undecided(f.lift(np.zeros(gradLocation)), where=np.broadcast_to(unsaid[..., None], gradLocation))
    of_weights = f.undecided(of_weights, where=~known & ((moved & holds) | overflows))
    return {
        "gradValue": f.undecided(of_values, where=np.broadcast_to(unclear, shape)) + lost[:, None, :, None],
        "gradLocation": unmoved + none[..., None],
        "gradAttnWeight": of_weights + np.where(known, 0.0, none),
    }


def _forward(
    f: F, value: Array, levelStartIndex: Numbers, location: Array, attnWeight: Array, gradOutput: Shape
) -> Outputs:
    """Of the points that are known; `location` moves none of them."""
    sampled = f.take(value.reshape(-1), _cells(levelStartIndex, value.shape))
    y = f.einsum("bqhl,blhc->bqhc", attnWeight.sum(-1), sampled).reshape(*gradOutput)
    return {"y": y + 0.0 * location.sum()}


_WRT = {"gradValue": "value", "gradLocation": "location", "gradAttnWeight": "attnWeight"}
DERIVATIVE = Derivative(forward=_forward, gradients={"gradOutput": "y"}, wrt=_WRT)
FORMULA = Operator.of(_backward, derivative=DERIVATIVE)
