"""How the planes of one call relate: whole ratios between two tensors' sizes, and which axis of a plane is longer.

Where two tensors of a call differ in some axes (a pooling, a resize, a padding), these are its plane. Which free name
decides which of them follows from changing one name after the other: specs need not say it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.configuration import Drawing
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.expression import UNDEFINED

RATIOS = (Fraction(1), Fraction(2), Fraction(3), Fraction(4), Fraction(1, 2), Fraction(3, 2))
"""Of a size of one tensor to that of the other, on all axes of the plane."""

_PROBES = 8
"""Drawings in which a pair of tensors that differ is looked for."""
_PROBE_ELEMENTS = 1 << 12
_LEAST_RANK = 3
"""Of tensors that have planes, and most axes of one."""
_APART = (5, 7, 11, 3, 13, 2)
"""Sizes of free names that are equal nowhere by chance."""
_LARGEST = 12
"""Of a side of the plane before it is multiplied."""


class SizeRelation(msgspec.Struct, frozen=True):
    """What holds of all axes of a plane: a ratio of sizes (None: any), and the order of first and last (0: equal)."""

    ratio: Fraction | None
    order: int | None

    def __str__(self) -> str:
        words = [] if self.ratio is None else [f"ratio {self.ratio}"]
        if self.order is not None:
            words.append(("square", "first axis longer", "last axis longer")[self.order])
        return ", ".join(words)


class Plane(msgspec.Struct, frozen=True):
    """Two tensors that differ, and by axis in which they do, the free names that decide each one's size."""

    names: tuple[str, str]
    axes: Mapping[int, tuple[str | None, str | None]]

    def holds(self, relation: SizeRelation, case: Case) -> bool:
        """Whether a call has a relation: of the first tensor to the second, and among the axes of the second."""
        one, other = (case.tensor(name) for name in self.names)
        axes = list(self.axes)
        if one is None or other is None or len(one.shape) != len(other.shape) or max(axes) >= len(one.shape):
            return False
        if relation.ratio is not None and any(one.shape[axis] != other.shape[axis] * relation.ratio for axis in axes):
            return False
        first, last = other.shape[axes[0]], other.shape[axes[-1]]
        return relation.order is None or (first == last, first > last, first < last)[relation.order]


def relations_of(plane: Plane) -> tuple[SizeRelation, ...]:
    """The relations that a plane may have."""
    orders = (0, 1, 2) if len(plane.axes) > 1 else (None,)
    both = all(None not in (one, other) and one != other for one, other in plane.axes.values())
    ratios = (None, *RATIOS) if both else (None,)
    found = (SizeRelation(ratio, order) for ratio, order in itertools.product(ratios, orders))
    return tuple(relation for relation in found if relation != SizeRelation(None, None))


def find_plane(sampler: Sampler) -> Plane | None:
    """The plane of an operator's calls: of the drawing in which free names decide most sizes of it."""
    found = []
    for number in range(_PROBES):
        drawing = sampler.draw(StreamChoices(0, f"{sampler.spec.operator}/plane", number), budget=_PROBE_ELEMENTS)
        if (plane := plane_of(sampler, drawing)) is not None:
            found.append(plane)
    return max(
        found, key=lambda plane: sum(name is not None for pair in plane.axes.values() for name in pair), default=None
    )


def plane_of(sampler: Sampler, drawing: Drawing) -> Plane | None:
    """The plane of one call; None where no two tensors of as many axes differ in one that a free name decides."""
    free = sampler.names.free_integers()
    apart = sampler.names.with_sizes(drawing, dict(zip(free, _APART, strict=False)).get)
    drawing = msgspec.structs.replace(drawing, names=apart)
    shapes = _shapes(sampler, drawing)
    for one, other in itertools.combinations(shapes, 2):
        first, second = shapes[one], shapes[other]
        axes = [axis for axis, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]]
        if len(first) != len(second) or len(first) < _LEAST_RANK or not 0 < len(axes) < _LEAST_RANK + 1:
            continue
        deciding = _deciding(sampler, drawing, (one, other), (first, second), axes)
        if any(decided != (None, None) for decided in deciding.values()):
            return Plane((one, other), deciding)
    return None


def _shapes(sampler: Sampler, drawing: Drawing) -> dict[str, tuple[int, ...]]:
    """Those of the tensors of a call, null pointers left out; none where the names make no call."""
    try:
        case = sampler.case(drawing)
    except (*UNDEFINED, UsageError):
        return {}
    return {name: value.shape for name, value in case.arguments.items() if isinstance(value, Tensor)}


def _deciding(
    sampler: Sampler,
    drawing: Drawing,
    names: tuple[str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    axes: list[int],
) -> dict[int, tuple[str | None, str | None]]:
    """By axis, the free name of each tensor that changes its size there."""
    found: dict[int, list[str | None]] = {axis: [None, None] for axis in axes}
    free = sampler.names.free_integers()
    for name in free:
        larger = sampler.names.with_sizes(drawing, {name: drawing.names[name] + 1}.get)
        if any(larger[other] != drawing.names[other] for other in free if other != name):
            continue  # It moves the bounds of others: which of them is the size is not known.
        now = _shapes(sampler, msgspec.structs.replace(drawing, names=larger))
        for side, axis in itertools.product((0, 1), axes):
            size = now.get(names[side], shapes[side])
            if len(size) == len(shapes[side]) and size[axis] != shapes[side][axis]:
                found[axis][side] = name
    return {axis: (pair[0], pair[1]) for axis, pair in found.items()}


def sizes_with_relation(
    sampler: Sampler, choices: Choices, drawing: Drawing, relation: SizeRelation
) -> tuple[Plane, Mapping[str, Any]] | None:
    """The plane of a drawing, and its names with sizes of that relation where their bounds admit it; None: no plane."""
    plane = plane_of(sampler, drawing)
    if plane is None:
        return None
    sides = _sides(choices, len(plane.axes), relation)
    assign: dict[str, int] = {}
    for size, (one, other) in zip(sides, plane.axes.values(), strict=True):
        if other is not None and other != one:
            assign[other] = size
            if one is not None and relation.ratio is not None:
                assign[one] = int(size * relation.ratio)
        elif one is not None:
            assign[one] = size
    return plane, sampler.names.with_sizes(drawing, assign.get)


def _sides(choices: Choices, count: int, relation: SizeRelation) -> list[int]:
    """Sizes of one tensor's plane, even, so that one and a half times a size is one too."""
    least = 2 * choices.integer(1, _LARGEST // 2)
    if relation.order is None:
        return [least] * count
    steps = [0] * count if relation.order == 0 else [2 * choices.integer(1, 3) * place for place in range(count)]
    sizes = [least + step for step in steps]
    return sizes[::-1] if relation.order == 1 else sizes
