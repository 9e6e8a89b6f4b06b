"""How fast a campaign is, and how far each of its operators has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.campaign.fleet.inflight_log import Position
from aclnn_cts.campaign.status import EXAMINES, OperatorStatus, UnderWay

RATE_SECONDS = 30.0
"""Of which the rate is."""


@dataclass(slots=True)
class Progress:
    """Figures of a campaign that are worked out while it runs."""

    memory: Memory
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    """Moments of the last half minute, in seconds of this session, each with the cases that had ended."""
    _operators: dict[str, OperatorStatus] = field(default_factory=dict)
    _still: dict[int, tuple[tuple[int, int], float]] = field(default_factory=dict)
    """By slot its chunk and the counter of its worker's notes, and since when both have been the same."""

    def rate(self, seconds: float) -> float:
        """Cases a second lately. `seconds`: of this session, now; the first call begins the count."""
        cases = self.memory.writer.summary.total.cases
        self._recent.append((seconds, cases))
        while len(self._recent) > 2 and seconds - self._recent[0][0] > RATE_SECONDS:
            self._recent.popleft()
        since, had = self._recent[0]
        return (cases - had) / max(seconds - since, 1e-3)

    def under_way(
        self, positions: Sequence[Position | None], tasks: Mapping[int, int], seconds: float
    ) -> tuple[UnderWay | None, ...]:
        """What each slot is at, and since when without news. `tasks`: by slot its chunk, EXAMINES for a finding."""
        found: list[UnderWay | None] = []
        for slot, position in enumerate(positions):
            if (task := tasks.get(slot)) is None:
                self._still.pop(slot, None)
                found.append(None)
                continue
            mark = task, -1 if position is None else position.counter
            if self._still.get(slot, ((0, 0), 0.0))[0] != mark:
                self._still[slot] = mark, seconds
            known = position is not None and position.chunk == task != EXAMINES
            judged, of = (position.first, position.total) if position is not None and known else (0, 0)
            found.append(UnderWay(task, judged, of, seconds - self._still[slot][1]))
        return tuple(found)

    def changed(self, name: str) -> OperatorStatus:
        """An operator's figures, worked out anew: one of its chunks is finished."""
        self._operators.pop(name, None)
        return self.of(name)

    def of(self, name: str) -> OperatorStatus:
        """An operator's figures."""
        if name not in self._operators:
            learned = self.memory.so_far(name)
            coverage = self.memory.coverage[name]
            summary = self.memory.writer.summary.operator(name)
            counts = summary.total
            self._operators[name] = OperatorStatus(
                name=name,
                cases=counts.cases,
                failed=counts.failed - counts.waived,
                worst=learned.worst,
                coverage=coverage.shares(learned.covered, summary),
                factors=coverage.by_factor(learned.covered),
            )
        return self._operators[name]
