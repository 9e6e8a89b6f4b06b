"""Decisions that keep to the ends of their ranges: where a bound that can fail fails first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from aclnn_cts.generate.choices import Choices

__all__ = ["ExtremeChoices"]

T = TypeVar("T")


class ExtremeChoices:
    """Turns three in four of another source's integers into the lower or the upper bound."""

    __slots__ = ("_source",)

    def __init__(self, source: Choices) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        """The lower bound, the upper bound (three in eight each), or the source's integer."""
        value = self._source.integer(low, high)
        side = self._source.integer(0, 7)
        return low if side < 3 else high if side < 6 else value

    def pick(self, sequence: Sequence[T]) -> T:
        """An element, the first and the last above all."""
        return sequence[self.integer(0, len(sequence) - 1)]

    def chance(self, numerator: int, denominator: int) -> bool:
        """As the source has it: a chance has no ends."""
        return self._source.chance(numerator, denominator)
