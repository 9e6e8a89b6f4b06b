"""How long and how much a runner may take, and how much a call."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

__all__ = ["DEFAULT_MAX_BYTES", "Limits", "beyond", "half_of_memory"]

DEFAULT_MAX_BYTES = 1 << 30
"""Of the arguments of one call."""

_GRACE_SECONDS = 15.0
"""Beyond an adapter's own time limit, for it to say which call reached that."""


def half_of_memory() -> int:
    """Bytes: half of what the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a runner is given up."""

    call_seconds: float = 60.0
    """From one outcome to the next; calls of one group share it."""
    hung_seconds: float = 2.0
    """The least that `sandbox.adaptive_timeout` makes of it where calls have hung before."""
    open_seconds: float = 180.0
    """From starting a process until its adapter is open: a device's first start-up is slow."""
    close_seconds: float = 5.0
    """Until a runner that was asked to end has ended."""
    memory_bytes: int | None = None
    """Resident memory of the child, without what it maps of files or shares with us. None: half of the machine's."""


def beyond(limits: Limits, call_seconds: float) -> Limits:
    """Limits that leave an adapter with a clock of its own the time to look at it."""
    return replace(limits, call_seconds=max(limits.call_seconds, call_seconds + _GRACE_SECONDS))
