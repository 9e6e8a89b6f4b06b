"""Drawing the free names of a spec: sizes within a budget of elements, attributes, runs and factorisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.target import Target
from aclnn_cts.generate.choices import Choices
from aclnn_cts.generate.configuration import ANYTHING, Configuration, Drawing, length_class
from aclnn_cts.generate.sizes import Sizes, attribute_class, attribute_value, class_range, divide_total, factorise
from aclnn_cts.speclang.expression import UNDEFINED, Compiled, compile_node
from aclnn_cts.speclang.kinds import CaseChange
from aclnn_cts.speclang.model import Draw, Spec
from aclnn_cts.speclang.shape import INDEX, ShapeExpression, compile_shape

MAX_LENGTH = 64
"""Dimensions of a run: more than any shape has, and few enough for a spec that asks for a billion."""
_EMPTY_ONE_IN = 16
"""Of the runs whose sizes may be 0, those that may have one: an empty tensor has no values to judge."""
MAX_BITS = 512
"""Of a number that later draws are computed from: products of products would fill the memory."""

_COMPUTED = ("derived", "choice")
"""Kinds of draw whose values are computed from earlier names."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A draw, and what stands beside it in a tensor (None: it is no size): earlier names, and factors as in `2*H`."""

    draw: Draw
    beside: tuple[tuple[_Extent, int], ...] | None
    factor: str
    """What a `Configuration` calls it; empty for what it does not narrow."""
    later: int
    """Draws of sizes after it; a run counts as one, but one that broadcasts has mostly sizes of earlier ones."""
    is_last: bool
    """Whether it is the last dimension of a tensor, or its last ones."""
    after: Sequence[Draw]
    """The draws after it."""
    is_grown: bool
    """Whether sizes of tensors are derived after it, which may be larger than it is."""
    lists: Sequence[_List]
    """Those in which a size stands."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """Names whose sizes a tensor has: of a shape with conditions, those of the list that they choose.

    One that stands twice is there twice.
    """

    names: tuple[str, ...]
    """Of all lists."""
    lists: tuple[tuple[Compiled | None, tuple[str, ...]], ...] = ()
    """The lists, where their names differ: each with its condition, the last without one."""

    @classmethod
    def of(cls, shape: ShapeExpression, among: Collection[str]) -> _Extent:
        """Those of a shape that are `among` some names."""

        def kept(part: ShapeExpression) -> tuple[str, ...]:
            found, alone = part.names(), [item.node.value for item in part.items if item.node.kind == "name"]
            return tuple([name for name in among if name in found for _ in range(max(alone.count(name), 1))])

        lists: list[tuple[Compiled | None, tuple[str, ...]]] = []
        part: ShapeExpression | None = shape
        while part is not None:
            condition = None if part.condition is None else compile_node(part.condition)
            lists.append((condition, kept(ShapeExpression(text=part.text, items=part.items))))
            part = part.otherwise
        differ = len({names for _, names in lists}) > 1
        return cls(kept(shape), tuple(lists) if differ else ())

    def chosen(self, known: Mapping[str, Any], target: Target) -> tuple[str, ...]:
        """Those of the chosen list; of all where the names so far do not decide."""
        try:
            return next(
                (names for condition, names in self.lists if condition is None or condition(known, target)), self.names
            )
        except UNDEFINED:
            return self.names


@dataclass(frozen=True, slots=True)
class _List:
    """A list of tensors, whose sizes may be products of a name with itself."""

    names: frozenset[str]
    shape: Compiled
    length: Compiled


class NameDrawer:
    """Draws the names of one operator in the spec's order."""

    def __init__(self, spec: Spec, target: Target) -> None:
        self._target = target
        sized = [item for item in spec.parameters if item.holds_tensors and item.shape is not None]
        shapes = [item.shape for item in sized if item.shape is not None]
        # Those of lists are counted for each of their tensors (`_room_in_lists`).
        factors = [
            1 if item.length is not None else math.prod(part.multiple for part in shape.items)
            for item, shape in zip(sized, shapes, strict=True)
        ]
        together = [shape.names() for shape in shapes]
        of_tensors = {name for names in together for name in names}
        lists = [
            _List(frozenset(item.shape.names()), compile_shape(item.shape), item.length)
            for item in spec.parameters
            if item.length is not None and item.shape is not None
        ]
        extents = [_Extent.of(shape, [draw.name for draw in spec.draws]) for shape in shapes]
        steps: list[_Step] = []
        last = {shape.items[-1].node.value for shape in shapes if shape.items}
        for number, draw in enumerate(spec.draws):
            after = spec.draws[number + 1 :]
            groups = [
                (extent, factor) for factor, extent in zip(factors, extents, strict=True) if draw.name in extent.names
            ]
            beside = tuple(dict.fromkeys(groups)) if groups else None
            factor = _factor(draw, is_size=beside is not None)
            later = sum(item.name in of_tensors and _draws_sizes(item, target) for item in after)
            is_grown = any(item.kind == "derived" and item.name in of_tensors for item in after)
            inside = [item for item in lists if draw.name in item.names] if draw.kind == "integer" else []
            steps.append(_Step(draw, beside, factor, later, draw.name in last, after, is_grown, inside))
        self._steps = tuple(steps)
        self._together = tuple(dict.fromkeys(extents))
        self._sized = tuple(dict.fromkeys(name for extent in extents for name in extent.names))

    def draw(
        self,
        choices: Choices,
        sizes: Sizes,
        configuration: Configuration = ANYTHING,
        *,
        dtypes: Mapping[str, str],
        names: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Values by name, and the number of the choice that a draw of kind `choice` took.

        `dtypes` are those of the tensors, which come first.

        A configuration narrows lengths of runs (`rank:<run>`) and attributes (`attribute:<name>`). `names` takes the
        values, and has those before a draw that fails.
        """
        names = {} if names is None else names
        picks: dict[str, int] = {}
        target = self._target
        for step in self._steps:
            draw = step.draw
            value: Any
            if draw.kind == "integer":
                value = self._number(choices, step, names, sizes, configuration)
            elif draw.kind == "derived":
                value = _computed(draw, names, target)
            elif draw.kind == "dtype":
                value = dtypes[draw.of]
            elif draw.kind == "choice":
                numbers = configuration.allowed_options(step.factor, range(len(draw.choices)), choice_label)
                picks[draw.name] = pick = choices.pick(numbers)
                value = _computed(draw, names, target, pick)
            elif draw.kind == "run":
                value = self._run(choices, step, names, sizes, configuration)
            elif draw.kind == "broadcast":
                value = self._broadcast(choices, step, names, sizes, configuration)
            else:
                value = self._parts(choices, step, names, configuration)
            names[draw.name] = value
        return names, picks

    def _number(
        self, choices: Choices, step: _Step, names: Mapping[str, Any], sizes: Sizes, configuration: Configuration
    ) -> int:
        """A size or an attribute."""
        low, high = step.draw.bounds(names, self._target)
        if step.beside is None:
            return _attribute(choices, low, high, step.factor, configuration)
        most = max(low, min(high, self._room(step, names, sizes.budget)))
        return sizes.size(choices, low, most, later=step.later, is_last=step.is_last, unit=step.draw.unit)

    def _room(self, step: _Step, names: Mapping[str, Any], budget: int) -> int:
        """The largest size that keeps every tensor of the name within the budget."""
        room = budget
        for extent, factor in step.beside or ():
            among = extent.chosen(names, self._target) if extent.lists else extent.names
            if step.draw.name in among:
                used = factor * math.prod([_elements(names[name]) for name in among if name in names])
                room = min(room, _root(budget // used if used else budget, among.count(step.draw.name)))
        if step.is_grown:
            before = 0
            while room > 1 and (least := self._least(step, names, room)) > budget:
                # Sizes that do not follow this one are no reason to make it smaller; a division may keep them a while.
                if least == before and self._least(step, names, 1) >= least:
                    break
                room, before = min(room - 1, room * budget // least), least
        room = max(room, 1)
        return self._room_in_lists(step, names, room, budget) if step.lists else room

    def _room_in_lists(self, step: _Step, names: Mapping[str, Any], room: int, budget: int) -> int:
        """The largest size up to `room` that keeps every tensor of the lists within the budget; at least 1."""

        def fits(size: int) -> bool:
            known = {**dict.fromkeys((draw.name for draw in step.after), 1), **names, step.draw.name: size}
            try:
                return all(
                    math.prod(max(size, 1) for size in item.shape({**known, INDEX: place}, self._target)) <= budget
                    for item in step.lists
                    for place in range(int(item.length(known, self._target)))
                )
            except UNDEFINED:
                return True

        if fits(room):
            return room
        least = 1
        while room - least > 1:
            middle = (least + room) // 2
            least, room = (middle, room) if fits(middle) else (least, middle)
        return least

    def _least(self, step: _Step, names: Mapping[str, Any], size: int) -> int:
        """Elements of the largest tensor where a name has that size and those after it are as small as they may be.

        0 where the draws after it have no meaning for that.
        """
        try:
            known = self._smallest(step, names, size)
        except UNDEFINED:
            return 0
        elements = {name: _elements(known[name]) for name in self._sized}
        chosen = [extent.chosen(known, self._target) for extent in self._together]
        return max([math.prod([elements[name] for name in among]) for among in chosen])

    def _smallest(self, step: _Step, names: Mapping[str, Any], size: int) -> dict[str, Any]:
        known: dict[str, Any] = {**names, step.draw.name: (size,) if step.draw.kind == "run" else size}
        target = self._target
        for draw in step.after:
            if draw.kind == "dtype":
                continue
            if draw.kind == "integer":
                known[draw.name] = draw.low(known, target)  # type: ignore[misc]  # an integer draw has bounds
            elif draw.kind in _COMPUTED:
                known[draw.name] = _computed(draw, known, target)
            else:
                known[draw.name] = (1,) * _lengths(draw, known, target)[0]
        return known

    def _run(
        self,
        choices: Choices,
        step: _Step,
        names: Mapping[str, Any],
        sizes: Sizes,
        configuration: Configuration,
    ) -> tuple[int, ...]:
        draw, target = step.draw, self._target
        low, high = _lengths(draw, names, target)
        if not any(name in names for extent, _ in step.beside or () for name in extent.names):
            low = max(low, min(high, sizes.least_rank))
        if step.factor in configuration.allowed:
            length = choices.pick(configuration.allowed_options(step.factor, range(low, high + 1), length_class))
        else:
            # Ranks above 4 are worth their share, and no more: their sizes are all tiny.
            length = choices.integer(low, high if choices.integer(0, 3) == 0 else max(low, min(high, 4)))
        least, most = draw.size_bounds(names, target)
        if step.beside is None:
            return tuple([attribute_value(choices, least, most) for _ in range(length)])
        if least == 0 and not choices.chance(1, _EMPTY_ONE_IN):
            least = min(1, most)
        room = self._room(step, names, sizes.budget)
        drawn: list[int] = []
        for later in range(step.later + length - 1, step.later - 1, -1):
            is_last = step.is_last and later == step.later
            drawn.append(sizes.size(choices, least, max(least, min(most, room)), later=later, is_last=is_last))
            room //= max(drawn[-1], 1)
        return tuple(drawn)

    def _parts(
        self, choices: Choices, step: _Step, names: Mapping[str, Any], configuration: Configuration
    ) -> tuple[int, ...]:
        """Factors of a number, or parts of a total."""
        draw, target = step.draw, self._target
        low, high = _lengths(draw, names, target)
        length = choices.pick(configuration.allowed_options(step.factor, range(low, high + 1), length_class))
        whole = draw.given(names, target)
        if draw.kind == "factorisation":
            return factorise(choices, whole, length)
        return divide_total(choices, whole, length, draw.size_bounds(names, target)[0])

    def _broadcast(
        self,
        choices: Choices,
        step: _Step,
        names: Mapping[str, Any],
        sizes: Sizes,
        configuration: Configuration,
    ) -> tuple[int, ...]:
        """A shape that broadcasts with an earlier run: half of the time the same, else sizes of 1 and other lengths."""
        draw, target = step.draw, self._target
        low, high = _lengths(draw, names, target)
        other: tuple[int, ...] = draw.given(names, target)
        if step.factor in configuration.allowed:
            length = choices.pick(configuration.allowed_options(step.factor, range(low, high + 1), length_class))
            is_same = length == len(other) and choices.chance(1, 2)
        else:
            is_same = low <= len(other) <= high and choices.chance(1, 2)
            length = choices.integer(low, high if choices.integer(0, 3) == 0 else min(high, max(low, len(other))))
        if is_same:
            return other
        least, most = draw.size_bounds(names, target)
        # Some tensor has the shape that both broadcast to.
        room = max(sizes.budget // max(math.prod(other), 1), 1)
        drawn: list[int] = []
        for position in range(length):
            place = len(other) - length + position
            if place >= 0 and other[place] != 1:
                drawn.append(other[place] if choices.chance(1, 2) else 1)
                continue
            later = step.later + length - 1 - position
            drawn.append(sizes.size(choices, least, max(least, min(most, room)), later=later, is_last=False))
            room //= max(drawn[-1], 1)
        return tuple(drawn)

    def is_attribute(self, name: str) -> bool:
        """Whether a name stands in no tensor's shape."""
        return any(step.draw.name == name and step.beside is None for step in self._steps)

    def free_sizes(self) -> tuple[str, ...]:
        """The names of tensors' sizes that are drawn, runs of sizes among them."""
        return tuple(
            step.draw.name
            for step in self._steps
            if step.beside is not None
            and step.draw.kind in ("integer", "run")
            and _draws_sizes(step.draw, self._target)
        )

    def joint_sizes(self) -> tuple[str, ...]:
        """Those that training has large together, by the spec's marks; all free sizes where it marks none."""
        return tuple(step.draw.name for step in self._steps if step.draw.unit) or self.free_sizes()

    def free_integers(self) -> tuple[str, ...]:
        """Those that are one size each."""
        kinds = {step.draw.name: step.draw.kind for step in self._steps}
        return tuple(name for name in self.free_sizes() if kinds[name] == "integer")

    def with_sizes(self, drawing: Drawing, wanted: Callable[[str], int | None]) -> dict[str, Any]:
        """The names of a drawing with other sizes, each within its bounds; where `wanted` gives None, as it was.

        Of a run, the first size is the wanted one and the others are 1, where it is to be larger than 1.
        """
        names: dict[str, Any] = {}
        for step in self._steps:
            draw = step.draw
            value = wanted(draw.name) if step.beside is not None else None
            if value is None or draw.kind not in ("integer", "run"):
                names[draw.name] = _moved(draw, names, drawing)
            elif draw.kind == "integer":
                low, high = draw.bounds(names, self._target)
                names[draw.name] = min(max(value, low), max(low, high))
            else:
                low, high = draw.size_bounds(names, self._target)
                length = len(drawing.names[draw.name])
                first = min(max(value, low), max(low, high))
                names[draw.name] = (first, *([min(max(1, low), max(low, high))] * (length - 1)))[:length]
        return {**drawing.names, **names}

    def classes(self, names: Mapping[str, Any], picks: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """What a drawing's ranks and attributes are to a `Configuration`: factors with their labels."""
        for step in self._steps:
            if not step.factor:
                continue
            draw = step.draw
            if draw.kind == "choice":
                if draw.name in picks:
                    yield step.factor, choice_label(picks[draw.name])
            elif draw.kind == "integer":
                yield step.factor, attribute_class(names[draw.name], *draw.bounds(names, self._target))
            else:
                yield step.factor, length_class(len(names[draw.name]))

    def reassign(self, drawing: Drawing, change: CaseChange, *, moves_runs: bool = False) -> dict[str, Any]:
        """The names of a drawing with a change's assignments; later names are derived anew or moved into their bounds.

        Runs keep their sizes, valid or not, unless `moves_runs`.
        """
        names: dict[str, Any] = {}
        changed = False
        for step in self._steps:
            draw = step.draw
            if draw.name in change.assign:
                names[draw.name] = _bounded(draw, change.assign[draw.name])
                changed = True
            elif draw.kind == "dtype":
                names[draw.name] = change.dtypes.get(draw.of, drawing.dtypes[draw.of])
                changed = changed or names[draw.name] != drawing.names[draw.name]
            elif moves_runs and draw.kind == "run":
                names[draw.name] = self._moved_run(draw, names, drawing.names[draw.name])
            else:
                names[draw.name] = _moved(draw, names, drawing) if changed else drawing.names[draw.name]
        return {**drawing.names, **names}

    def _moved_run(self, draw: Draw, names: Mapping[str, Any], old: Sequence[int]) -> tuple[int, ...]:
        """The sizes of a run within its bounds."""
        (fewest, most), (low, high) = _lengths(draw, names, self._target), draw.size_bounds(names, self._target)
        sizes = [*old, *[low] * (fewest - len(old))][:most]
        return tuple(min(max(size, low), high) for size in sizes)


def _root(number: int, degree: int) -> int:
    """The largest integer whose power of that degree is not above the number."""
    root = round(math.pow(number, 1 / degree))
    return root - (math.prod([root] * degree) > number)


def _moved(draw: Draw, names: Mapping[str, Any], drawing: Drawing) -> Any:  # noqa: ANN401 - what the draw gives
    """A draw's value in a drawing, derived anew or moved into its bounds where names before it have changed."""
    old, target = drawing.names[draw.name], drawing.target
    if draw.kind == "integer":
        low, high = draw.bounds(names, target)
        return min(max(old, low), max(low, high))
    if draw.kind == "choice" and draw.name not in drawing.picks:
        return old
    if draw.kind in _COMPUTED:
        return _computed(draw, names, target, drawing.picks.get(draw.name, 0))
    if draw.kind == "broadcast":
        return _fitted(old, draw.given(names, target))
    if draw.kind == "factorisation":
        product = draw.given(names, target)
        return old if math.prod(old) == product else (product, *([1] * (len(old) - 1)))[: len(old)]
    if draw.kind == "partition":
        total, least = draw.given(names, target), draw.size_bounds(names, target)[0]
        low, high = _lengths(draw, names, target)
        length = min(max(len(old), low), high)
        if length == len(old) and sum(old) == total and min(old, default=least) >= least:
            return old
        return (total - least * (length - 1), *([least] * (length - 1)))[:length]
    return old


def _elements(value: Any) -> int:  # noqa: ANN401 - what a draw gave
    """How many elements a size or run stands for; 1 for a text, which a condition of a shape may read."""
    if isinstance(value, int):
        return value if value > 0 else 1
    if isinstance(value, str):
        return 1
    return math.prod(value) if isinstance(value, tuple) else max(value, 1)


def _fitted(old: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes with those changed that no longer broadcast with another shape."""
    places = range(len(other) - len(old), len(other))
    return tuple(
        size if place < 0 or 1 in (size, other[place]) else other[place]
        for place, size in zip(places, old, strict=True)
    )


def _draws_sizes(draw: Draw, target: Target) -> bool:
    """Whether a draw has a size to choose: the sizes of a run of ones take nothing from those before it."""
    if draw.kind != "run" or draw.sizes is None:
        return draw.kind == "integer"
    try:
        low, high = draw.size_bounds({}, target)
    except UNDEFINED:
        return True
    return low < high


def _factor(draw: Draw, *, is_size: bool) -> str:
    if draw.is_run:
        return f"rank:{draw.name}"
    return f"attribute:{draw.name}" if draw.kind == "choice" or (draw.kind == "integer" and not is_size) else ""


def choice_label(number: int) -> str:
    """What an entry of `one_of` is called."""
    return f"choice {number + 1}"


def _attribute(choices: Choices, low: int, high: int, factor: str, configuration: Configuration) -> int:
    words = configuration.allowed.get(factor, ())
    ranges = [found for word in words if (found := class_range(word, low, high)) is not None]
    if ranges:
        low, high = choices.pick(ranges)
    return attribute_value(choices, low, high)


def _lengths(draw: Draw, names: Mapping[str, Any], target: Target) -> tuple[int, int]:
    """The least and the largest number of dimensions of a run."""
    low, high = draw.bounds(names, target)
    if low > MAX_LENGTH:
        raise UsageError(f"draw {quote(draw.name)}: a run of {low} dimensions; expected at most {MAX_LENGTH}")
    return low, min(high, MAX_LENGTH)


def _computed(draw: Draw, names: Mapping[str, Any], target: Target, pick: int = 0) -> Any:  # noqa: ANN401
    """What a derived name is, or that entry of a choice."""
    return _bounded(draw, draw.choices[pick](names, target) if draw.choices else draw.given(names, target))


def _bounded(draw: Draw, value: Any) -> Any:  # noqa: ANN401 - whatever an expression gave
    """The value, unless it is a number so long that those computed from it could exhaust the machine."""
    if type(value) is int and value.bit_length() <= MAX_BITS:
        return value
    if isinstance(value, (int, Fraction)):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if bits > MAX_BITS:
            raise UsageError(f"draw {quote(draw.name)}: a number of {bits} bits; expected at most {MAX_BITS}")
    return value
