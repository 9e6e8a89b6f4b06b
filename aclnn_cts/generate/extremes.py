"""Decisions that keep to the ends of their ranges: where a bound that can fail fails first."""

from __future__ import annotations

from aclnn_cts.generate.choices import Choices, Decisions

__all__ = ["ExtremeChoices"]


class ExtremeChoices(Decisions):
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
