"""Decisions that were recorded, given back one by one."""

from __future__ import annotations

from collections.abc import Sequence

from aclnn_cts.generate.choices import Choices


class ReplayChoices(Choices):
    """Demands that each draw asks for bounds that the recorded value lies in."""

    def __init__(self, values: Sequence[int]) -> None:
        self.remaining = list(values)

    def integer(self, low: int, high: int) -> int:
        value = self.remaining.pop(0)
        assert low <= value <= high
        return value
