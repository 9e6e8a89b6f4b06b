"""Ctrl-C, which reaches every process of a terminal: the head alone hears it and says what becomes of a run."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["ENDINGS", "endings_are_interrupts", "interrupts_held_back", "leave_interrupts_to_the_head"]

ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""What a batch system sends, and a terminal that is closed."""


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start worker processes inside this: they inherit that these are blocked, so that none ends while it imports.

    What arrives meanwhile is heard by the caller afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *ENDINGS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_interrupts_to_the_head(*, endings: bool = False) -> None:
    """Ignore SIGINT in a worker, and lift the block that it was started with.

    `endings`: ignore SIGTERM and SIGHUP too, in a worker that the system ends together with its head.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDINGS if endings else ():
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, *ENDINGS})


@contextlib.contextmanager
def endings_are_interrupts() -> Iterator[None]:
    """Inside this SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does, the first time.

    Those that come after it are left alone, since a batch system or a shell may send several: the process is ending.
    What `nohup` has made the process ignore stays ignored. Without effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) == 1:
            raise KeyboardInterrupt(signal.Signals(number).name)

    kept = (signal.SIG_IGN, None)
    before = {number: handler for number in ENDINGS if (handler := signal.getsignal(number)) not in kept}
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
