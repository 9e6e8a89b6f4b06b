"""Nearest sampling and its gradient: which elements of the gradient an element of the input receives.

A dimension of `width` elements was sampled at `length` points. Element i receives the points from edge(i) on, up to the
next edge: edge(i) = ceil(i length / width - shift), cut to [0, length]. `shift` is 0 for nearest sampling, and 1/2 for
nearest-exact sampling.
Roundings move an edge where that number is near a whole one: maps in single and double precision, from either side,
are compared.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._padding import along
from aclnn_cts.oracles._windows import Numbers, Shape

Edges: TypeAlias = "NDArray[np.int64]"
"""width + 1 bounds: element i receives the points edge(i) to edge(i + 1) - 1."""
Mask: TypeAlias = "NDArray[np.bool_]"


def edges_exact(length: int, width: int, shift: float = 0.5) -> Edges:
    """The bounds of the exact rational map, in integers."""
    edges: Edges = -((int(2 * shift) * width - 2 * length * np.arange(width + 1, dtype=np.int64)) // (2 * width))
    return edges


def edges_range(scale: np.float32 | np.float64, length: int, width: int, shift: float = 0.5) -> Edges:
    """The bounds of the range map in the precision of `scale`, which is length / width or what stands for it."""
    steps = np.arange(width + 1, dtype=scale.dtype)
    steps *= scale
    steps -= scale.dtype.type(shift)
    # Cut before the cast: a huge scale goes beyond int64. The product 0 * inf of an infinite one counts as 0, which is
    # what fmax makes of its nan.
    return np.fmin(np.fmax(np.ceil(steps), 0.0), length).astype(np.int64)


def edges_forward(scale: np.float32 | np.float64, length: int, width: int, shift: float = 0.5) -> Edges:
    """The bounds by the forward map floor((j + shift) scale); `scale` is width / length or what stands for it."""
    # The double product of two floats is exact, so that this rounds once, as the float product does.
    steps = ((np.arange(length) + shift) * np.float64(scale)).astype(scale.dtype)
    sources = np.floor(steps).clip(0, width - 1).astype(np.int64)
    return np.searchsorted(sources, np.arange(width + 1)).astype(np.int64, copy=False)


def differing(edges: Edges, others: Iterable[Edges]) -> Mask | None:
    """Where one of the other maps gives an element another range; None where all agree everywhere."""
    sizes, unsettled = edges[1:] - edges[:-1], None
    for other in others:
        moved = other != edges
        if moved.any():
            differs = moved[1:] | moved[:-1]
            # Empty ranges are equal wherever they lie.
            differs &= (sizes > 0) | (other[1:] > other[:-1])
            unsettled = differs if unsettled is None else unsettled | differs
    return unsettled if unsettled is not None and unsettled.any() else None


def rounded_edges(length: int, width: int, scale: float, shift: float) -> Iterator[Edges]:
    """The bounds of both maps in single and in double precision, by the sizes and by a scale above 0."""
    for precision in (np.float32, np.float64):
        yield edges_range(precision(length) / precision(width), length, width, shift)
        yield edges_forward(precision(width) / precision(length), length, width, shift)
        if scale > 0.0:
            yield edges_range(precision(scale), length, width, shift)
            yield edges_forward(precision(1.0 / scale), length, width, shift)


def nearest_gradient(
    f: F, gradient: Array, sizes: Sequence[int], scales: Sequence[float], shift: float, last: int = -1
) -> Array:
    """The gradient of dimensions of such sizes, the last of which is `last`; open where a rounding decides."""
    axes = range(last - len(sizes) + 1, last + 1)
    lines = [
        (_line(gradient.shape[axis], size, max(scale, 0.0), shift), axis)
        for axis, size, scale in zip(axes, sizes, scales, strict=True)
    ]
    # What shrinks most comes first: what one axis gains before another shrinks could fill the memory.
    for (table, _), axis in sorted(lines, key=lambda line: line[0][0].shape[0] / gradient.shape[line[1]]):
        gradient = along(f, gradient, table, axis)
    unsettled: Mask = np.zeros(gradient.shape, bool)
    for (_, mask), axis in lines:
        if mask is not None:
            unsettled |= mask.reshape(-1, *(1,) * (-1 - axis))
    return f.undecided(gradient, where=unsettled) if unsettled.any() else gradient


def nearest_samples(f: F, values: Array, points: Sequence[int], shift: float, last: int = -1) -> Array:
    """The points of dimensions, the last of which is `last`, by the exact map."""
    for axis, length in zip(range(last - len(points) + 1, last + 1), points, strict=True):
        edges = edges_exact(length, values.shape[axis], shift)
        sources = np.searchsorted(edges, np.arange(length), side="right") - 1
        values = along(f, values, sources[:, None], axis)
    return values


def volume_operator(shift: float) -> Operator:
    """The backward pass of nearest sampling in three dimensions, behind the channels or in front of them."""

    def backward(
        f: F,
        gradOut: Array,
        gradInput: Shape,
        formats: Mapping[str, str],
        *,
        scalesD: float,
        scalesH: float,
        scalesW: float,
    ) -> Outputs:
        last = -2 if formats["gradOut"] == "NDHWC" else -1
        sizes = gradInput[1:4] if last == -2 else gradInput[2:]
        return {"gradInput": nearest_gradient(f, gradOut, sizes, (scalesD, scalesH, scalesW), shift, last)}

    def forward(f: F, self: Array, outputSize: Shape, formats: Mapping[str, str]) -> Outputs:
        return {"y": nearest_samples(f, self, outputSize, shift, -2 if formats["gradOut"] == "NDHWC" else -1)}

    derivative = Derivative(forward=forward, gradients={"gradOut": "y"}, wrt={"gradInput": "self"})
    return Operator.of(backward, derivative=derivative)


@functools.lru_cache(maxsize=256)
def _line(length: int, width: int, scale: float, shift: float) -> tuple[Numbers, Mask | None]:
    """(width, m) points that each element receives, -1 where there are fewer; and the elements that are open."""
    edges = edges_exact(length, width, shift)
    places = edges[:-1, None] + np.arange(max(int((edges[1:] - edges[:-1]).max()), 1))
    with np.errstate(all="ignore"):
        unsettled = differing(edges, rounded_edges(length, width, scale, shift))
    return np.where(places < edges[1:, None], places, -1), unsettled
