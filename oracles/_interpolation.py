"""Linear interpolation in one to three dimensions, and its gradient: where points lie, and their neighbours' weights.

A point at position x has the weight max(0, 1 - |x - i|) for element i. That is the usual pair of weights, and
continuous in x: where rounding moves x across an element, the weights move as little as x does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F

Sizes: TypeAlias = "tuple[int, ...]"
Weights: TypeAlias = "tuple[Array, NDArray[np.int64]]"
"""(points, 3) weights, and the elements that they are for; -1 is none."""
Step: TypeAlias = "Callable[[F, Array, Weights, int], Array]"
"""What is done along the last dimension, which gets that size."""


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


def _differences(
    f: F, points: int, size: int, scale: float, *, align_corners: bool, around: tuple[int, ...]
) -> tuple[Array, NDArray[np.int64]]:
    """(points, taps): each position minus the elements `around` its nearest one, and these, also beyond edges."""
    places = np.arange(points, dtype=np.float64)
    if align_corners:
        over, under, shift = float(size - 1), float(max(points - 1, 1)), 0.0
    else:
        (over, under), shift = (1.0, scale) if scale > 0.0 else (float(size), float(points)), 0.5
    near = np.rint((places + shift) * (over / under) - shift).astype(np.int64)[:, None] + np.array(around)
    step = f.lift(over) / under
    # Whole numbers times half a step: a step that is a power of two leaves no error.
    position = f.lift(2.0 * places + 1.0) * (step * 0.5) - shift if shift else f.lift(places) * step
    return position.reshape(-1, 1) - near.astype(np.float64), near


def normalised_weights(f: F, points: int, size: int, scale: float, *, align_corners: bool) -> Weights:
    """The weights of `points` over existing elements, divided by their sum: no edge is repeated.

    As `weights`, for a step of at most 1; every point then has an element within less than 1.
    """
    difference, near = _differences(f, points, size, scale, align_corners=align_corners, around=(-1, 0, 1))
    exists = (near >= 0) & (near < size)
    weight = 1.0 - f.where(difference > 0.0, difference, -difference)
    inside = f.where(exists, f.where(weight > 0.0, weight, 0.0), 0.0)
    return inside / inside.sum(1).reshape(-1, 1), np.where(exists, near, -1)


def cubic_weights(f: F, points: int, size: int, scale: float, *, align_corners: bool, a: float) -> Weights:
    """Those of the cubic convolution with the coefficient a, which reaches over two elements; edges are repeated.

    Five elements suffice, as three do for `weights`.
    """
    around = (-1, -2, 1, 2, 0)  # the nearest last: a point on it has no other
    found, near = _differences(f, points, size, scale, align_corners=align_corners, around=around)
    difference = f.evaluated(found)
    distance = f.where(difference > 0.0, difference, -difference)
    square = distance * distance
    cube = square * distance
    inner = (a + 2.0) * cube - (a + 3.0) * square + 1.0
    outer = a * cube - 5.0 * a * square + 8.0 * a * distance - 4.0 * a
    weight = f.where(distance > 1.0, f.where(distance < 2.0, outer, 0.0), inner)
    return f.evaluated(weight), np.clip(near, 0, size - 1)


def weights_along(
    f: F, points: Sizes, sizes: Sizes, scales: tuple[float, ...], *, align_corners: bool
) -> tuple[Weights, ...]:
    """Those along each of the last dimensions of `points` and of `sizes`, as many as there are scales."""
    return tuple(
        weights(f, points[axis], sizes[axis], scales[axis], align_corners=align_corners)
        for axis in range(-len(scales), 0)
    )


def spread(f: F, values: Array, along: tuple[Weights, ...], sizes: Sizes, form: str) -> Array:
    """Every value added to its neighbours by its weights. `sizes` ends in the dimensions; `form` tells their places."""
    return _in_turn(f, spread_line, values, along, sizes, form)


def interpolated(f: F, values: Array, along: tuple[Weights, ...], form: str) -> Array:
    """The points, each from its neighbours by its weights."""
    return _in_turn(f, _interpolated_to, values, along, tuple(len(near) for _, near in along), form)


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


def _interpolated_to(f: F, values: Array, along: Weights, _points: int) -> Array:
    return interpolated_line(f, values, along)


def _in_turn(f: F, step: Step, values: Array, along: tuple[Weights, ...], sizes: Sizes, form: str) -> Array:
    """The values after a step along each dimension, to these sizes; behind the channels, or in front of them.

    The step that leaves least comes first: what one axis gains before another shrinks could fill the memory.
    """
    dimensions = len(along)
    first, last = (0, values.ndim - 1), tuple(range(1, values.ndim - 1))
    forth, back = (*first, *last), (0, *range(2, values.ndim), 1)
    values = values.transpose(*forth) if form.endswith("C") else values
    growth = {axis: Fraction(sizes[axis], max(values.shape[axis], 1)) for axis in range(-1, -dimensions - 1, -1)}
    for axis in sorted(growth, key=lambda axis: growth[axis]):
        values = _swapped(step(f, _swapped(values, axis), along[axis], sizes[axis]), axis)
    return values.transpose(*back) if form.endswith("C") else values


def _swapped(values: Array, axis: int) -> Array:
    """With this axis last, or back."""
    axes = list(range(values.ndim))
    axes[axis], axes[-1] = axes[-1], axes[axis]
    return values.transpose(*axes) if axis != -1 else values
