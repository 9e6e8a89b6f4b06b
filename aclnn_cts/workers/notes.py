"""The mapped file that says how far a worker is, for whoever shows it or waits for it."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import final

from aclnn_cts.store.output_file import storage_failure

_POSITION = struct.Struct("<qqqq")
"""The fields of `WorkerProgress`."""
_IDLE = -1


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """How far a worker is, as it noted that last."""

    counter: int
    """Grows with every note: tells whether it still moves."""
    chunk: int
    """-1 between chunks."""
    judged: int
    """Trials of the chunk, of `total`."""
    total: int


@final
class ProgressNotes:
    """The worker's side."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("w+b") as file:
                file.truncate(_POSITION.size)
                self._map = mmap.mmap(file.fileno(), _POSITION.size)
        except OSError as error:
            raise storage_failure(path, error) from error
        self._counter = 0
        self.note_idle()

    def note_batch(self, chunk: int, judged: int, total: int) -> None:
        """Say how many of a chunk's trials are judged when more are handed out."""
        self._counter += 1
        _POSITION.pack_into(self._map, 0, self._counter, chunk, judged, total)

    def note_idle(self) -> None:
        """Say that nothing is under way."""
        self.note_batch(_IDLE, 0, 0)


def read_progress(path: Path) -> WorkerProgress | None:
    """What a worker noted last; None where there is no such file."""
    try:
        return WorkerProgress(*_POSITION.unpack(path.read_bytes()))
    except (OSError, struct.error):
        return None
