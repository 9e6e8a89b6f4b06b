"""Ctrl-C, SIGTERM and SIGHUP may reach every process: the head alone hears them and says what becomes of a run."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""

ENDINGS = (signal.SIGTERM, signal.SIGHUP)
"""What a batch system sends, and a terminal that is closed."""


_TOGETHER_SECONDS = 15.0
"""For so long further signals are taken for the same."""


def worker_context() -> SpawnContext:
    """How worker processes are started.

    The process that Python starts beside them, which tracks their semaphores, ignores no SIGHUP: it must not end while
    they still use it.
    """
    from multiprocessing import get_context, resource_tracker  # noqa: PLC0415 - many commands do without

    with interrupts_held_back():
        resource_tracker.ensure_running()
    return get_context("spawn")


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Put off Ctrl-C, SIGTERM and SIGHUP: what arrives meanwhile is heard afterwards.

    Worker processes are started inside this: they inherit the block, so that none ends while it imports. So is what
    must not be left half done.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *ENDINGS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_interrupts_to_the_head(head: int) -> None:
    """In a worker that the process `head` has started: ignore what interrupts, and end when that process ends.

    Lifts the block that the worker was started with. A batch system may signal every process of a job, and only the
    head says what becomes of a run.
    """
    for number in (signal.SIGINT, *ENDINGS):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, *ENDINGS})
    die_with(head)


def die_with(parent: int, *, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the system send `by` to this process when the thread of its parent that started it ends, or has ended."""
    _prctl(_DIE_WITH_PARENT, by)
    if os.getppid() != parent:
        os._exit(os.EX_OK)


def keep_orphans() -> None:
    """Become the parent of whatever a process below this one leaves behind."""
    _prctl(_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    import ctypes  # noqa: PLC0415 - the head, which imports this module first of all, does without

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class _Interrupt:
    """A handler that raises KeyboardInterrupt.

    A batch system or a shell may send several signals at once: for a while after the first the others are left alone,
    since the process is ending. One that comes later is meant.
    """

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard = -math.inf

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._heard >= _TOGETHER_SECONDS:
            self._heard = now
            raise KeyboardInterrupt(f"{signal.Signals(number).name} was sent")


_RESEND_SECONDS = 0.05
"""Long enough for the callback that lost the interrupt to return, too short to be noticed."""


def _resend_lost_interrupt(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt again where a callback lost the interrupt: Python cannot raise what a weak reference's callback raises.

    Each import ends with such a callback (_get_module_lock in importlib/_bootstrap.py), so that Ctrl-C during start-up
    had no effect now and then. A thread sends it, because a signal of this one would end in the same callback.
    """
    if lost.exc_type is KeyboardInterrupt:
        again = threading.Timer(_RESEND_SECONDS, signal.raise_signal, [signal.SIGINT])
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


@contextlib.contextmanager
def endings_are_interrupts() -> Iterator[None]:
    """Inside this SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does, once where several come together.

    An interrupt that Python could not raise is raised a moment later.
    What `nohup` has made the process ignore stays ignored. Without effect outside the main thread, and inside another
    of its kind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hear = _Interrupt()
    before = {}
    for number in ENDINGS:
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_IGN, None) and not isinstance(handler, _Interrupt):
            before[number] = handler
            signal.signal(number, hear)
    hook = sys.unraisablehook
    sys.unraisablehook = _resend_lost_interrupt
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def annotate_interrupt(error: KeyboardInterrupt, kept: str) -> KeyboardInterrupt:
    """The interrupt, with what became of the work."""
    return KeyboardInterrupt(f"{error}; {kept}" if str(error) else kept)


def forget_interrupt() -> None:
    """Let a process that has caught KeyboardInterrupt end with the exit code that it chooses.

    CPython notes an interrupt that comes out of `exec` of a text, such as dataclasses use while a module is imported,
    and at the end kills the process by SIGINT, though the exception was caught (unhandled_keyboard_interrupt in
    Python/pythonrun.c). The next `exec` takes the note back.
    """
    exec("")  # noqa: S102 - see above
