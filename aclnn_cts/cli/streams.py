"""Standard streams that are closed or whose reader is gone, and what else a caller may have left askew."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import TextIO


def sound_process() -> None:
    """Give the process what every program may expect: three open standard streams, and news of its children.

    A closed stream becomes the null device: else the next file that is opened would take its number and receive what
    is printed. Where SIGCHLD is ignored, as some supervisors hand it on, no child's end could be learned.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which is this one. Workers inherit it: else theirs would be closed.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - its only parameter
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def silence(stream: TextIO) -> None:
    """Point a standard stream at nothing, so that what is still to be written, at the end too, does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        number = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)
