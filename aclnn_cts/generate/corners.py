"""Corners of what a document allows: values, or cells of values, that calls should be made at.

Attributes are taken from C types and rules, not from draws: a value that the draws leave out is a corner too.
`corner_calls` makes a call have a corner, `corner_walk` chooses which corners the calls of a plan have.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

import msgspec

from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.generate.choices import Choices, StreamChoices
from aclnn_cts.generate.configuration import DATA_KINDS, VIEWS, row_labels
from aclnn_cts.generate.geometry import find_plane, relations_of
from aclnn_cts.generate.regime_cells import reachable_regimes
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.generate.sizes import QUICK, STANDARD
from aclnn_cts.speclang.kinds_number import C_RANGES
from aclnn_cts.speclang.model import Draw, Parameter

_LONGEST_WINDOW = 255
"""Of a kernel, stride, padding or dilation: the limit that documents state where they do, and what a call can pay."""
_MOST_DIMENSIONS = 8
"""Of a tensor, as documents state it."""


class FactorKind(Enum):
    """What a factor is about. A drawing begins with `REGIME`, `DTYPES` and `DATA`; the others change it."""

    REGIME = auto()
    DTYPES = auto()
    """A row of dtypes and a precision mode."""
    DATA = auto()
    FORMATS = auto()
    SIZES = auto()
    PLANE = auto()
    """How the sizes of two tensors relate (`geometry`)."""
    VIEW = auto()
    NULL = auto()
    """An optional parameter."""
    MASK = auto()
    """An array that says which outputs are computed."""
    MEMORY = auto()
    """An output that the call does not compute."""
    CONTENTS = auto()
    """The recipe of an input of integers."""
    ATTRIBUTE = auto()
    FIRST_ITEM = auto()
    """Of an array."""
    LAST_ITEM = auto()
    RANK = auto()
    """The length of a run."""


class RelativeSize(Enum):
    """A size beside the others of its call."""

    LARGE = auto()
    ONE = auto()


class SizeCorner(msgspec.Struct, frozen=True):
    """Of one free size, or of all (`name` is empty)."""

    name: str
    relative: RelativeSize


class NumberRange(msgspec.Struct, frozen=True):
    """A cell of numbers, both ends included."""

    low: float
    high: float

    def __str__(self) -> str:
        low, high = (str(end) if isinstance(end, int) else f"{end:.4g}" for end in (self.low, self.high))
        return low if low == high else f"{low} to {high}"

    def draw(self, choices: Choices) -> float:
        """A number of the cell: an integer where its ends are, else one of 1,024 evenly spaced."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return choices.integer(self.low, self.high)
        return self.low + (self.high - self.low) * choices.integer(0, 1023) / 1024


class Corner(msgspec.Struct, frozen=True):
    """One option of a factor: a label, and what is chosen."""

    label: str
    value: Any


class Factor(msgspec.Struct, frozen=True):
    """What corners are options of."""

    kind: FactorKind
    of: str
    """The draw or parameter; empty where it is the whole call."""
    corners: tuple[Corner, ...]

    @property
    def name(self) -> str:
        """What a person reads."""
        words = self.kind.name.lower().replace("_", " ")
        return self.of if self.kind is FactorKind.ATTRIBUTE else f"{words} {self.of}".strip()


def _integers(least: int, most: int) -> tuple[Corner, ...]:
    """Corners of an integer: its type's ends, -1 to 3, and cells between powers of 4."""
    cells = [NumberRange(4**power, 4 ** (power + 1) - 1) for power in range(1, 8)]
    others = [
        NumberRange(1 << 16, (1 << 31) - 1),
        NumberRange(most, most),
        NumberRange(-1, -1),
        NumberRange(-16, -2),
        NumberRange(-(1 << 16), -17),
    ]
    spans = [*(NumberRange(value, value) for value in range(4)), *cells, *others, NumberRange(least, least)]
    return tuple(Corner(str(span), span) for span in dict.fromkeys(spans) if least <= span.low and span.high <= most)


_REALS = (
    NumberRange(2.0**-40, 2.0**-20),
    NumberRange(2.0**-20, 2.0**-10),
    NumberRange(2.0**-10, 0.5),
    NumberRange(0.5, 1.0),
    NumberRange(1.0, 16.0),
)
"""Cells of a floating attribute's magnitude: lost in FLOAT beside 1, lost in FLOAT16, neither, and either side of 1."""
_NUMBERS = (
    *(Corner(str(value), NumberRange(value, value)) for value in (0.0, 1.0, -1.0)),
    *(Corner(str(span), span) for span in (*_REALS, *(NumberRange(-span.high, -span.low) for span in _REALS[2:]))),
)


def _alternatives(draw: Draw, item: Parameter | None) -> tuple[Corner, ...]:
    """Corners of a draw of alternatives: those of a Boolean; of an attribute its alternatives and those of its type."""
    texts = [str(evaluator.text) for evaluator in draw.choices]
    listed = {text: Corner(text, number) for number, text in reversed(list(enumerate(texts)))}
    if item is None:
        return tuple(listed.values()) if {text.lower() for text in listed} == {"true", "false"} else ()
    if item.kind == "bool":
        return (Corner("false", NumberRange(0, 0)), Corner("true", NumberRange(1, 1)))
    of_type: Iterable[Corner] = ()
    if item.kind == "int":
        of_type = _integers(*C_RANGES[item.c_type])
    elif item.kind == "double":
        of_type = _NUMBERS
    # An alternative that is a corner of the type is the latter.
    return tuple({**listed, **{corner.label: corner for corner in of_type}}.values())


def factors_of(sampler: Sampler, *, heavy: bool = False) -> tuple[Factor, ...]:
    """The factors of an operator's calls for a target, each with its corners; those of one option are left out.

    `heavy`: with the size regime of that name.
    """
    of_call = (*_of_calls(sampler, heavy=heavy), *_of_parameters(sampler), *_of_draws(sampler))
    return tuple(factor for factor in of_call if len(factor.corners) > 1)


def _of_calls(sampler: Sampler, *, heavy: bool) -> Iterator[Factor]:
    """Those of a call as a whole."""
    yield Factor(FactorKind.DTYPES, "", _number_equal_labels(_dtypes(sampler)))
    formats = [Corner("/".join(dict.fromkeys(row.values())), number) for number, row in enumerate(sampler.format_rows)]
    yield Factor(FactorKind.FORMATS, "", _number_equal_labels(formats))
    regimes = reachable_regimes(sampler.spec, STANDARD if heavy else QUICK)
    yield Factor(FactorKind.REGIME, "", tuple(Corner(regime.value, regime) for regime in regimes))
    yield Factor(FactorKind.DATA, "", tuple(Corner(kind, kind) for kind in DATA_KINDS))
    free = sampler.names.free_sizes()
    sizes = [SizeCorner(name, relative) for name in free for relative in RelativeSize]
    together = [Corner("all 32 or more", SizeCorner("", RelativeSize.LARGE))] if len(free) > 1 else []
    words = {RelativeSize.LARGE: "large", RelativeSize.ONE: "= 1"}
    alone = [Corner(f"{size.name} {words[size.relative]}", size) for size in sizes]
    yield Factor(FactorKind.SIZES, "", (*together, *alone))
    plane = find_plane(sampler)
    relations = relations_of(plane) if plane is not None else ()
    yield Factor(FactorKind.PLANE, "", tuple(Corner(str(relation), relation) for relation in relations))
    for name in sampler.strided:
        yield Factor(FactorKind.VIEW, name, tuple(Corner(VIEWS[view], view) for view in (0, *sampler.views_of(name))))


def _dtypes(sampler: Sampler) -> Iterator[Corner]:
    """Each row of dtypes with each mode that it supports."""
    modes, product = sampler.spec.modes, sampler.target.product
    for number, (row, label) in enumerate(zip(sampler.dtype_rows, row_labels(sampler.dtype_rows), strict=True)):
        for mode in modes.supported(product, modes.dtype_of(row)) if modes is not None else (0,):
            yield Corner(f"{label} {modes.names[mode]}" if modes is not None else label, (number, mode))


def _number_equal_labels(corners: Iterable[Corner]) -> tuple[Corner, ...]:
    """The corners, those that look alike with their numbers in the label."""
    listed = tuple(corners)
    times = Counter(corner.label for corner in listed)
    return tuple(
        Corner(f"{corner.label} ({number})", corner.value) if times[corner.label] > 1 else corner
        for number, corner in enumerate(listed)
    )


def _of_parameters(sampler: Sampler) -> Iterator[Factor]:
    """Those of tensors that may be null pointers, masks, outputs that a mask excludes, and inputs of integers."""
    spec = sampler.spec
    given, null = Corner("given", 0), Corner("null", 1)
    for item in spec.parameters:
        if item.optional:
            yield Factor(FactorKind.NULL, item.name, (given, null))
        if item.kind == "bool_array" and item.shape is not None and not item.is_never_given(sampler.target):
            length = len(sampler.shape(item.name, sampler.draw(StreamChoices(0, item.name, 0)).names))
            masks = itertools.product((False, True), repeat=length)
            yield Factor(FactorKind.MASK, item.name, tuple(Corner(_digits(mask), mask) for mask in masks))
    for name in sampler.excludable:
        yield Factor(FactorKind.MEMORY, name, (given, null))
    for name in spec.inputs:
        if all(DTYPES[row[name]].kind in ("signed", "unsigned") for row in sampler.dtype_rows):
            recipes = dict.fromkeys(template.recipe for template in sampler.templates(name, "other"))
            yield Factor(FactorKind.CONTENTS, name, tuple(Corner(recipe, recipe) for recipe in recipes))


def _digits(mask: Sequence[bool]) -> str:
    return "".join("01"[bit] for bit in mask)


def _of_draws(sampler: Sampler) -> Iterator[Factor]:
    """Those of free names that are no sizes: attributes, axes of windows; and the ranks of all runs."""
    spec = sampler.spec
    parameters = {item.name: item for item in spec.parameters if not item.holds_tensors}
    mode = spec.modes.attribute if spec.modes is not None else ""
    for draw in spec.draws:
        item = parameters.get(draw.name)
        if draw.kind == "choice" and draw.name != mode:
            yield Factor(FactorKind.ATTRIBUTE, draw.name, _alternatives(draw, item))
        elif draw.kind == "integer" and item is not None and draw.name != mode:
            yield Factor(FactorKind.ATTRIBUTE, draw.name, _integers(*C_RANGES[item.c_type]))
        elif draw.is_run:
            ranks = range(_MOST_DIMENSIONS + 1)
            yield Factor(FactorKind.RANK, draw.name, tuple(Corner(str(rank), rank) for rank in ranks))
            if draw.kind == "run" and sampler.names.is_attribute(draw.name):
                items = _integers(-1, _LONGEST_WINDOW)
                yield Factor(FactorKind.FIRST_ITEM, draw.name, items)
                yield Factor(FactorKind.LAST_ITEM, draw.name, items)
