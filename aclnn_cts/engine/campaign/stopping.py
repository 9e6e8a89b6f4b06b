"""When a session of a campaign ends."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field

from aclnn_cts.engine.campaign.memory import Memory

__all__ = ["Stop", "Stopping"]

GRACE_SECONDS = 60.0
"""How long findings are still looked into after the campaign's time, or a tenth of that where it is more."""

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
    reason: str = ""
    """Why no more chunks are made; empty as long as there are."""
    _began: float = field(default_factory=time.monotonic)
    _news: float = field(default_factory=time.monotonic)
    _ended: float = 0.0
    _disk: tuple[float, int] = (-60.0, 0)

    @property
    def seconds(self) -> float:
        """Of this session."""
        return time.monotonic() - self._began

    @property
    def grace_over(self) -> bool:
        """Whether findings are not to be waited for any more, now that there are no more chunks."""
        grace = max(GRACE_SECONDS, 0.1 * (self.stop.seconds or 0.0))
        return not self.reason.startswith("all") and time.monotonic() - self._ended > grace

    def news(self) -> None:
        """A finding is new, or more is covered."""
        self._news = time.monotonic()

    def decide(self) -> None:
        """Hold the session to its limits as it stands now."""
        if self.reason:
            return
        stop = self.stop
        standing = sum(not finding.waiver for finding in self.memory.findings.values())
        if stop.chunks is not None and self.memory.chunks >= stop.chunks:
            self.reason = f"all {stop.chunks} chunks are done"
        elif stop.seconds is not None and self.seconds >= stop.seconds:
            self.reason = "its time is over"
        elif stop.findings is not None and standing >= stop.findings:
            self.reason = f"{standing} findings were made"
        elif stop.quiet is not None and time.monotonic() - self._news >= stop.quiet:
            self.reason = f"nothing new came for {stop.quiet:.0f} s"
        elif self.disk_bytes() > stop.disk_bytes:
            self.reason = f"the run takes {self.disk_bytes() >> 20} MiB of disk, more than it may"
        if self.reason:
            self._ended = time.monotonic()

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
