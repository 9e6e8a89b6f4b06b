"""What judge and runner say to each other: length-prefixed MessagePack frames, and two words of shared memory.

Cases travel as msgspec structs (their JSON form in binary: nan and infinities have no JSON). Arrays never travel: both
sides map one piece of memory, and a frame says where in it a call's buffers lie.
"""

from __future__ import annotations

import os
import struct
from typing import TypeAlias

import msgspec

from aclnn_cts.adapters.protocol import Capabilities
from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target

__all__ = [
    "CONTROL_SIZE",
    "IDLE",
    "IN_FLIGHT",
    "LOG_POSITION",
    "Batch",
    "Frames",
    "Opened",
    "Opening",
    "Place",
    "Refused",
    "Reply",
    "WireCall",
    "frame",
    "read_frame",
    "write_frame",
]

CONTROL_SIZE = 4096
"""Bytes of the shared words' own memory: a page."""
IN_FLIGHT = 0
"""The word that holds the index, within its batch, of the call that the runner is about to make."""
LOG_POSITION = 1
"""The word that holds where in the runner's log that call began."""
IDLE = -1
"""What stands in the first word between calls."""

_LENGTH = struct.Struct("<Q")


class Opening(msgspec.Struct, frozen=True, tag="open"):
    """First frame to a runner: which adapter to open, for what."""

    adapter: str
    target: Target
    spec_folders: tuple[str, ...]
    """The user's own folders of specs beside ours."""


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The adapter is open and ready for batches."""

    capabilities: Capabilities
    environment: dict[str, str]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The adapter could not be opened."""

    usage: bool
    """The command line is wrong (UsageError), not the surroundings (HarnessError)."""
    message: str


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where in the shared memory a call's buffers lie, and which parameters are outputs there."""

    start: int
    size: int
    outputs: tuple[str, ...]


class WireCall(msgspec.Struct, frozen=True, array_like=True):
    """One call; `place` is None where it has no buffers."""

    case: Case
    place: Place | None
    manner: dict[str, str | int | bool]
    group: int | None


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Calls to make in order; each answers with a frame that holds one Outcome."""

    memory: int
    """Bytes of the shared memory, which may have grown since the last batch."""
    calls: tuple[msgspec.Raw, ...]
    """Each one a WireCall, encoded once however often it is sent."""


Reply: TypeAlias = Outcome | Opened | Refused


def frame(body: bytes) -> bytes:
    """A body with its length before it."""
    return _LENGTH.pack(len(body)) + body


def write_frame(descriptor: int, body: bytes) -> None:
    """Write a whole frame. Raises BrokenPipeError where nobody reads any more."""
    rest = memoryview(frame(body))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_frame(descriptor: int) -> bytes | None:
    """Wait for a whole frame; None where the other side has closed."""
    frames = Frames()
    while True:
        # Never past this frame: what follows is for the next call.
        chunk = os.read(descriptor, frames.missing)
        if not chunk:
            return None
        frames.feed(chunk)
        if (body := frames.take()) is not None:
            return body


class Frames:
    """Frames out of pieces, as they arrive."""

    def __init__(self) -> None:
        self._pieces = bytearray()

    @property
    def missing(self) -> int:
        """Bytes until the current frame, or its length, is complete."""
        have = len(self._pieces)
        if have < _LENGTH.size:
            return _LENGTH.size - have
        length: int = _LENGTH.unpack_from(self._pieces)[0]
        return length + _LENGTH.size - have

    def feed(self, chunk: bytes) -> None:
        """Add what arrived."""
        self._pieces += chunk

    def take(self) -> bytes | None:
        """The next whole frame, or None while it is not complete."""
        if len(self._pieces) < _LENGTH.size:
            return None
        end: int = _LENGTH.unpack_from(self._pieces)[0] + _LENGTH.size
        if len(self._pieces) < end:
            return None
        body = bytes(self._pieces[_LENGTH.size : end])
        del self._pieces[:end]
        return body
