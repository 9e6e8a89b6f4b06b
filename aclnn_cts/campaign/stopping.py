"""When a session of a campaign ends, and how long what is under way may take until then."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aclnn_cts.campaign.campaign_state import Memory
from aclnn_cts.findings.distinct import distinct

GRACE_SECONDS = 60.0
"""How long findings are still looked into after the campaign's time, or a tenth of that where it is more."""

HANG_SECONDS = 300.0
"""How long after that a chunk is waited for whose calls hang: it is broken off between two batches alone."""

SHARE = 0.1
"""Of a session's time, that one chunk or finding may take; a minute at least (a finding: no more than a third)."""

_DISK_SECONDS = 5.0
"""How old a figure of the disk may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """When a campaign ends; whatever comes first."""

    seconds: float | None = None
    """Of this session."""
    chunks: int | None = None
    """Of the whole campaign."""
    findings: int | None = None
    """Distinct ones without a waiver."""
    quiet: float | None = None
    """Seconds without a new finding and without more coverage."""
    disk_bytes: int = 1 << 31


@dataclass(slots=True)
class Stopping:
    """Holds a session to its limits, from the moment on when it is made."""

    stop: Stop
    memory: Memory
    clock: Callable[[], float] = time.monotonic
    reason: str = ""
    """Why no more chunks are made; empty as long as there are."""
    working: bool = False
    """Whether work was handed out: before that, a session's time cannot be over."""
    _began: float = field(init=False)
    _news: float = field(init=False)
    _ended: float = 0.0
    _complete: bool = False
    """It ends since all its chunks are done: findings are waited for then, whatever they take."""
    _disk: tuple[float, int] = (-60.0, 0)

    def __post_init__(self) -> None:
        self._began = self._news = self.clock()

    @property
    def seconds(self) -> float:
        """Of this session."""
        return self.clock() - self._began

    @property
    def grace_over(self) -> bool:
        """Whether findings are not to be waited for any more, now that there are no more chunks."""
        return self._until_grace_over() <= 0.0

    @property
    def chunks_over(self) -> bool:
        """Whether the chunks under way are not to be waited for any more."""
        return self.stop.seconds is not None and self.seconds > self.stop.seconds + self._grace + HANG_SECONDS

    def chunk_seconds(self) -> float | None:
        """How long a chunk may take that is handed out now; None: as long as any.

        So a chunk whose calls hang leaves time for others. With a number of chunks, each is tried in whole.
        """
        if self.stop.seconds is None or self.stop.chunks is not None:
            return None
        left = self.stop.seconds + self._grace - self.seconds
        return max(min(self._share(), left), 1.0)

    def finding_seconds(self, *, least: float) -> float | None:
        """How long a finding may take that is looked into now; None: as long as its executions take.

        `least`: what it needs, where the session's end does not forbid that.
        """
        left = self._until_grace_over() if self.reason else self._until_time_over() + self._grace
        most = math.inf
        if self.stop.seconds is not None and not self._complete:
            most = max(min(self._share(), self.stop.seconds / 3.0), least)
        seconds = min(left, most)
        return None if math.isinf(seconds) else max(seconds, 1.0)

    def news(self) -> None:
        """A finding is new, or more is covered."""
        self._news = self.clock()

    def _standing(self) -> int:
        return sum(not finding.waiver for finding in distinct(self.memory.findings.values()))

    def decide(self) -> None:
        """Hold the session to its limits as it stands now."""
        if self.reason:
            return
        stop = self.stop
        if stop.chunks is not None and self.memory.chunks >= stop.chunks:
            self.reason = f"all {stop.chunks} chunks are done"
            self._complete = True
        elif stop.seconds is not None and self.working and self.seconds >= stop.seconds:
            self.reason = "its time is over"
        elif stop.findings is not None and (standing := self._standing()) >= stop.findings:
            self.reason = f"{standing} findings were made"
        elif stop.quiet is not None and self.working and self.clock() - self._news >= stop.quiet:
            self.reason = f"nothing new came for {stop.quiet:.0f} s"
        elif self.disk_bytes() > stop.disk_bytes:
            self.reason = f"the run takes {self.disk_bytes() >> 20} MiB of disk, more than it may"
        if self.reason:
            self._ended = self.clock()

    def disk_bytes(self) -> int:
        """Of the run's directory, looked up every few seconds."""
        when, used = self._disk
        if time.monotonic() - when > _DISK_SECONDS:
            used = 0
            for file in self.memory.writer.path.rglob("*"):
                with contextlib.suppress(OSError):
                    used += file.stat().st_size
            self._disk = (time.monotonic(), used)
        return used

    @property
    def _grace(self) -> float:
        return max(GRACE_SECONDS, 0.1 * (self.stop.seconds or 0.0))

    def _share(self) -> float:
        return max(60.0, SHARE * (self.stop.seconds or 0.0))

    def _until_time_over(self) -> float:
        return math.inf if self.stop.seconds is None else self.stop.seconds - self.seconds

    def _until_grace_over(self) -> float:
        if self._complete:
            return self._until_time_over() + self._grace
        return self._ended + self._grace - self.clock()
