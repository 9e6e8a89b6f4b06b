"""What drawing showed to be wrong with a spec, and the drawings that lint looks at: also those at ends of ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.choices import ChoiceError, Choices, StreamChoices
from aclnn_cts.generate.drawing import Drawing
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.speclang.model import Spec


class ExtremeChoices(Choices):
    """Turns three in four of another source's integers into the lower or the upper bound."""

    __slots__ = ("_source",)

    def __init__(self, source: Choices) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        """The lower bound, the upper bound (three in eight each), or the source's integer."""
        value = self._source.integer(low, high)
        side = self._source.integer(0, 7)
        return low if side < 3 else high if side < 6 else value

    def chance(self, numerator: int, denominator: int) -> bool:
        """As the source has it: a chance has no ends."""
        return self._source.chance(numerator, denominator)


FAILURES = (*UNDEFINED, ArithmeticError, ChoiceError, UsageError, ValueError)
"""How a draw or a shape that has no value ends."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that drawing showed to be wrong with an entry of a spec file."""

    section: str
    """The list of the file in which the entry stands: `draws`, `parameters` or `constraints`."""
    name: str
    what: str
    advice: str
    seen: str = field(default="", compare=False)
    """How often, and in which drawing first; it differs from product to product."""


@dataclass(slots=True)
class Tally:
    """In how many drawings each doubt arose, and which of them showed it first."""

    seen: dict[tuple[str, str, str], set[int]] = field(default_factory=dict)
    shown: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, number: int, section: str, name: str, what: str, example: str) -> None:
        """Count a doubt about one drawing, once."""
        key = (section, name, what)
        self.seen.setdefault(key, set()).add(number)
        self.shown.setdefault(key, example)

    def doubts(self, of: int, advice: str) -> list[Doubt]:
        """What arose, each with the same advice."""
        counts = {key: "every one" if len(numbers) == of else len(numbers) for key, numbers in self.seen.items()}
        return [
            Doubt(*key, advice, f" in {count} of {of} drawings, first with {self.shown[key]}")
            for key, count in counts.items()
        ]


def decisions(spec: Spec, product: str, drawings: int, seed: int) -> Iterator[Choices]:
    """The decisions behind lint's drawings of a product; every second keeps to the ends of the ranges."""
    for index in range(drawings):
        stream = StreamChoices(seed, f"{spec.operator}/{product}/lint", index)
        yield ExtremeChoices(stream) if index % 2 else stream


def reason(error: Exception) -> str:
    """What an exception says, or its name where it says nothing."""
    return str(error) or type(error).__name__


def drawn(drawing: Drawing) -> str:
    """The names of a drawing, for a message."""
    return assignments(drawing.names)


def assignments(names: Mapping[str, Any]) -> str:
    """Names and their values, for a message."""
    text = ", ".join(f"{name} = {list(value) if isinstance(value, tuple) else value}" for name, value in names.items())
    return text or "nothing drawn before it"
