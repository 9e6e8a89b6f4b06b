"""Gradients through broadcasting: an element that was repeated gets the sum over its repetitions."""

from __future__ import annotations

from aclnn_cts.formula.array import Array
from aclnn_cts.oracles._windows import Shape


def repeated_axes(shape: Shape, whole: Shape) -> tuple[int, ...]:
    """The axes of `whole` along which an array of `shape` is repeated."""
    ahead = len(whole) - len(shape)
    return *range(ahead), *(ahead + place for place, size in enumerate(shape) if size != whole[ahead + place])


def summed_to(gradient: Array, shape: Shape) -> Array:
    """The gradient of an array of `shape` that was broadcast to the shape of `gradient`."""
    axes = repeated_axes(shape, gradient.shape)
    return gradient.sum(axes).reshape(*shape) if axes else gradient
