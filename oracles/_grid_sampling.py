"""Sampling at the points of a grid in two or three dimensions, and its gradients: where points lie and what they weigh.

`grid` has x, y (and z) in its last dimension: x is for the last dimension of what is sampled. Along each of them a
point has some taps, elements with a weight and a slope, the derivative of the weight by the position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F
from aclnn_cts.oracles._blocks import in_blocks

Numbers: TypeAlias = "NDArray[np.float64]"
Cells: TypeAlias = "NDArray[np.int64]"
Mask: TypeAlias = "NDArray[np.bool_]"
Shape: TypeAlias = "tuple[int, ...]"

LINEAR, NEAREST, CUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
_A = -0.75
_FARTHEST = 2.0**22
"""Positions beyond it say little about where a reflected point lies."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The modes of a sampling."""

    mode: int
    padding: int
    align_corners: bool


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps of all points along one dimension, each (..., taps)."""

    cells: Cells
    """-1 is none."""
    weight: Array
    slope: Array
    factor: Numbers
    """(...): by how much the position changes with the coordinate of the grid."""
    unclear: Mask
    """(...): where roundings, or the document, do not decide the slope."""
    lost: Mask
    """(...): where they do not decide the cells."""


def taps(f: F, grid: Array, stored: Numbers, axis: int, size: int, how: Sampling) -> Taps:
    """Those along the dimension of coordinate `axis`; `stored` has what the grid holds."""
    held = stored[..., axis].astype(np.float64)
    finite = np.isfinite(held)
    held = np.where(finite, held, 0.0)
    x = f.where(finite, _coordinate(grid, axis), 0.0)
    if how.align_corners:
        position, place = (x + 1.0) / 2.0 * float(size - 1), (held + 1.0) / 2.0 * (size - 1)
    else:
        position, place = ((x + 1.0) * float(size) - 1.0) / 2.0, ((held + 1.0) * size - 1.0) / 2.0
    slack = 2.0**-20 * (np.abs(place) + size + 1.0)
    scale = np.full(held.shape, (size - 1 if how.align_corners else size) / 2.0)
    lost = ~finite
    if how.mode == CUBIC:
        made = _cubic(f, position, place, size, how)
        outside = (place <= slack) | (place >= size - 1 - slack)
        # Of points beyond the edges one sentence has the factor that others have; the taps are padded one by one. Two
        # elements away from them all taps of a border are one element, as all of a size of 1 are: the slope is 0 either
        # way.
        unclear = outside & (how.padding != ZEROS and size > 1)
        if how.padding == BORDER:
            unclear &= (place > -2.0 - slack) & (place < size + 1.0 + slack)
        return Taps(*made, factor=scale, unclear=unclear | lost, lost=lost | (np.abs(place) > _FARTHEST))
    is_exact = _exact(held, size, align_corners=how.align_corners)
    position, place, turned, kink = _padded(f, position, place, size, how, slack)
    if how.padding == REFLECTION:
        lost |= np.abs(slack) > 2.0
    if how.mode == NEAREST:
        return Taps(*_nearest(f, place, size), factor=scale, unclear=lost, lost=lost)
    unclear = (np.abs(place - np.rint(place)) <= slack) & ~is_exact
    made = _linear(f, position, place, size)
    return Taps(*made, factor=scale * turned, unclear=unclear | kink | lost, lost=lost)


def _coordinate(grid: Array, axis: int) -> Array:
    place: tuple[int | slice, ...] = (*[slice(None)] * (grid.ndim - 1), axis)
    return grid[place]


def undecided_cells(stored: Numbers, sizes: Shape, how: Sampling, channels: int) -> Mask:
    """Elements of the sampled array that some point nearest to two of them may name."""
    batches = stored.shape[0]
    found = np.zeros((batches, channels, *sizes), dtype=bool)
    pairs, doubts = [], []
    for axis, size in enumerate(reversed(sizes)):
        held = np.nan_to_num(stored[..., axis].astype(np.float64), posinf=0.0, neginf=0.0)
        place = (held + 1.0) / 2.0 * (size - 1) if how.align_corners else ((held + 1.0) * size - 1.0) / 2.0
        slack = 2.0**-20 * (np.abs(place) + size + 1.0)
        place = _padded_place(place, size, how)[0]
        first = np.floor(place)
        doubt = np.abs(place - first - 0.5) <= slack
        nearest = np.rint(place)
        both = np.stack([np.where(doubt, first, nearest), np.where(doubt, first + 1, nearest)], -1)
        # A place far outside is none, and need not fit int64.
        pairs.append(np.clip(both, -1, size))
        doubts.append(doubt)
    rows = np.nonzero(np.logical_or.reduce(doubts))
    for chosen in np.ndindex(*[2] * len(sizes)):
        at = [pairs[axis][rows][:, chosen[axis]].astype(np.int64) for axis in reversed(range(len(sizes)))]
        inside = np.logical_and.reduce([(item >= 0) & (item < size) for item, size in zip(at, sizes, strict=True)])
        batch_first = np.moveaxis(found, 1, -1)
        named = (rows[0][inside], *[item[inside] for item in at])
        batch_first[named] = True
    return found


def sampled_cells(along: Sequence[Taps], shape: Shape) -> Cells:
    """(N, C, ..., taps of each dimension): the cells of an array of `shape`, channels in front; -1 is none."""
    dimensions = len(along)
    points = along[0].cells.ndim - 2
    lead = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *[1] * (points + dimensions))
    cells, none = lead, np.zeros((1,) * lead.ndim, dtype=bool)
    for number, item in enumerate(reversed(along)):
        tap = _spaced(item.cells, number, dimensions)
        cells, none = cells * shape[2 + number] + np.maximum(tap, 0), none | (tap < 0)
    return np.where(none, -1, cells)


def product(along: Sequence[Taps], slope: int | None = None) -> Array:
    """(N, 1, ..., taps of each dimension): the weights' product; along the dimension `slope` its slope instead."""
    dimensions = len(along)
    factors = []
    for number in range(dimensions):
        axis = dimensions - 1 - number
        item = along[axis].slope if axis == slope else along[axis].weight
        factors.append(item.reshape(*_spacing(item.shape, number, dimensions)))
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total


def _spacing(shape: Shape, number: int, dimensions: int) -> Shape:
    return (shape[0], 1, *shape[1:-1], *[1] * number, shape[-1], *[1] * (dimensions - 1 - number))


def _spaced(cells: Cells, number: int, dimensions: int) -> Cells:
    return cells.reshape(_spacing(cells.shape, number, dimensions))


def _exact(held: Numbers, size: int, *, align_corners: bool) -> Mask:
    """Where every step to a position has an exact result in single precision: there rounding decides nothing."""
    one = held + 1.0
    steps = [one, one / 2.0, one / 2.0 * (size - 1)] if align_corners else [one, one * size, one * size - 1.0]
    with np.errstate(over="ignore"):
        fits = [step.astype(np.float32).astype(np.float64) == step for step in steps]
    exact: Mask = np.logical_and.reduce([one - 1.0 == held, *fits])
    return exact


def _period(size: int, how: Sampling) -> tuple[float, float]:
    """Where positions are reflected first, and how far on again; all of one element with its centre lie at 0."""
    return (0.0, float(max(size - 1, 1))) if how.align_corners else (-0.5, float(size))


def _padded_place(place: Numbers, size: int, how: Sampling) -> tuple[Numbers, Numbers, Numbers]:
    """Where a position is padded to; the sign with which it moves, 0 where it does not; the kink next to it."""
    kink = np.full(place.shape, np.inf)
    turned = np.ones(place.shape)
    if how.padding == REFLECTION:
        low, span = _period(size, how)
        number = np.rint((place - low) / span)
        kink = low + number * span
        is_low = number % 2 == 0
        turned = np.where((place >= kink) == is_low, 1.0, -1.0)
        place = np.where(is_low, low + np.abs(place - kink), low + span - np.abs(place - kink))
    if how.padding != ZEROS:
        turned = np.where((place < 0.0) | (place > size - 1), 0.0, turned)
        place = np.clip(place, 0.0, size - 1)
    return place, turned, kink


def _padded(
    f: F, position: Array, place: Numbers, size: int, how: Sampling, slack: Numbers
) -> tuple[Array, Numbers, Numbers, Mask]:
    """Position and place after the padding, the sign of `_padded_place`, and where it is at a kink."""
    padded, turned, kink = _padded_place(place, size, how)
    at_kink = np.abs(place - kink) <= slack
    if how.padding == REFLECTION:
        low, span = _period(size, how)
        is_low = np.rint((place - low) / span) % 2 == 0
        away = position - kink
        away = f.where(away > 0.0, away, -away)
        position = f.where(is_low, away + low, (low + span) - away)
    if how.padding != ZEROS:
        position = f.where(position > 0.0, position, 0.0)
        position = f.where(position < float(size - 1), position, float(size - 1))
    # Beside the kinks of edges the points lie at the border, where they do not move.
    return position, padded, turned, at_kink & (how.align_corners and size > 1)


def _inside(cells: Numbers, size: int) -> Cells:
    kept = np.where((cells >= 0) & (cells < size), cells, -1.0)
    return kept.astype(np.int64)


def _linear(f: F, position: Array, place: Numbers, size: int) -> tuple[Cells, Array, Array]:
    """Three elements suffice while rounding moves a position by less than half of one."""
    near = np.rint(place)[..., None] + np.arange(-1.0, 2.0)
    difference = f.evaluated(position.reshape(*place.shape, 1) - near)
    weight = 1.0 - f.where(difference > 0.0, difference, -difference)
    first = np.floor(place)[..., None]
    slope = np.where(near == first, -1.0, np.where(near == first + 1.0, 1.0, 0.0))
    return _inside(near, size), f.evaluated(f.where(weight > 0.0, weight, 0.0)), f.lift(slope)


def _nearest(f: F, place: Numbers, size: int) -> tuple[Cells, Array, Array]:
    one = np.ones((*place.shape, 1))
    return _inside(np.rint(place)[..., None], size), f.lift(one), f.lift(0.0 * one)


def _cubic(f: F, position: Array, place: Numbers, size: int, how: Sampling) -> tuple[Cells, Array, Array]:
    """Five elements hold the four that count. The pieces of the cubic convolution meet with their derivatives."""
    near = np.rint(place)[..., None] + np.arange(-2.0, 3.0)
    difference = f.evaluated(position.reshape(*place.shape, 1) - near)
    far = np.abs(place[..., None] - near)
    is_right = place[..., None] > near
    distance = f.where(is_right, difference, -difference)
    square = distance * distance
    cube = square * distance
    inner = (_A + 2.0) * cube - (_A + 3.0) * square + 1.0
    outer = _A * cube - 5.0 * _A * square + 8.0 * _A * distance - 4.0 * _A
    weight = f.where(far > 2.0, 0.0, f.where(far > 1.0, outer, inner))
    rise = 3.0 * (_A + 2.0) * square - 2.0 * (_A + 3.0) * distance
    fall = 3.0 * _A * square - 10.0 * _A * distance + 8.0 * _A
    slope = f.where(far > 2.0, 0.0, f.where(far > 1.0, fall, rise))
    cells = near if how.padding == ZEROS else np.rint(_padded_place(np.clip(near, -_FARTHEST, _FARTHEST), size, how)[0])
    return _inside(cells, size), f.evaluated(weight), f.evaluated(f.where(is_right, slope, -slope))


def gradients(f: F, gradient: Array, values: Array, grid: Array, stored: Numbers, how: Sampling) -> Sequence[Array]:
    """The gradients of what is sampled, channels in front, and of the grid: some batches at a time."""

    def compute(place: slice) -> tuple[Sequence[Array], Sequence[Array]]:
        if place == slice(None):
            return _gradients(f, gradient, values, grid, stored, how), ()
        return _gradients(f, gradient[place], values[place], grid[place], stored[place], how), ()

    taps_of_each = 5 if how.mode == CUBIC else 3
    each = math.prod(gradient.shape[1:]) * taps_of_each ** (values.ndim - 2)
    return in_blocks(f, compute, count=values.shape[0], each=each, axis=0)[0]


def _gradients(f: F, gradient: Array, values: Array, grid: Array, stored: Numbers, how: Sampling) -> Sequence[Array]:
    shape = values.shape
    dimensions = len(shape) - 2
    along = [taps(f, grid, stored, axis, shape[-1 - axis], how) for axis in range(dimensions)]
    cells = sampled_cells(along, shape)
    each = gradient.reshape(*gradient.shape, *[1] * dimensions)
    spread = f.scatter_add(each * product(along), cells, shape)
    lost = np.logical_or.reduce([item.lost for item in along])
    of_batch = lost.any(axis=tuple(range(1, lost.ndim)), keepdims=True)
    unclear = np.broadcast_to(of_batch.reshape(shape[0], *[1] * (dimensions + 1)), shape)
    if how.mode == NEAREST:
        unclear = unclear | undecided_cells(stored, shape[2:], how, shape[1])
    moved = []
    weighted = f.take(values, cells) * each
    inner = tuple(range(-dimensions, 0))
    for axis, item in enumerate(along):
        slope = (weighted * product(along, axis)).sum(inner).sum(1) * item.factor
        moved.append(f.undecided(slope, where=item.unclear | lost))
    spread, turned = f.undecided(spread, where=unclear), f.stack(moved, -1)
    # A coordinate that is no number may lead anywhere in its batch.
    none = np.where(np.isfinite(stored).all(-1), 0.0, np.nan)
    of_all = none.sum(axis=tuple(range(1, none.ndim))).reshape(shape[0], *[1] * (dimensions + 1))
    return spread + of_all, turned + none[..., None]


def sampled(f: F, values: Array, grid: Array, stored: Numbers, how: Sampling) -> Array:
    """The forward pass; channels in front."""
    shape = values.shape
    dimensions = len(shape) - 2
    along = [taps(f, grid, stored, axis, shape[-1 - axis], how) for axis in range(dimensions)]
    total: Array = (f.take(values, sampled_cells(along, shape)) * product(along)).sum(tuple(range(-dimensions, 0)))
    return total
