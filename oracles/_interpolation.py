"""Linear interpolation in one or two dimensions, and its gradient: where points lie, and their neighbours' weights.

A point at position x has the weight max(0, 1 - |x - i|) for element i. That is the usual pair of weights, and
continuous in x: where rounding moves x across an element, the weights move as little as x does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F

Sizes: TypeAlias = "tuple[int, ...]"
Weights: TypeAlias = "tuple[Array, NDArray[np.int64]]"
"""(points, 3) weights, and the elements that they are for; -1 is none."""


def weights(f: F, points: int, size: int, scale: float, *, align_corners: bool) -> Weights:
    """The weights of `points` over `size` elements. A `scale` above 0 replaces points over elements.

    The nearest element and its two neighbours suffice while rounding moves a position by less than half an element. In
    single precision that holds for sizes up to 2^20: at most four roundings err by 2^-22 of the position.
    """
    places = np.arange(points, dtype=np.float64)
    if align_corners:
        over, under = float(size - 1), float(max(points - 1, 1))
    else:
        over, under = (1.0, scale) if scale > 0.0 else (float(size), float(points))
        places += 0.5
    shift = 0.0 if align_corners else 0.5
    near = np.clip(np.rint(places * (over / under) - shift), 0, size - 1).astype(np.int64)[:, None] + np.arange(-1, 2)
    position = f.lift(places) * (f.lift(over) / under)
    position = position if align_corners else position - shift
    distance = f.where(position > 0.0, position, 0.0).reshape(-1, 1) - near.astype(np.float64)
    weight = 1.0 - f.where(distance > 0.0, distance, -distance)
    # Behind the last element the document counts that element once more.
    return f.where(weight > 0.0, weight, 0.0), np.minimum(near, size - 1)


def plane_weights(
    f: F, points: Sizes, sizes: Sizes, scales: tuple[float, float], *, align_corners: bool
) -> tuple[Weights, Weights]:
    """Those along height and width, the last two of `points` and of `sizes`."""
    height, width = (
        weights(f, points[axis], sizes[axis], scale, align_corners=align_corners)
        for axis, scale in zip((-2, -1), scales, strict=True)
    )
    return height, width


def spread(f: F, values: Array, along: tuple[Weights, Weights], sizes: Sizes, form: str) -> Array:
    """Every value added to its neighbours by its weights; `sizes` ends in height and width, `form` is NCHW or NHWC."""
    (height, width), forth = along, _channels_first(values, form)
    steps = (
        lambda array: spread_line(f, array, width, sizes[-1]),
        lambda array: _turned(spread_line(f, _turned(array), height, sizes[-2])),
    )
    return _back(_in_turn(forth, steps, sizes), form)


def interpolated(f: F, values: Array, along: tuple[Weights, Weights], form: str) -> Array:
    """The points, each from its neighbours by its weights."""
    (height, width), forth = along, _channels_first(values, form)
    steps = (
        lambda array: interpolated_line(f, array, width),
        lambda array: _turned(interpolated_line(f, _turned(array), height)),
    )
    return _back(_in_turn(forth, steps, (len(height[1]), len(width[1]))), form)


def spread_line(f: F, values: Array, along: Weights, size: int) -> Array:
    """Every value added to its neighbours in the last dimension, of `size` elements, by its weights."""
    weight, near = along
    lead = values.shape[:-1]
    lines = np.arange(math.prod(lead)).reshape(*lead, 1, 1) * size
    cells = np.where(near < 0, -1, lines + near)
    total: Array = f.scatter_add(values.reshape(*values.shape, 1) * weight, cells, (*lead, size))
    return total


def interpolated_line(f: F, values: Array, along: Weights) -> Array:
    """The points along the last dimension, each from its neighbours by its weights."""
    weight, near = along
    lines = np.arange(math.prod(values.shape[:-1])).reshape(*values.shape[:-1], 1, 1) * values.shape[-1]
    total: Array = (f.take(values, np.where(near < 0, -1, lines + near)) * weight).sum(-1)
    return total


def _in_turn(plane: Array, steps: tuple[Callable[[Array], Array], Callable[[Array], Array]], sizes: Sizes) -> Array:
    """The plane after a step along its width and one along its height, to these sizes.

    The step that leaves less comes first: what one axis gains before the other shrinks could fill the memory.
    """
    (rows, columns), (height, width) = plane.shape[-2:], sizes[-2:]
    first, second = steps if rows * width <= height * columns else steps[::-1]
    return second(first(plane))


def _channels_first(array: Array, form: str) -> Array:
    return array.transpose(0, 3, 1, 2) if form == "NHWC" else array


def _back(array: Array, form: str) -> Array:
    return array.transpose(0, 2, 3, 1) if form == "NHWC" else array


def _turned(values: Array) -> Array:
    axes = (*range(values.ndim - 2), values.ndim - 1, values.ndim - 2)
    return values.transpose(*axes)
