"""Which chunk comes next: those whose worker was lost before new ones, without the trials that cost their workers."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.campaign.corpus.chunk import Chunk, chunk_trials
from aclnn_cts.campaign.fleet.inflight_log import Position
from aclnn_cts.core.case_json import case_id

CHUNK_TRIES = 2
"""Workers that a chunk may cost until the call that was under way is left out, or the chunk is given up."""


@dataclass(slots=True, kw_only=True)
class ChunkQueue:
    """The chunks that are yet to be tried."""

    memory: Memory
    limit: int | None
    """Chunks of the whole campaign."""
    again: deque[Chunk] = field(default_factory=deque)
    """Those with pinned cases, which come before all others, and after them those whose worker was lost."""
    avoid: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By index of a chunk, the ids of its trials that are not to be made."""
    _next: int = 0
    _tries: Counter[int] = field(default_factory=Counter)
    _suspects: Counter[str] = field(default_factory=Counter)
    """Workers that were lost with a call under way, by the case's id."""

    @property
    def pins_wait(self) -> bool:
        """Whether pinned cases are next; a session tries those even where nothing else is left to do."""
        return bool(self.again) and self.again[0].index < 0

    @property
    def more(self) -> bool:
        """Whether a chunk could be handed out now."""
        return bool(self.again) or (self.memory.ready(self._next) and (self.limit is None or self._next < self.limit))

    def take(self, *, ending: bool) -> Chunk | None:
        """The next chunk; None where there is none to be had now, or none any more since the session is `ending`."""
        if self.again and (not ending or self.pins_wait):
            return self.again.popleft()
        if ending:
            return None
        while self.memory.done(self._next):
            self._next += 1
        if (self.limit is not None and self._next >= self.limit) or not self.memory.ready(self._next):
            return None
        self._next += 1
        return self.memory.chunk(self._next - 1)

    def worker_lost(self, chunk: Chunk, flight: Position | None, reason: str) -> str:
        """Try a chunk again whose worker was lost, without the call under way if it costs every worker.

        Gives why the chunk is given up instead; empty where it is not.
        """
        self._tries[chunk.index] += 1
        if flight is not None and flight.case is not None and flight.chunk == chunk.index:
            identifier = case_id(flight.case)
            self._suspects[identifier] += 1
            if self._suspects[identifier] >= CHUNK_TRIES:
                self.avoid[chunk.index] += self._trials_of(chunk, identifier)
                self.again.append(chunk)
                return ""
        if self._tries[chunk.index] > CHUNK_TRIES + 1:
            return f"{self._tries[chunk.index]} workers were lost with it, the last since {reason}"
        self.again.append(chunk)
        return ""

    def failed(self, chunk: Chunk, reason: str) -> str:
        """Try a chunk again that ended in an exception of ours; why it is given up instead, empty where it is not."""
        self._tries[chunk.index] += 1
        if self._tries[chunk.index] >= CHUNK_TRIES:
            return reason
        self.again.append(chunk)
        return ""

    def _trials_of(self, chunk: Chunk, identifier: str) -> Iterator[str]:
        """Ids of the trials of a chunk with a case, or a call of a trial that was made of one."""
        sampler = self.memory.schedule.factors[chunk.operator].sampler
        from aclnn_cts.checks.registry import check  # noqa: PLC0415 - only after a death

        for item in chunk_trials(chunk, sampler):
            calls = check(item.trial.check, where="trial").calls(item.trial, sampler.spec)
            if any(case_id(call) == identifier for call in calls):
                yield item.trial.id
