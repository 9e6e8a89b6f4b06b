"""Rules about sizes: dimensions, shapes, and items of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.case import BoolArray, Case, FloatArray, Tensor
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.expression_parser import compile_text
from aclnn_cts.speclang.kinds import CaseChange, Test, Words
from aclnn_cts.speclang.kinds_number import bound_text
from aclnn_cts.speclang.model import ParameterRule
from aclnn_cts.speclang.shape import ShapeExpression, compile_shape

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

INT64_MAX = 2**63 - 1


def sizes_of(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - a tensor or an int array
    """The shape of a tensor, or the items of an array."""
    if isinstance(value, tuple):
        return value
    shape: tuple[int, ...] = value.shape
    return shape


def _axis_change(of: str, axis: int, old: object, new: int) -> CaseChange:
    return CaseChange(text=f"{of}[{axis}]: {old} -> {new}", axes={(of, axis): new})


def _items_change(case: Case, of: str, count: int) -> CaseChange:
    """Another number of items of an array: the first ones, or ones behind all of them."""
    value: Any = case.arguments[of]
    changed: Any = (*value, *([1] * count))[:count]
    if isinstance(value, BoolArray):
        changed = BoolArray(tuple(map(bool, changed)))
    elif isinstance(value, FloatArray):
        changed = FloatArray(tuple(map(float, changed)))
    return CaseChange(text=f"{of}: {len(value)} -> {count} items", values={of: changed})


@dataclass(frozen=True, slots=True)
class LengthRangeRule(ParameterRule):
    """The number of items of an array lies in a range."""

    low: int
    high: int

    @property
    def test(self) -> Test:
        of, low, high = self.of, self.low, self.high
        return lambda arguments, _target: low <= len(arguments[of]) <= high

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        for count in dict.fromkeys((self.high + 1, self.low - 1, 0, self.high * 4)):
            if count >= 0 and not self.low <= count <= self.high:
                yield _items_change(case, self.of, count)

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        for count in sorted({bound + step for bound in (self.low, self.high) for step in (-1, 0, 1)}):
            if count >= 0:
                yield _items_change(case, self.of, count)

    def describe(self, product: str) -> Words:
        to, to_zh = ("", "") if self.low == self.high else (f" to {self.high}", f" 至 {self.high}")
        return Words(
            f"{self.of} has {self.low}{to} item{'s' if self.high != 1 else ''}",
            f"{self.of} 有 {self.low}{to_zh} 个元素",
        )


@dataclass(frozen=True, slots=True)
class LengthRule(ParameterRule):
    """The number of items of an array equals an expression."""

    text: str

    @property
    def test(self) -> Test:
        of, expected = self.of, compile_text(self.text)
        return lambda arguments, target: len(arguments[of]) == expected(arguments, target)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        value: Any = case.arguments[self.of]
        for count in dict.fromkeys((len(value) + 1, len(value) - 1, 0, 4 * len(value))):
            if count >= 0 and count != len(value):
                yield _items_change(case, self.of, count)

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} has {self.text} items", f"{self.of} 有 {self.text} 个元素")


@dataclass(frozen=True, slots=True)
class DimensionsRule(ParameterRule):
    """Every dimension of a tensor or item of an array, or those of some axes, lies in a range; bounds may be absent."""

    low: int | None
    high: int | None
    axes: tuple[int, ...] | None = None

    @property
    def test(self) -> Test:
        of, axes = self.of, self.axes
        low = self.low if self.low is not None else -INT64_MAX - 1
        high = self.high if self.high is not None else INT64_MAX
        if axes is None:

            def every(arguments: Mapping[str, Any], _target: Target) -> bool:
                shape = sizes_of(arguments[of])
                return not shape or (low <= min(shape) and max(shape) <= high)

            return every
        return lambda arguments, _target: all([low <= sizes_of(arguments[of])[axis] <= high for axis in axes])

    def _changes(self, spec: Spec, case: Case, values: Iterable[int]) -> Iterator[CaseChange]:
        shape = sizes_of(case.arguments[self.of])
        chosen = [value for value in dict.fromkeys(values) if -INT64_MAX <= value <= INT64_MAX]
        every = range(len(shape))
        # A call may have fewer dimensions than the rule speaks of.
        there = [every[axis] for axis in self.axes or () if -len(shape) <= axis < len(shape)]
        for axis in every if self.axes is None else there:
            for value in chosen:
                yield from _place_changes(spec, shape, self.of, axis, value)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        values = [self.low - 1] if self.low is not None else []
        values += [self.high + 1, self.high * 2, 2**40, INT64_MAX] if self.high is not None else []
        if self.low is not None and self.low < 1:
            values.append(-(2**31))
        yield from self._changes(spec, case, values)

    def limits(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        yield from self._changes(spec, case, sorted({bound + step for bound in bounds for step in (-1, 0, 1)}))

    def describe(self, product: str) -> Words:
        where = "every dimension" if self.axes is None else "dimension " + ", ".join(map(str, self.axes))
        where_zh = "每一维" if self.axes is None else f"第 {'、'.join(map(str, self.axes))} 维"
        bounds = bound_text(self.low, self.high)
        return Words(f"{where} of {self.of} lies in {bounds}", f"{self.of} 的{where_zh}在 {bounds} 内")


def _place_changes(spec: Spec, shape: tuple[int, ...], of: str, axis: int, value: int) -> Iterator[CaseChange]:
    """Ways to give a dimension a value: through the draw that it comes from, so that the rest follows, and outright."""
    text = f"{of}[{axis}]: {shape[axis]} -> {value}"
    expression = spec.parameter(of).shape
    items = expression.items if expression is not None else ()
    draws = {draw.name: draw.kind for draw in spec.draws}
    position = 0
    for item in items:
        name = item.node.value
        if not item.spliced:
            if position == axis and item.node.kind == "name" and draws.get(name) == "integer":
                yield CaseChange(text=text, assign={name: value})
            position += 1
            continue
        if draws.get(name) in ("run", "broadcast") and item.start is item.stop is None:
            rest = len(shape) - position if item is items[-1] else None
            if rest is not None and axis >= position:
                run = list(shape[position:])
                run[axis - position] = value
                yield CaseChange(text=text, assign={name: tuple(run)})
        break
    yield CaseChange(text=text, axes={(of, axis): value})


@dataclass(frozen=True, slots=True)
class ShapeRule(ParameterRule):
    """A shape (or the items of an array) equals a shape expression."""

    shape: ShapeExpression

    @property
    def test(self) -> Test:
        of, expected = self.of, compile_shape(self.shape)
        return lambda arguments, target: sizes_of(arguments[of]) == expected(arguments, target)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        sizes = sizes_of(case.arguments[self.of])
        for axis, size in enumerate(sizes):
            yield _axis_change(self.of, axis, size, size + 1)
            if axis == 0:
                yield from self._as_many(case, sizes)
        for axis, size in enumerate(sizes):
            if size > 1:
                yield _axis_change(self.of, axis, size, size - 1)
            yield _axis_change(self.of, axis, size, size * 2 + 1)
            if size != 1:
                yield _axis_change(self.of, axis, size, 1)

    def _as_many(self, case: Case, sizes: Sequence[int]) -> Iterator[CaseChange]:
        """Other shapes of as many elements: two sizes exchanged, one dimension more, one less."""
        for first, second in itertools.combinations(range(len(sizes)), 2):
            if sizes[first] != sizes[second]:
                yield CaseChange(
                    text=f"{self.of}: sizes {sizes[first]} and {sizes[second]} exchanged",
                    axes={(self.of, first): sizes[second], (self.of, second): sizes[first]},
                )
                break
        if isinstance(case.arguments[self.of], Tensor):
            for rank in (len(sizes) + 1, len(sizes) - 1):
                yield CaseChange(
                    text=f"{self.of}: rank {len(sizes)} -> {rank}, as many elements", ranks={self.of: rank}
                )

    def describe(self, product: str) -> Words:
        return Words(f"{self.of} is shaped {self.shape.text}", f"{self.of} 的 shape 为 {self.shape.text}")


@dataclass(frozen=True, slots=True)
class BroadcastRule(ParameterRule):
    """Two shapes broadcast: counted from the last dimension, sizes are equal, or one of them is 1."""

    other: str
    """A tensor, or what several broadcast to."""

    @property
    def test(self) -> Test:
        broadcasts = compile_text(f"broadcasts({self.of}, {self.other})")
        return lambda arguments, target: bool(broadcasts(arguments, target))

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        own = sizes_of(case.arguments[self.of])
        others = sizes_of(compile_text(self.other)(case.arguments, case.target))
        is_tensor = self.other in case.arguments
        for back in range(1, min(len(own), len(others)) + 1):
            size, other = own[-back], others[-back]
            axis, place = len(own) - back, len(others) - back
            if other > 1:
                yield _axis_change(self.of, axis, size, other + 1)
                if other > 2:
                    yield _axis_change(self.of, axis, size, other - 1)
            elif not is_tensor:
                continue
            elif size > 1:
                yield _axis_change(self.other, place, other, size + 1)
            else:
                text = f"{self.of}[{axis}]: {size} -> 2, {self.other}[{place}]: {other} -> 3"
                yield CaseChange(text=text, axes={(self.of, axis): 2, (self.other, place): 3})

    def describe(self, product: str) -> Words:
        return Words(
            f"the shapes of {self.of} and {self.other} broadcast",
            f"{self.of} 与 {self.other} 的 shape 满足 broadcast 关系",
        )


@dataclass(frozen=True, slots=True)
class SizeRule(ParameterRule):
    """One dimension (or item) equals an expression."""

    axis: int
    text: str

    @property
    def test(self) -> Test:
        of, axis, expected = self.of, self.axis, compile_text(self.text)
        return lambda arguments, target: sizes_of(arguments[of])[axis] == expected(arguments, target)

    def changes(self, spec: Spec, case: Case) -> Iterator[CaseChange]:
        sizes = sizes_of(case.arguments[self.of])
        axis = self.axis % len(sizes)
        old = sizes[axis]
        for new in dict.fromkeys((old + 1, old - 1, old * 2 + 1, 1)):
            if new > 0 and new != old:
                yield _axis_change(self.of, axis, old, new)

    def describe(self, product: str) -> Words:
        return Words(f"{self.of}[{self.axis}] equals {self.text}", f"{self.of}[{self.axis}] 等于 {self.text}")
