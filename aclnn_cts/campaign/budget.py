"""Whose turn it is on a worker that is free: a chunk, or a finding that waits to be looked into."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FINDING_SECONDS = 5.0
"""What a finding is reckoned at, until some were looked into: the mean of those then, where it is more."""

COSTLY_SECONDS = 120.0
"""What a finding is reckoned at whose trials hang."""


@dataclass(slots=True)
class Turns:
    """Shares the seconds of all workers: findings get half of them at most as long as there are chunks.

    Seconds, not workers: a single worker that looked into each finding at once would try nothing else for hours.
    """

    clock: Callable[[], float] = time.monotonic
    _spent: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})
    """Seconds that went to findings (True) and to chunks."""
    _number: int = 0
    """Findings that were looked into."""
    _running: dict[int, tuple[bool, float]] = field(default_factory=dict)
    """By slot: whether it is a finding, and since when."""
    _last: dict[int, bool] = field(default_factory=dict)
    """By slot: whether its last turn was a finding's."""

    def begin(self, slot: int, *, finding: bool) -> None:
        """A slot has been given work."""
        self._running[slot] = (finding, self.clock())
        self._last[slot] = finding

    def end(self, slot: int) -> None:
        """It is done, or lost."""
        if slot in self._running:
            finding, began = self._running.pop(slot)
            self._spent[finding] += self.clock() - began
            self._number += finding

    def of_finding(self, slot: int, *, living: int, costly: bool) -> bool:
        """Whether a finding is next on a slot while chunks wait too.

        - `living`: slots that are not out; half of them look into findings at a time.
        - `costly`: the finding takes minutes.
        """
        examining = sum(finding for finding, _ in self._running.values())
        if examining >= max(living // 2, 1) or self._last.get(slot, False):
            return False
        now = self.clock()
        spent = dict(self._spent)
        for finding, began in self._running.values():
            spent[finding] += now - began
        mean = self._spent[True] / self._number if self._number else 0.0
        reckoned = COSTLY_SECONDS if costly else min(max(mean, FINDING_SECONDS), COSTLY_SECONDS)
        return spent[True] + reckoned <= spent[False]
