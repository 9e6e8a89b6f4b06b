"""Standard streams whose reader is gone."""

from __future__ import annotations

import contextlib
import os
from typing import TextIO

__all__ = ["silence"]


def silence(stream: TextIO) -> None:
    """Point a standard stream at nothing, so that what is still to be written, at the end too, does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        number = stream.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)
