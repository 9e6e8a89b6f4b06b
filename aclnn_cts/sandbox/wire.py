"""What judge and runner say to each other: numbered MessagePack frames, and words of shared memory.

Cases travel as msgspec structs (their JSON form in binary: nan and infinities have no JSON). Arrays never travel: both
sides map one piece of memory, and a frame says where in it a call's buffers lie.

The judge trusts nothing that comes from a runner: a frame has a mark, a number and a length within a limit, so that
what an implementation writes into the pipe is noticed at once, and its contents are checked for type and range.
"""

from __future__ import annotations

import math
import os
import struct
from typing import Any, TypeVar

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import ENDS, Outcome
from aclnn_cts.core.target import Target

CONTROL_SIZE = 4096
"""Bytes of the shared words' own memory: a page."""
IN_FLIGHT = 0
"""The word that holds the index, within its batch, of the call that the runner is about to make."""
LOG_POSITION = 1
"""The word that holds where in the runner's log that call began."""
FAULT_ADDRESS = 2
"""The word that holds the address at which the runner died by SIGSEGV; 0 where it did not, or nobody knows."""
MEMORY_ADDRESS = 3
"""The word that holds where the runner has mapped the judge's memory."""
IDLE = -1
"""What stands in the first word between calls."""

MESSAGE_BYTES = 1 << 20
"""Most that one message of a runner may have. An outcome has some hundred bytes, its text at most a few thousand."""

_HEADER = struct.Struct("<4sIQ")
"""The mark, the frame's number in its direction, and the length of its body."""
_MARK = b"\x00cts"
_NUMBERS = 1 << 32
_QUOTED = 80
"""Characters of a value that a message quotes."""

_T = TypeVar("_T")


class ChannelError(Exception):
    """What came down the pipe is no message of ours; the text says why, and names the limit that was broken."""


class OpenRequest(msgspec.Struct, frozen=True, tag="open"):
    """First frame to a runner: which adapter to open, for what."""

    adapter: str
    target: Target
    spec_folders: tuple[str, ...]
    """The user's own folders of specs beside ours."""
    edition: str = ""
    """Of the documents."""


class OpenReply(msgspec.Struct, frozen=True, tag="opened"):
    """The adapter is open and ready for batches."""

    capabilities: Any
    """`Capabilities`, which the judge holds to its schema (`Declaration`) as it arrives."""
    environment: Any


class OpenRefusal(msgspec.Struct, frozen=True, tag="refused"):
    """The adapter could not be opened."""

    usage: bool
    """The command line is wrong (UsageError), not the surroundings (HarnessError)."""
    message: str


class BufferPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where in the shared memory a call's buffers lie, and which parameters are outputs there."""

    start: int
    size: int
    outputs: tuple[str, ...]
    guards: str
    """`generate.buffers.InputGuards`, by value."""


class WireCall(msgspec.Struct, frozen=True, array_like=True):
    """One call; `place` is None where it has no buffers."""

    case: Case
    place: BufferPlace | None
    call_mode: dict[str, str | int | bool]
    group: int | None


class CallBatch(msgspec.Struct, frozen=True, tag="batch"):
    """Calls to make in order; each answers with a frame that holds one Outcome."""

    memory: int
    """Bytes of the shared memory, which may have grown since the last batch."""
    calls: tuple[msgspec.Raw, ...]
    """Each one a WireCall, encoded once however often it is sent."""


def frame(body: bytes, number: int) -> bytes:
    """A body with its header before it; `number` counts the frames of one direction from 0."""
    return _HEADER.pack(_MARK, number % _NUMBERS, len(body)) + body


def write_frame(descriptor: int, body: bytes, number: int) -> None:
    """Write a whole frame. Raises BrokenPipeError where nobody reads any more."""
    rest = memoryview(frame(body, number))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_frame(descriptor: int, frames: FrameReader) -> bytes | None:
    """Wait for a whole frame; None where the other side has closed."""
    while True:
        if (body := frames.take()) is not None:
            return body
        # Never past this frame: what follows is for the next call.
        chunk = os.read(descriptor, frames.missing)
        if not chunk:
            return None
        frames.feed(chunk)


class FrameReader:
    """Frames out of pieces, as they arrive."""

    def __init__(self, *, limit: int | None = None) -> None:
        """`limit`: the most bytes that a body may have; None for what a judge sends, which a runner trusts."""
        self._limit = limit
        self._pieces = bytearray()
        self._number = 0

    @property
    def waiting(self) -> int:
        """Bytes that were fed and not taken."""
        return len(self._pieces)

    @property
    def missing(self) -> int:
        """Bytes until the current frame, or its header, is complete. Raises as `take`."""
        have = len(self._pieces)
        return _HEADER.size - have if have < _HEADER.size else self._length() + _HEADER.size - have

    def feed(self, chunk: bytes) -> None:
        """Add what arrived."""
        self._pieces += chunk

    def take(self) -> bytes | None:
        """The next whole frame, or None while it is not complete.

        Raises ChannelError for bytes that are no frame, for one that is out of turn, and for one beyond the limit:
        as soon as its header is there, so that no more than a frame is ever kept.
        """
        if len(self._pieces) < _HEADER.size:
            return None
        end = self._length() + _HEADER.size
        if len(self._pieces) < end:
            return None
        body = bytes(self._pieces[_HEADER.size : end])
        del self._pieces[:end]
        self._number = (self._number + 1) % _NUMBERS
        return body

    def _length(self) -> int:
        mark, number, length = _HEADER.unpack_from(self._pieces)
        if mark != _MARK:
            start = bytes(self._pieces[: _HEADER.size])
            raise ChannelError(f"{start!r} is in its pipe where a message must begin")
        if number != self._number:
            raise ChannelError(f"message {number} is in its pipe where message {self._number} must come")
        if self._limit is not None and length > self._limit:
            raise ChannelError(f"its message has {length} bytes; the limit is {self._limit}")
        return int(length)


def decode_message(decoder: msgspec.msgpack.Decoder[_T] | msgspec.json.Decoder[_T], body: bytes) -> _T:
    """What a runner's message holds. Raises ChannelError where it is no such thing."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise ChannelError(f"its message cannot be read: {error}") from error


def outcome_of_message(decoder: msgspec.msgpack.Decoder[Outcome], body: bytes) -> Outcome:
    """The outcome that a runner's message holds. Raises ChannelError for what is none, or has a value out of range."""
    outcome = decode_message(decoder, body)
    if outcome.ended not in ENDS:
        raise ChannelError(f"`ended` is {outcome.ended[:_QUOTED]!r}; expected one of {', '.join(sorted(ENDS))}")
    for name, value in outcome.facts.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ChannelError(f"`facts[{name[:_QUOTED]!r}]` is {value}; expected a finite number")
    return outcome
