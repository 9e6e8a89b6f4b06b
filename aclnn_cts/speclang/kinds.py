"""What a constraint is: one documented rule that can be evaluated, broken on purpose and described.

A kind of rule is one class with the methods of `Rule`; `speclang.build_rules.KINDS` lists them. Evaluation reads
the arguments of a call alone. Breaking is described and not done here: a rule yields `Way`s; `generate` applies them to
the drawing of a valid case and then proves by evaluating every constraint on the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aclnn_cts.core.case import Argument, Case, Data, Tensor
from aclnn_cts.core.target import Target

if TYPE_CHECKING:
    from aclnn_cts.speclang.model import Spec

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
class Way:
    """One change to the drawing of a valid case. What is not named stays; what is derived from it follows."""

    text: str
    """The change, for a person: what, from what, to what."""
    null: str | None = None
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


@dataclass(frozen=True, slots=True)
class Rule(ABC):
    """A kind of constraint."""

    @property
    @abstractmethod
    def test(self) -> Test:
        """What is evaluated."""

    @abstractmethod
    def ways(self, spec: Spec, case: Case) -> Iterator[Way]:
        """Changes that may break it in a case that holds all, nearest first."""

    def limits(self, spec: Spec, case: Case) -> Iterator[Way]:
        """Changes that put a case on the rule's limits and one step to both sides; nothing for a rule without one."""
        return iter(())

    @abstractmethod
    def describe(self, product: str) -> Words:
        """The rule in both languages, as it is stated for a product."""


@dataclass(frozen=True, slots=True)
class ParameterRule(Rule):
    """A rule on one parameter."""

    of: str


def tensor_of(case: Case, name: str) -> Tensor:
    """A tensor of a case that holds all constraints, where it is there."""
    value = case.arguments[name]
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} is no tensor in a case that should hold all constraints")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One documented rule of an operator."""

    id: str
    kind: str
    rule: Rule
    clauses: tuple[str, ...]
    strength: str
    statuses: tuple[str, ...]
    """What the document promises when it is broken: status names, `ACLNN_ERR_*`, or nothing."""
    products: frozenset[str] | None
    when: Test | None
    when_text: str | None
    requires: tuple[str, ...]
    also: frozenset[str]
    """Limits that a call which breaks it may break besides: what it is promised stays an error."""
    group: str | None
    breaks: tuple[Mapping[str, Any], ...]
    """Assignments to draws or places (`param[axis]`) that break it: compiled expressions over the drawn names."""
    near: tuple[Mapping[str, Any], ...]
    """Assignments that sit on its limit and beside it."""
    unsafe: str | None

    def applies_to(self, product: str) -> bool:
        """Whether the document states it for a product."""
        return self.products is None or product in self.products
