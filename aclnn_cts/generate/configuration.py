"""The decisions behind one valid case, and what narrows them in swarm testing (Groce et al., ISSTA 2012).

It favours some features of cases and omits others, by factor: `dtype`, `format`, `mode`, `size`, `layout:<tensor>`,
`data:<tensor>`, `rank:<run>` and `attribute:<name>`. A factor that it does not name is drawn as ever, and
so is one of whose options none can be had in a drawing (a mode that the dtype does not have): every case stays valid by
construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec

from aclnn_cts.core.case import contiguous_strides
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.evaluator import Evaluator

DATA_KINDS = ("exact", "realistic", "hostile")


@dataclass(frozen=True, slots=True)
class RecipeTemplate:
    """A recipe with its parameters; a compiled expression among them is evaluated over the call's arguments."""

    recipe: str
    fixed: Mapping[str, Any]
    computed: Mapping[str, Any]
    when: Evaluator | None = None
    """Of which calls; None: of all."""

    def fits(self, names: Mapping[str, Any], target: Target) -> bool:
        """Whether a call with these attributes may have such contents."""
        return self.when is None or bool(self.when(names, target))


MAX_DATA_ELEMENTS = 3 << 21
"""A case with a larger tensor is a descriptor alone: it has no data and only its first phase is called.

The largest tensor of a fixed shape, a compressed mask of attention, has as many.
"""


class Drawing(msgspec.Struct, frozen=True):
    """One draw of an operator's free choices. Plain values, so that a changed copy is another drawing."""

    target: Target
    dtypes: Mapping[str, str]
    formats: Mapping[str, str]
    names: Mapping[str, Any]
    """Sizes, attributes and runs (tuples) by draw."""
    picks: Mapping[str, int]
    """Which of its choices a draw of kind `choice` took; without one, its value is none of them, and stays."""
    views: Mapping[str, int]
    """Number of the view (`views.VIEWS`) of each tensor that is not contiguous."""
    data: Mapping[str, RecipeTemplate]
    seed: int
    scalars: Mapping[str, str] = {}
    """Dtypes of the scalars, which follow no row of the tables."""
    nulls: tuple[str, ...] = ()
    """Optional inputs that are null pointers."""
    given: tuple[str, ...] = ()
    """Outputs that have memory even where the arguments exclude them."""
    most_data: int = MAX_DATA_ELEMENTS
    """Elements of the largest input with data."""


_Entries: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]

_FLOATS: _Entries = {
    "exact": (
        {"recipe": "integers", "low": -4, "high": 4},
        {"recipe": "integers", "low": -9, "high": 9, "exponent": -3},
        {"recipe": "integers", "low": -100, "high": 100},
        {"recipe": "integers", "low": 1, "high": 9},
    ),
    "realistic": (
        {"recipe": "normal"},
        {"recipe": "normal", "std": 0.05},
        {"recipe": "outliers"},
        {"recipe": "uniform", "low": -2, "high": 2},
        {"recipe": "uniform", "low": 1, "high": 2},
        {"recipe": "uniform", "low": -2, "high": -1},
    ),
    "hostile": (
        {"recipe": "wide"},
        {"recipe": "cancel"},
        {"recipe": "dominated"},
        {"recipe": "subnormal"},
        {"recipe": "large"},
        {"recipe": "special"},
        {"recipe": "zeros"},
        {"recipe": "one_hot"},
    ),
}
_WIDEST: Mapping[str, Any] = {"recipe": "integers", "low": -(1 << 53) + 1, "high": (1 << 53) - 1}
"""Beyond 2^24, where FLOAT drops digits, and within what float64 holds; cut to the range of the dtype."""
_NUMBERS: _Entries = {
    "exact": ({"recipe": "integers", "low": -4, "high": 4}, {"recipe": "integers", "low": 1, "high": 9}, _WIDEST),
    "realistic": ({"recipe": "integers", "low": -100, "high": 100}, _WIDEST),
    "hostile": (_WIDEST, {"recipe": "zeros"}),
}
_INDICES: _Entries = dict.fromkeys(DATA_KINDS, ({"recipe": "indices", "low": 0, "high": 1},))

DEFAULT_DATA: Mapping[str, _Entries] = {"float": _FLOATS, "number": _NUMBERS, "other": _INDICES}
"""Contents of an input for which the spec names none, as it would name them, by kind of dtype and kind of data.

Integers are numbers where the parameter may be floating too; otherwise they count or point at something."""


T = TypeVar("T")

SIZE_CLASSES: Mapping[str, tuple[int, int]] = {"1": (1, 1), "2-16": (2, 16), "17-160": (17, 160), "161-": (161, 1024)}
"""Elements of the largest tensor, least and most; the last class is open to above."""

LENGTH_CLASSES = (*map(str, range(9)), "9-")
"""Lengths of runs: each that the shape of a tensor may have, and those that a list alone may have."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Labels of the options that may be chosen, by factor. A label that stands twice is chosen twice as often."""

    allowed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def allowed_options(self, factor: str, options: Sequence[T], label: Callable[[T], str] = str) -> Sequence[T]:
        """Those of the options that the configuration allows; all where it allows none of them, or says nothing."""
        wanted = self.allowed.get(factor)
        if wanted is None:
            return options
        named: dict[str, list[T]] = {}
        for option in options:
            named.setdefault(label(option), []).append(option)
        return [option for word in wanted for option in named.get(word, ())] or options


ANYTHING = Configuration()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A configuration made ready for one sampler."""

    configuration: Configuration
    dtype_rows: Sequence[Mapping[str, str]]
    format_rows: Sequence[Mapping[str, str]]
    budgets: Sequence[int]
    views: Mapping[str, Sequence[int]]
    """Numbers of views by tensor, for those whose layout the configuration names."""
    templates: Mapping[tuple[str, str], Sequence[RecipeTemplate]]
    """By input and family of dtypes, for those whose data the configuration names."""


def row_labels(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A label for each row of dtypes or formats: the columns that differ from one another, with a stroke between."""
    columns: dict[tuple[Any, ...], str] = {}
    for name in rows[0] if rows else ():
        columns.setdefault(tuple(row[name] for row in rows), name)
    return tuple("/".join(_shortened([row[name] for name in columns.values()])) for row in rows)


def _shortened(words: Sequence[str]) -> Iterable[str]:
    return words[:1] if len(set(words)) == 1 else words


def size_class(elements: int) -> str:
    """The class of a case by the elements of its largest tensor; an empty one is with those of one element."""
    for name, (_, most) in SIZE_CLASSES.items():
        if elements <= most:
            return name
    return name


def length_class(length: int) -> str:
    """The class of a run by its length."""
    return LENGTH_CLASSES[min(length, len(LENGTH_CLASSES) - 1)]


Mode: TypeAlias = int
"""The value of an operator's mode attribute; 0 where it has none."""


View: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...]]
"""Strides, offset and storage shape."""

VIEWS = (
    "contiguous",
    "transposed",
    "gaps",
    "offset",
    "stepped",
    "transposed with gaps and offset",
    "first axes swapped",
    "channels last",
    "gaps in every axis",
    "reversed",
    "first axis expanded",
    "one element expanded",
)
EXPANDED = (VIEWS.index("first axis expanded"), VIEWS.index("one element expanded"))
"""Views of an input in which elements share a place: what broadcasting gives, and the gradient of a sum."""


def lay_out(shape: tuple[int, ...], view: int) -> View | None:
    """The view of the given number for a shape; None where it is contiguous (number 0, or no dimension to vary)."""
    rank = len(shape)
    if view == 0 or 0 in shape or rank == 0:
        return None
    if view in EXPANDED:
        # The storage holds all elements: a call that reads it as contiguous stays inside.
        kept = contiguous_strides(shape) if view == EXPANDED[0] else (0,) * rank
        return (0, *kept[1:]), 0, shape
    order = _order(rank, VIEWS[view])
    step = 2 if view == 4 else 1
    padding = 3 if view in (2, 5) else 0
    lead = 1 if view in (3, 5) else 0
    everywhere = 1 if view == 8 else 0
    storage = tuple(
        shape[axis] * (step if place == rank - 1 else 1)
        + (padding if place == rank - 1 else 0)
        + (lead if place == 0 else 0)
        + everywhere
        for place, axis in enumerate(order)
    )
    by_place = contiguous_strides(storage)
    strides = [0] * rank
    for place, axis in enumerate(order):
        strides[axis] = by_place[place] * (step if place == rank - 1 else 1)
    offset = lead * by_place[0] + (1 if view == 5 else 0)
    return tuple(strides), offset, storage


def _order(rank: int, view: str) -> tuple[int, ...]:
    """The axes of a tensor from the outermost in memory to the innermost."""
    order = tuple(range(rank))
    if view.startswith("transposed"):
        return (*order[:-2], *order[-2:][::-1])
    if view == "first axes swapped":
        return (*order[:2][::-1], *order[2:])
    if view == "channels last":
        return (*order[:1], *order[2:], *order[1:2])
    return order[::-1] if view == "reversed" else order
