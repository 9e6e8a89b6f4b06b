"""What normalisations have in common: the statistics of groups of an input, and the gradients back through them.

With h = (input - mean) rstd and w = gradient weight, the gradient of the input is rstd (w - avg(w) - h avg(w h)) in
each group. Over all elements that share a weight, its gradient sums up gradient h, and that of its bias gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aclnn_cts.formula.array import Array, F
from aclnn_cts.formula.definition import Derivative, Formula, Operator
from aclnn_cts.oracles._blocks import in_blocks

Sizes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """How an input falls into groups: its shape as that (one size may be -1), and what its dimensions are for."""

    shape: Sizes
    within: Sizes
    """The dimensions within a group: elements along them have one mean."""
    across: Sizes
    """The dimensions along which elements have one weight."""

    @staticmethod
    def of_rows(sizes: Sizes, weights: Sizes) -> Groups:
        """Rows of the last dimensions, which a weight for each of their elements has."""
        return Groups((math.prod(sizes[: len(sizes) - len(weights)]), math.prod(weights)), within=(1,), across=(0,))

    @staticmethod
    def of_channels(sizes: Sizes, groups: int) -> Groups:
        """So many groups of the channels of each sample of (N, C, ...); a weight belongs to a channel."""
        samples, channels, *rest = sizes
        return Groups((samples, groups, channels // groups, math.prod(rest)), within=(2, 3), across=(0, 3))

    def grouped(self, array: Array) -> Array:
        """An array like the input, by groups."""
        return array.reshape(*self.shape)

    def normal(self, f: F, x: Array, mean: Array, rstd: Array) -> Array:
        """The normalised input by groups, from its statistics."""
        centred: Array = f.as_written(self.grouped(x) - self.statistic(mean))
        return centred * self.statistic(rstd)

    def statistic(self, array: Array) -> Array:
        """An array with an element for each group, beside the input."""
        return self._beside(array, self.within)

    def weight(self, array: Array) -> Array:
        """An array with an element for each weight, beside the input."""
        return self._beside(array, self.across)

    def _beside(self, array: Array, without: Sizes) -> Array:
        return array.reshape(*(1 if axis in without else size for axis, size in enumerate(self.shape)))


def by_channel(x: Array, array: Array) -> Array:
    """An array of one element a channel, along the second axis of x."""
    return array.reshape(-1, *(1,) * (x.ndim - 2))


def centred(gradient: Array, normal: Array, axes: Sizes) -> Array:
    """The gradient less its average and less its share along the normalised input; averages over these axes."""
    along = (gradient * normal).mean(axes, keepdims=True)
    return gradient - gradient.mean(axes, keepdims=True) - normal * along


def statistics(f: F, x: Array, axes: Sizes, epsilon: float) -> tuple[Array, Array]:
    """The mean over these axes, and the reciprocal of the root of the variance plus epsilon."""
    average = x.mean(axes, keepdims=True)
    return average, 1.0 / f.sqrt(((x - average) * (x - average)).mean(axes, keepdims=True) + epsilon)


def gradients(
    f: F, groups: Groups, gradient: Array, x: Array, mean: Array, rstd: Array, weight: Array | None,
    shapes: Mapping[str, Sizes | None],
) -> dict[str, Array]:  # fmt: skip
    """The gradients of input, weight and bias under these names, in these shapes where there is such an output."""
    whole = groups.grouped(gradient), groups.grouped(x), groups.statistic(mean), groups.statistic(rstd)

    def compute(place: slice) -> tuple[Sequence[Array], Sequence[Array]]:
        g, x, mean, rstd = whole if place == slice(None) else (array[place] for array in whole)
        h = f.as_written(x - mean) * rstd
        w = g if weight is None else g * groups.weight(weight)
        return (centred(w, h, groups.within) * rstd,), ((g * h).sum(groups.across), g.sum(groups.across))

    rows, *sizes = whole[0].shape
    own, sums = in_blocks(f, compute, count=rows, each=math.prod(sizes), axis=0)
    named = zip(shapes.items(), (*own, *sums), strict=True)
    return {name: array if shape is None else array.reshape(*shape) for (name, shape), array in named}


def normalised(
    f: F, groups: Groups, x: Array, weight: Array | None, bias: Array | None, statistic: Sizes
) -> dict[str, Array]:
    """The forward pass: the normalised input `y`, and `mean` and `rstd` in the shape of a statistic."""
    grouped = groups.grouped(x)
    mean, rstd = statistics(f, grouped, groups.within, 1e-5)
    y = (grouped - mean) * rstd
    y = y if weight is None else y * groups.weight(weight)
    y = y if bias is None else y + groups.weight(bias)
    return {"y": y.reshape(*x.shape), "mean": mean.reshape(*statistic), "rstd": rstd.reshape(*statistic)}


def normalisation(
    backward: Formula, forward: Formula, saved: tuple[str, str], *, gradient: str = "gradOut", **wrt: str
) -> Operator:
    """The operator that is the derivative of `y` by the inputs that `wrt` names, with the saved statistics."""
    derivative = Derivative(forward=forward, gradients={gradient: "y"}, wrt=wrt, saved=saved)
    return Operator.of(backward, derivative=derivative)
