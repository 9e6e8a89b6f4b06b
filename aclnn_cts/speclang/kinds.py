"""What kinds of constraint give: a test, words, and changes that break them.

Breaking is described and not done here: a rule yields `CaseChange`s. `generate` applies them to the drawing of a valid
case, and proves what is broken by evaluating every constraint on the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.target import Target

Test: TypeAlias = Callable[[Mapping[str, Any], Target], bool | None]
"""True: holds, False: broken; raises one of `expression.UNDEFINED` where it has no value."""


class Strength:
    """How strongly a document promises what follows from breaking a constraint."""

    LISTED = "listed"
    LIMIT = "limit"
    OPEN = "open"
    ACCURACY = "accuracy"
    """Accuracy alone is withdrawn: success stays promised, and values are not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """One change to the drawing of a valid case. What is not named stays; what is derived from it follows."""

    text: str
    """The change, for a person: what, from what, to what."""
    null: str | None = None
    given: str | None = None
    """A tensor that no valid call gives, which the call has."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    assign: Mapping[str, Any] = field(default_factory=dict)
    """Draws set to values; later draws keep theirs, moved into their bounds where these no longer admit them."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    """How many tensors a list has."""
    axes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """One dimension of a tensor, or one item of an int array, set to a value."""
    values: Mapping[str, Argument] = field(default_factory=dict)
    """Attributes and arrays set outright."""
    strided: str | None = None
    data: Mapping[str, Data] = field(default_factory=dict)
    call_null: tuple[str, ...] = ()


class Words(NamedTuple):
    """A few words and symbols for a rule, for tables and messages."""

    en: str
    zh: str


def tensor_of(case: Case, name: str) -> Tensor:
    """A tensor of a case that holds all constraints, where it is there."""
    value = case.arguments[name]
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is no tensor in a case that should hold all constraints")
    return value
