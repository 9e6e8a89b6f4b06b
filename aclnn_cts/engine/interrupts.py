"""Ctrl-C, which reaches every process of a terminal: the head alone hears it and says what becomes of a run."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

__all__ = ["interrupts_held_back", "leave_interrupts_to_the_head"]


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start worker processes inside this: they inherit that SIGINT is blocked, so that none ends while it imports.

    What arrives meanwhile is heard by the caller afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_interrupts_to_the_head() -> None:
    """Ignore SIGINT in a worker, and lift the block that it was started with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
