"""The decisions behind one valid case, before they become arguments: what a break changes and a shrink reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from aclnn_cts.core.target import Target

DATA_KINDS = ("exact", "realistic", "hostile")


@dataclass(frozen=True, slots=True)
class Template:
    """A recipe with its parameters; a compiled expression among them is evaluated over the call's arguments."""

    recipe: str
    fixed: Mapping[str, Any]
    computed: Mapping[str, Any]


class Drawing(msgspec.Struct, frozen=True):
    """One draw of an operator's free choices. Plain values, so that a changed copy is another drawing."""

    target: Target
    dtypes: Mapping[str, str]
    formats: Mapping[str, str]
    names: Mapping[str, Any]
    """Sizes, attributes and runs (tuples) by draw."""
    picks: Mapping[str, int]
    """Which of its choices a draw of kind `choice` took."""
    views: Mapping[str, int]
    """Number of the view (`views.VIEWS`) of each tensor that is not contiguous."""
    data: Mapping[str, Template]
    seed: int
    scalars: Mapping[str, str] = {}
    """Dtypes of the scalars, which follow no row of the tables."""
    nulls: tuple[str, ...] = ()
    """Optional inputs that are null pointers."""


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
_INTEGERS: _Entries = dict.fromkeys(DATA_KINDS, ({"recipe": "indices", "low": 0, "high": 1},))

DEFAULT_DATA: Mapping[str, _Entries] = {"float": _FLOATS, "other": _INTEGERS}
"""Contents of an input for which the spec names none, as it would name them, by kind of dtype and kind of data."""
