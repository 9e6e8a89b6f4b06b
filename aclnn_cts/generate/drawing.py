"""The decisions behind one valid case, before they become arguments: what a break changes and a shrink reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aclnn_cts.core.case import Data
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


_FLOATS: Mapping[str, tuple[Data, ...]] = {
    "exact": (
        Data(recipe="integers", low=-4, high=4),
        Data(recipe="integers", low=-9, high=9, exponent=-3),
        Data(recipe="integers", low=-100, high=100),
        Data(recipe="integers", low=1, high=9),
    ),
    "realistic": (
        Data(recipe="normal"),
        Data(recipe="normal", std=0.05),
        Data(recipe="uniform", low=-2, high=2),
        Data(recipe="uniform", low=1, high=2),
        Data(recipe="uniform", low=-2, high=-1),
    ),
    "hostile": (
        Data(recipe="wide"),
        Data(recipe="cancel"),
        Data(recipe="dominated"),
        Data(recipe="subnormal"),
        Data(recipe="large"),
        Data(recipe="special"),
        Data(recipe="zeros"),
        Data(recipe="one_hot"),
    ),
}
_INTEGERS: Mapping[str, tuple[Data, ...]] = dict.fromkeys(DATA_KINDS, (Data(recipe="indices", low=0, high=1),))

DEFAULT_TEMPLATES: Mapping[str, Mapping[str, tuple[Data, ...]]] = {"float": _FLOATS, "other": _INTEGERS}
"""Contents of an input for which the spec names none, by kind of dtype and kind of data."""
