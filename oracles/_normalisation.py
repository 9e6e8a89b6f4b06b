"""What normalisations have in common: the statistics of an input, and the gradient that flows back through them."""

from __future__ import annotations

from aclnn_cts.formula.array import Array, Axes, F


def centred(gradient: Array, normal: Array, axes: Axes) -> Array:
    """The gradient less its average and less its share along the normalised input; averages over these axes."""
    along = (gradient * normal).mean(axes, keepdims=True)
    return gradient - gradient.mean(axes, keepdims=True) - normal * along


def statistics(f: F, x: Array, axes: Axes, epsilon: float) -> tuple[Array, Array]:
    """The mean over these axes, and the reciprocal of the root of the variance plus epsilon."""
    average = x.mean(axes, keepdims=True)
    return average, 1.0 / f.sqrt(((x - average) * (x - average)).mean(axes, keepdims=True) + epsilon)
