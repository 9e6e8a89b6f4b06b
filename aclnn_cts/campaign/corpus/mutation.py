"""Good cases changed a little: the decisions of one, with some of them drawn anew."""

from __future__ import annotations

from collections.abc import Sequence

from aclnn_cts.generate.choices import Choices, Decisions

__all__ = ["MutatedChoices"]

_TAIL = 1
"""Decisions at the end that are always drawn anew: the seed of the data."""


class MutatedChoices(Decisions):
    """Gives back a parent's decisions, but for those that the source says are to be drawn anew.

    Of 8 cases, 3 keep everything but the data's seed, 3 change up to three decisions elsewhere, and 2 are new from some
    decision on. A value that does not fit its bounds any more, since what went before has changed, is drawn anew too.
    """

    __slots__ = ("_changed", "_cut", "_position", "_source", "_values")

    def __init__(self, source: Choices, values: Sequence[int]) -> None:
        self._source = source
        self._values = values
        self._position = 0
        self._changed: frozenset[int] = frozenset()
        self._cut = max(len(values) - _TAIL, 0)
        style = source.integer(0, 7)
        if self._cut and style > 2:
            places = [source.integer(0, self._cut - 1) for _ in range(1 + source.integer(0, 2))]
            if style > 5:
                self._cut = min(places)
            else:
                self._changed = frozenset(places)

    def integer(self, low: int, high: int) -> int:
        """The parent's decision where it stands and fits, else a fresh one."""
        position = self._position
        self._position = position + 1
        if position < self._cut and position not in self._changed:
            value = self._values[position]
            if low <= value <= high:
                return value
        return self._source.integer(low, high)
