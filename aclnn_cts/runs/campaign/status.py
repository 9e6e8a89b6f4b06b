"""What a campaign shows of itself while it runs: its rate, and the progress of each operator."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.finding import Finding
from aclnn_cts.runs.campaign.campaign_state import CampaignState
from aclnn_cts.runs.campaign.corpus.check_coverage import CoveredShare
from aclnn_cts.store.summary import Summary
from aclnn_cts.workers.notes import WorkerProgress
from aclnn_cts.workers.slots import Slot

T = TypeVar("T")

EXAMINES = -1
"""In the place of a chunk's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStatus:
    """One operator."""

    name: str
    cases: int
    failed: int
    worst: float
    """The largest error of what conforms, as a share of its bound."""
    coverage: Mapping[str, CoveredShare]
    """By sort: constraints, limits, pairs."""
    factors: Mapping[str, CoveredShare]
    """Pairs by factor."""

    @property
    def covered(self) -> CoveredShare:
        """Over all sorts."""
        return sum(self.coverage.values(), CoveredShare(0, 0))


@dataclass(frozen=True, slots=True)
class SlotActivity:
    """What a worker is at."""

    chunk: int
    """EXAMINES: no chunk; it looks into a finding."""
    judged: int
    of: int
    """Trials of the chunk; 0 where the worker has not told them, as on a cluster."""
    still: float
    """Seconds without news of it: a call or a judgement that takes so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStatus:
    """A moment of a campaign."""

    seconds: float
    """Of all its sessions."""
    limit_seconds: float | None
    chunks: int
    limit_chunks: int | None
    phase: str
    rate: float
    """Cases a second of the last half minute."""
    summary: Summary
    findings: Sequence[Finding]
    slots: Sequence[Slot]
    under_way: Sequence[SlotActivity | None]
    """By slot; None where it does nothing, or that is not known here."""
    operators: Sequence[OperatorStatus]
    disk_bytes: int
    disk_limit: int
    waiting: int
    """Findings that are yet to be confirmed."""
    ending: str = ""
    """Why no more chunks are made."""
    ran_on: str = ""
    """What the implementation says of itself in a line; empty where it says nothing."""

    @property
    def covered(self) -> CoveredShare:
        """Over all operators."""
        return sum((item.covered for item in self.operators), CoveredShare(0, 0))


class Watcher(Protocol):
    """Shows a campaign; called from one thread, about twice a second."""

    def __call__(self, status: CampaignStatus, /) -> None: ...

    def notice(self, message: str, /) -> None:
        """Say a thing that a person should know."""
        ...


@dataclass(slots=True)
class Watchers:
    """Several watchers as one, which never ends what is watched.

    Of one that cannot show (a full disk, a reader that is gone) the others tell once; it is asked again each time.
    """

    watchers: Sequence[Watcher]
    _failing: set[int] = field(default_factory=set)

    def __call__(self, status: CampaignStatus, /) -> None:
        """Show a moment."""
        for number, watcher in enumerate(self.watchers):
            self._tell(number, watcher, status)

    def notice(self, message: str, /) -> None:
        """Say a thing that a person should know."""
        for number, watcher in enumerate(self.watchers):
            self._tell(number, watcher.notice, message)

    def _tell(self, number: int, tell: Callable[[T], None], what: T) -> None:
        try:
            tell(what)
        except (OSError, HarnessError) as error:
            if number not in self._failing:
                self._failing.add(number)
                self.notice(f"{_first_part(error)}; the campaign goes on without")


def _first_part(error: OSError | HarnessError) -> str:
    """What happened, without the advice for those whose work it would have ended."""
    if isinstance(error, HarnessError):
        return str(error).partition(";")[0]
    return f"{error.filename or 'standard error'}: {error.strerror or error}"


RATE_SECONDS = 30.0
"""Of which the rate is."""


@dataclass(slots=True)
class Progress:
    """Figures of a campaign that are worked out while it runs."""

    memory: CampaignState
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
        self, positions: Sequence[WorkerProgress | None], tasks: Mapping[int, int], seconds: float
    ) -> tuple[SlotActivity | None, ...]:
        """What each slot is at, and since when without news. `tasks`: by slot its chunk, EXAMINES for a finding."""
        found: list[SlotActivity | None] = []
        for slot, position in enumerate(positions):
            if (task := tasks.get(slot)) is None:
                self._still.pop(slot, None)
                found.append(None)
                continue
            mark = task, -1 if position is None else position.counter
            if self._still.get(slot, ((0, 0), 0.0))[0] != mark:
                self._still[slot] = mark, seconds
            known = position is not None and position.chunk == task != EXAMINES
            judged, of = (position.judged, position.total) if position is not None and known else (0, 0)
            found.append(SlotActivity(task, judged, of, seconds - self._still[slot][1]))
        return tuple(found)

    def update_operator(self, name: str) -> OperatorStatus:
        """An operator's figures, worked out anew: one of its chunks is finished."""
        self._operators.pop(name, None)
        return self.of(name)

    def of(self, name: str) -> OperatorStatus:
        """An operator's figures."""
        if name not in self._operators:
            learned = self.memory.learned_by(name)
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
