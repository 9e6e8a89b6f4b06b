"""Padding of the last dimensions by copies of what lies inside, and its gradient.

`replicated`, `mirrored` and `wrapped` say of which elements; a padding is below the size of its dimension.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._windows import Numbers, Shape, gathered

Rule: TypeAlias = Callable[[int, int, int], Numbers]
"""`replicated`, `mirrored` or `wrapped`."""


def replicated(size: int, before: int, padded: int) -> Numbers:
    """(padded,): for each place of a dimension padded by its ends, the element of `size` that it is a copy of."""
    found: Numbers = np.clip(np.arange(padded) - before, 0, size - 1)
    return found


def mirrored(size: int, before: int, padded: int) -> Numbers:
    """The same where the padding continues the dimension backwards, its end element not repeated."""
    found: Numbers = size - 1 - np.abs(size - 1 - np.abs(np.arange(padded) - before))
    return found


def wrapped(size: int, before: int, padded: int) -> Numbers:
    """The same where the padding continues the dimension at its other end."""
    found: Numbers = (np.arange(padded) - before) % size
    return found


def copies(sources: Numbers, low: int, high: int) -> Numbers:
    """(high - low, m): the places that are copies of each element from low on; -1 where there are fewer than m."""
    order = np.argsort(sources, kind="stable")
    order = order[slice(*np.searchsorted(sources[order], (low, high)))]
    counts = np.bincount(sources[order] - low, minlength=high - low)
    found = np.full((high - low, max(int(counts.max(initial=0)), 1)), -1)
    ranks = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    found[sources[order] - low, ranks] = order
    return found


def sum_of_copies(f: F, values: Array, sources: Numbers, size: int, axis: int) -> Array:
    """Along an axis, counted from the end: for each of `size` elements the sum of the values at its copies.

    Ends that replication copies often are summed apart: one table of all would be as wide as the longest padding.
    """
    # Padding that mirrors or wraps a dimension is shorter than it, so that no element has more than three copies.
    often = np.bincount(sources, minlength=size) > 3
    bounds = [0, *np.flatnonzero(np.diff(often)) + 1, size]
    parts = [along(f, values, copies(sources, low, high), axis) for low, high in itertools.pairwise(bounds)]
    found: Array = f.concat(parts, axis)
    return found


def along(f: F, values: Array, table: Numbers, axis: int) -> Array:
    """`gathered` along an axis, counted from the end."""
    order = [place for place in range(values.ndim) if place != values.ndim + axis]
    moved = gathered(f, values.transpose(*order, values.ndim + axis), table)
    back = [*order, values.ndim + axis]
    return moved.transpose(*(back.index(place) for place in range(values.ndim)))


def padding_gradient(f: F, gradient: Array, padding: Shape, shape: Shape, rule: Rule) -> Array:
    """The gradient of an array of `shape` that was padded by a rule: two numbers for each dimension, the last first."""
    for number in range(len(padding) // 2):
        axis = -1 - number
        sources = rule(shape[axis], padding[2 * number], gradient.shape[axis])
        gradient = sum_of_copies(f, gradient, sources, shape[axis], axis)
    return gradient


def padded(f: F, values: Array, padding: Shape, shape: Shape, rule: Rule) -> Array:
    """The array padded to `shape`."""
    for number in range(len(padding) // 2):
        axis = -1 - number
        sources = rule(values.shape[axis], padding[2 * number], shape[axis])
        values = along(f, values, sources[:, None], axis)
    return values


def padding_operator(rule: Rule) -> Operator:
    """The backward pass of padding all dimensions that `padding` has numbers for by a rule."""

    def backward(f: F, gradOutput: Array, padding: Shape, gradInput: Shape) -> Outputs:
        return {"gradInput": padding_gradient(f, gradOutput, padding, gradInput, rule)}

    def forward(f: F, self: Array, padding: Shape, gradOutput: Shape) -> Outputs:
        return {"gradOutput": padded(f, self, padding, gradOutput, rule)}

    gradients, wrt = {"gradOutput": "gradOutput"}, {"gradInput": "self"}
    return Operator.of(backward, derivative=Derivative(forward=forward, gradients=gradients, wrt=wrt))
