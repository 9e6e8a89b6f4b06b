"""Making a valid call have corners, one after the other, and saying which corners a call has."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aclnn_cts.core.case import BoolArray, Case, Tensor, tensors_in
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.regime import Regime
from aclnn_cts.generate.choices import Choices
from aclnn_cts.generate.configuration import Drawing, lay_out
from aclnn_cts.generate.corners import Corner, Factor, FactorKind, NumberRange, RelativeSize, SizeCorner
from aclnn_cts.generate.geometry import Plane, sizes_with_relation
from aclnn_cts.generate.regime_cells import case_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.speclang.evaluate import first_broken
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.kinds import CaseChange

NO_PLACE = "no call has such a place"
TOO_LARGE = "too large for the profile"
UNDONE = "undone by what else the call has"

_SMALL = 160
"""Most elements of a tensor of a call that begins with no regime."""
_LARGE = 1 << 14
"""A size that is large alone has this many or more."""
_JOINT = (32, 64)
"""Sizes of a call that are large together; the least of them is in the corner's label."""


class CornerCall:
    """A valid call that takes one corner after the other. Each is proved by evaluating all constraints."""

    def __init__(
        self,
        sampler: Sampler,
        choices: Choices,
        *,
        most: int,
        first: Mapping[FactorKind, Any],
        keeps_regime: bool = False,
        drawing: Drawing | None = None,
    ) -> None:
        """`most`: elements of a tensor; `first`: the values of the corners that the drawing begins with.

        `keeps_regime`: refuse every corner that would take the size regime of the drawing from it. `drawing`: one that
        has the first corners, in the place of a new one.
        """
        self._sampler, self._choices, self._most = sampler, choices, most
        self._broadcasts = any(draw.kind == "broadcast" for draw in sampler.spec.draws)
        self._dtypes, self._data = first.get(FactorKind.DTYPES, (None, None)), first.get(FactorKind.DATA)
        regime = first.get(FactorKind.REGIME)
        row, mode = self._dtypes
        budget = None if regime is not None else _SMALL
        self._drawing = drawing or sampler.draw(
            choices, regime=regime, budget=budget, row=row, mode=mode, data_kind=self._data
        )
        self._applied = CaseChange(text="")
        self._plane: Plane | None = None
        self.case = sampler.case(self._drawing)
        self._seen: Case | None = None
        """The case that these two are of: whoever asks for one corner asks for many."""
        self._held: Mapping[str, Any] = {}
        self._regimes: frozenset[Regime] | None = None
        self._named_by: tuple[object, ...] = ()
        """What the names below follow from: few corners change it, and all ask for names."""
        self._values: Mapping[str, Any] = {}
        self._kept = case_regimes(self.case) & {regime} if keeps_regime else frozenset()

    def _names(self) -> Mapping[str, Any]:
        """The values of all draws."""
        drawing, assign = self._drawing, self._applied.assign
        if not assign:
            return drawing.names
        sources = drawing.names, drawing.picks, drawing.dtypes, assign
        if len(self._named_by) != len(sources) or any(map(operator.is_not, self._named_by, sources)):
            self._values = self._sampler.names.reassign(drawing, self._applied)
            self._named_by = sources
        return self._values

    def set_corner(self, factor: Factor, corner: Corner, kept: Sequence[tuple[Factor, Corner]] = ()) -> str:
        """Make the call have a corner and keep these; why it cannot, and nothing is changed, or an empty text."""
        if self.has_corner(factor, corner):
            return ""
        before = self._drawing, self._applied, self._plane, self.case
        refusal = self._change(factor, corner) if self._changed(factor, corner.value) else NO_PLACE
        if not refusal and not all(self.has_corner(*item) for item in kept):
            refusal = UNDONE
        if refusal:
            self._drawing, self._applied, self._plane, self.case = before
        return refusal

    def widen_sizes(self, kept: Sequence[tuple[Factor, Corner]]) -> None:
        """Make sizes of 1 larger where the call keeps these corners: a view of one element an axis is contiguous."""
        kept = [item for item in kept if self.has_corner(*item)]
        names = self._names()
        narrow = [
            (name, axis)
            for name in self._sampler.names.free_sizes()
            for axis, size in enumerate(_sizes(names[name]))
            if size == 1
        ]
        while narrow and not self._widened(names, narrow, kept):
            # Not all of them have room: half are left as they are.
            for _ in range((len(narrow) + 1) // 2):
                narrow.pop(self._choices.integer(0, len(narrow) - 1))

    def _widened(
        self, names: Mapping[str, Any], narrow: Sequence[tuple[str, int]], kept: Sequence[tuple[Factor, Corner]]
    ) -> bool:
        """Make sizes of some names' axes 2 or 3; whether the call stays one that counts, or nothing is changed."""
        before = self._applied, self.case
        wider = {name: list(_sizes(names[name])) for name, _ in narrow}
        for name, axis in narrow:
            wider[name][axis] = self._choices.integer(2, 3)
        new = {name: tuple(sizes) if isinstance(names[name], tuple) else sizes[0] for name, sizes in wider.items()}
        self._applied = CaseChange(text="", assign={**self._applied.assign, **new}, values=self._applied.values)
        if self._made() or not all(self.has_corner(*item) for item in kept):
            self._applied, self.case = before
            return False
        return True

    def can_view(self, name: str, view: int) -> bool:
        """Whether a tensor that is given has a shape of which a view is not contiguous; 0: whether it is given."""
        tensors = tensors_in(self.case.arguments[name])
        return any(not view or _is_laid_out(tensor.shape, view) for tensor in tensors)

    def lay_out(self, views: Mapping[str, int]) -> str:
        """Give tensors these views; why it cannot be, and nothing is changed, or an empty text."""
        before = self._drawing, self.case
        self._replace(views={**self._drawing.views, **views})
        refusal = self._made()
        if refusal:
            self._drawing, self.case = before
        return refusal

    def _change(self, factor: Factor, corner: Corner) -> str:
        """Make the case anew; why it is none that counts."""
        return self._made() or ("" if self.has_corner(factor, corner) else NO_PLACE)

    def _made(self) -> str:
        """Make the case anew; why it is none."""
        try:
            self.case = self._sampler.case(self._drawing, change=self._applied, names=self._names())
        except (*UNDEFINED, ArithmeticError, UsageError):
            return NO_PLACE
        if self.case.call.phases == 1 or not self._fits():
            return TOO_LARGE
        if self._kept and not self._kept <= case_regimes(self.case):
            return UNDONE
        return first_broken(self._sampler.spec, self.case) or ""

    def _fits(self) -> bool:
        """Whether every tensor is within the budget, and what they broadcast to where they do.

        An empty axis counts as one: a sum over it has every place of the others.
        """
        shapes = [tensor.shape for _, tensor in self.case.tensors()]
        if self._broadcasts:
            aligned = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
            shapes.append(tuple(map(max, aligned)))
        return all(math.prod(max(size, 1) for size in shape) <= self._most for shape in shapes)

    def _changed(self, factor: Factor, value: Any) -> bool:  # noqa: ANN401 - as the kind of factor has it
        """Change the drawing, or assign a name; whether there is such a place."""
        drawing, sampler, of = self._drawing, self._sampler, factor.of
        match factor.kind:
            case FactorKind.PLANE:
                found = sizes_with_relation(sampler, self._choices, drawing, value)
                if found is None:
                    return False
                self._plane = found[0]
                self._replace(names=found[1])
            case FactorKind.SIZES:
                self._replace(names=self._resized(value))
            case FactorKind.FORMATS:
                self._replace(formats=sampler.format_rows[value])
            case FactorKind.CONTENTS:
                fitting = [item for item in sampler.templates(of, "other") if item.recipe == value]
                self._replace(data={**drawing.data, of: self._choices.pick(fitting)})
            case FactorKind.NULL:
                self._replace(nulls=_with(drawing.nulls, of, is_in=bool(value)))
            case FactorKind.MEMORY:
                self._replace(given=_with(drawing.given, of, is_in=not value))
            case FactorKind.MASK:
                self._applied = CaseChange(
                    text="", assign=self._applied.assign, values={**self._applied.values, of: BoolArray(value)}
                )
            case _:
                return self._named(factor, value)
        return True

    def _replace(self, **changes: Any) -> None:  # noqa: ANN401 - fields of a drawing
        self._drawing = msgspec.structs.replace(self._drawing, **changes)

    def _named(self, factor: Factor, value: Any) -> bool:  # noqa: ANN401 - as the kind of factor has it
        """Assign a value to a name, to an item of a run, or another length; whether there is such an item."""
        name = factor.of
        new: Any
        if factor.kind is FactorKind.ATTRIBUTE and not isinstance(value, NumberRange):
            draw = next(item for item in self._sampler.spec.draws if item.name == name)
            self._replace(picks={**self._drawing.picks, name: value})
            new = draw.choices[value](self._names(), self._sampler.target)
        elif factor.kind is FactorKind.ATTRIBUTE:
            new = value.draw(self._choices)
        else:
            old: Sequence[int] = self._names()[name]
            if factor.kind is FactorKind.RANK:
                new = (*old[:value], *([1] * (value - len(old))))
            elif not old:
                return False
            else:
                place = 0 if factor.kind is FactorKind.FIRST_ITEM else len(old) - 1
                new = (*old[:place], value.draw(self._choices), *old[place + 1 :])
        self._applied = CaseChange(text="", assign={**self._applied.assign, name: new}, values=self._applied.values)
        return True

    def _resized(self, corner: SizeCorner) -> Mapping[str, Any]:
        """The names with all sizes large together, or one of them large or 1 alone."""
        sized, choices = self._sampler.names.with_sizes, self._choices
        if not corner.name:
            joint = self._sampler.names.joint_sizes()

            def wanted(name: str) -> int:
                # Each name takes a number of the stream, so that a mark changes no size but its own.
                large = choices.integer(*_JOINT)
                return large if name in joint else 1

            return sized(self._drawing, wanted)
        if corner.relative is RelativeSize.ONE:
            return sized(self._drawing, {corner.name: 1}.get)
        # In some calls with room for other sizes beside it.
        large = choices.integer(_LARGE, max(_LARGE, self._most >> choices.integer(0, 2)))
        return sized(self._drawing, lambda name: large if name == corner.name else 1)

    def has_corner(self, factor: Factor, corner: Corner) -> bool:
        """Whether the call has a corner, whatever it was made for."""
        if self._seen is not self.case:
            self._seen, self._held, self._regimes = self.case, self._names(), None
        value = corner.value
        match factor.kind:
            case FactorKind.REGIME:
                return value in self._own_regimes()
            case FactorKind.DTYPES:
                return bool(value == self._dtypes)
            case FactorKind.DATA:
                return bool(value == self._data)
            case FactorKind.FORMATS:
                return self._has_formats(self._sampler.format_rows[value])
            case FactorKind.SIZES:
                return self._has_size(value)
            case FactorKind.PLANE:
                return self._plane is not None and self._plane.holds(value, self.case)
            case FactorKind.VIEW:
                return self._has_view(factor.of, value)
            case FactorKind.ATTRIBUTE | FactorKind.FIRST_ITEM | FactorKind.LAST_ITEM | FactorKind.RANK:
                return self._has_name(factor, value)
            case _:
                return self._has_argument(factor, value)

    def _own_regimes(self) -> frozenset[Regime]:
        if self._regimes is None:
            self._regimes = case_regimes(self.case)
        return self._regimes

    def _has_argument(self, factor: Factor, value: Any) -> bool:  # noqa: ANN401 - as the kind of factor has it
        """Whether a parameter is a null pointer, a mask, an output without use, or has contents of a recipe."""
        argument = self.case.arguments[factor.of]
        match factor.kind:
            case FactorKind.NULL:
                return (argument is None) == bool(value)
            case FactorKind.MASK:
                return argument == BoolArray(value)
            case FactorKind.MEMORY:
                item = self._sampler.spec.parameter(factor.of)
                is_computed = item.is_computed(self.case.arguments, self._sampler.target)
                return not is_computed and (argument is None) == bool(value)
            case _:
                return any(tensor.data is not None and tensor.data.recipe == value for tensor in tensors_in(argument))

    def _has_formats(self, row: Mapping[str, str]) -> bool:
        """Whether the tensors that are given have a row's formats, where rows differ."""
        rows = self._sampler.format_rows
        tensors = {
            name: tensors_in(self.case.arguments[name]) for name in row if len({item[name] for item in rows}) > 1
        }
        return any(tensors.values()) and all(
            tensor.format == row[name] for name, found in tensors.items() for tensor in found
        )

    def _has_size(self, corner: SizeCorner) -> bool:
        names = self._held
        if not corner.name:
            sizes = [names[name] for name in self._sampler.names.joint_sizes() if names[name] != ()]
            return len(sizes) > 1 and all(_first(size) >= _JOINT[0] for size in sizes)
        size = names[corner.name]
        if corner.relative is RelativeSize.LARGE:
            return size != () and _first(size) >= _LARGE
        return size == 1 or (isinstance(size, tuple) and set(size) == {1})

    def _has_view(self, name: str, view: int) -> bool:
        """Whether a tensor is there in a layout, and not contiguous in spite of it; 0: whether it is contiguous."""
        tensors = tensors_in(self.case.arguments[name])
        if not view:
            return bool(tensors) and all(tensor.strides is None for tensor in tensors)
        is_other = any(not tensor.is_contiguous or tensor.offset for tensor in tensors)
        return is_other and self._drawing.views.get(name) == view

    def _has_name(self, factor: Factor, value: Any) -> bool:  # noqa: ANN401 - as the kind of factor has it
        held = self._held[factor.of]
        if factor.kind is FactorKind.RANK:
            return bool(len(held) == value)
        if factor.kind is not FactorKind.ATTRIBUTE:
            item = held[0 if factor.kind is FactorKind.FIRST_ITEM else -1] if held else None
            return item is not None and bool(value.low <= item <= value.high)
        if isinstance(value, NumberRange):
            return not isinstance(held, str) and bool(value.low <= held <= value.high)
        return self._drawing.picks.get(factor.of) == value and not self._is_number_of_its_own(factor.of)

    def _is_number_of_its_own(self, name: str) -> bool:
        """Whether a name has another value than the alternative that was picked for it."""
        draw = next(item for item in self._sampler.spec.draws if item.name == name)
        try:
            return bool(draw.choices[self._drawing.picks[name]](self._held, self._sampler.target) != self._held[name])
        except UNDEFINED:
            return True


def _with(names: Sequence[str], name: str, *, is_in: bool) -> tuple[str, ...]:
    """The names with one, or without it."""
    rest = tuple(other for other in names if other != name)
    return (*rest, name) if is_in else rest


def _sizes(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


@functools.lru_cache(maxsize=1 << 12)
def _is_laid_out(shape: tuple[int, ...], view: int) -> bool:
    """Whether the view of a shape is not contiguous."""
    layout = lay_out(shape, view)
    if layout is None:
        return False
    strides, offset, _ = layout
    return bool(offset) or not Tensor(shape, "FLOAT", strides=strides).is_contiguous


def _first(size: int | tuple[int, ...]) -> int:
    return size[0] if isinstance(size, tuple) else size
