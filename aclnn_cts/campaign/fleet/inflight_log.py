"""What a worker is about to run, in a file that is mapped: what died with the worker can be read after its death."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.sandbox.async_batch import Pending
from aclnn_cts.sandbox.call_groups import groups
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.store.files import storage_failure

_SIZE = 1 << 16
_HEADER = struct.Struct("<qqqqqq")
"""A counter that grows with every note, the chunk, the first trial of the batch, how many these are, how many the chunk
has, and the case's bytes."""
_IDLE = -1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a worker is, as it noted that last."""

    counter: int
    """Tells whether it still moves."""
    chunk: int
    """-1 between chunks."""
    first: int
    count: int
    total: int
    """Trials of the chunk."""
    case: Case | None = None
    """The call that was under way, where the implementation lives in the worker's own process."""


@final
class Notes:
    """The worker's side."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("w+b") as file:
                file.truncate(_SIZE)
                self._map = mmap.mmap(file.fileno(), _SIZE)
        except OSError as error:
            raise storage_failure(path, error) from error
        self._encoder = msgspec.msgpack.Encoder()
        self._counter = 0
        self.idle()

    def batch(self, chunk: int, first: int, count: int, total: int = 0) -> None:
        """Say that trials `first` to `first + count - 1` of a chunk's `total` are next or under way."""
        self._where = (chunk, first, count, total)
        self._put(b"")

    def call(self, case: Case) -> None:
        """Say that a call is next."""
        content = self._encoder.encode(case)
        self._put(content if len(content) <= _SIZE - _HEADER.size else b"")

    def idle(self) -> None:
        """Say that nothing is under way."""
        self._where = (_IDLE, 0, 0, 0)
        self._put(b"")

    def _put(self, content: bytes) -> None:
        self._counter += 1
        # The length is 0 while the case is written, so that half a case is never read.
        _HEADER.pack_into(self._map, 0, self._counter, *self._where, 0)
        if content:
            self._map[_HEADER.size : _HEADER.size + len(content)] = content
            _HEADER.pack_into(self._map, 0, self._counter, *self._where, len(content))


def read_position(path: Path) -> Position | None:
    """How far a worker noted last to be, without the call, which costs little; None where there is no such file."""
    return _read(path, _HEADER.size)


def read_notes(path: Path) -> Position | None:
    """What a worker noted last, with the call; None where there is no such file."""
    return _read(path, _SIZE)


def _read(path: Path, size: int) -> Position | None:
    try:
        with path.open("rb", buffering=0) as file:
            content = file.read(size)
        counter, chunk, first, count, total, length = _HEADER.unpack_from(content)
    except (OSError, struct.error):
        return None
    case = None
    if 0 < length <= len(content) - _HEADER.size:
        try:
            case = msgspec.msgpack.decode(content[_HEADER.size : _HEADER.size + length], type=Case)
        except msgspec.MsgspecError as error:
            raise HarnessError(f"{path}: cannot be read: {error}") from None
    return Position(counter, chunk, first, count, total, case)


class NotingHost:
    """A host that says of each call that it is next; for one that lives in this process, and would die with it."""

    def __init__(self, host: SessionHost, notes: Notes) -> None:
        self._host = host
        self._notes = notes

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the host's
        return getattr(self._host, name)

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls, group by group."""
        outcomes: list[Outcome] = []
        for group in groups(calls):
            together = calls[group.start : group.stop]
            self._notes.call(together[0].case)
            outcomes += self._host.run(together)
        return outcomes

    def start(self, calls: Sequence[Call]) -> Pending:
        """Make the calls at once."""
        return Pending(self.run(calls))

    def __enter__(self) -> NotingHost:  # noqa: PYI034 - typing has Self from Python 3.11 on
        return self

    def __exit__(self, *exception: object) -> None:
        self._host.close()
