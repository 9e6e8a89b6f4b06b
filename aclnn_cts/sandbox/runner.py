"""The expendable child: holds one adapter, makes the calls that come down the pipe, and may die doing so.

`sandbox.keeper` starts it, in a process that has imported nothing yet: device runtimes and thread pools do not survive
a fork. The arguments are inherited file descriptors: the memory in which the arrays lie, the page with the in-flight
word, and the pipe for replies; and the id of the process that it must not outlive. Batches come on what was standard
input; standard output and standard error are a log, whose end becomes a dead runner's last words.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.adapters.results import MESSAGE_LIMIT, candidate_error, perform
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import PROCESS_ENDS, CallEnd, Outcome
from aclnn_cts.sandbox.batch import groups
from aclnn_cts.sandbox.declaration import declaration_of
from aclnn_cts.sandbox.guard_pages import closed_pages, record_faults
from aclnn_cts.sandbox.interrupts import ENDINGS, die_with
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.sandbox.wire import (
    CONTROL_SIZE,
    FAULT_ADDRESS,
    IDLE,
    IN_FLIGHT,
    LOG_POSITION,
    MEMORY_ADDRESS,
    MESSAGE_BYTES,
    BufferPlace,
    CallBatch,
    FrameReader,
    OpenRefusal,
    OpenReply,
    OpenRequest,
    WireCall,
    read_frame,
    write_frame,
)
from aclnn_cts.speclang.load import load_specs

if TYPE_CHECKING:
    from aclnn_cts.generate.buffers import CallBuffers

_STANDARD_INPUT = 0
_LOG = 2


class _Replies:
    """The pipe to the judge."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._number = 0
        self._encoder = msgspec.msgpack.Encoder()

    def send(self, answer: OpenReply | OpenRefusal) -> None:
        body = self._encoder.encode(answer)
        if len(body) > MESSAGE_BYTES:
            raise HarnessError(f"capabilities and environment have {len(body)} bytes; the limit is {MESSAGE_BYTES}")
        self._write(body)

    def send_outcome(self, outcome: Outcome) -> None:
        """Send it, or why it cannot be sent; the judge looks at what is in it."""
        try:
            body = self._encoder.encode(outcome)
        except Exception as error:  # noqa: BLE001 - an adapter may have put anything into it
            body = self._refused(f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT])
        if len(body) > MESSAGE_BYTES:
            body = self._refused(f"it has {len(body)} bytes; the limit is {MESSAGE_BYTES}")
        self._write(body)

    def _refused(self, fault: str) -> bytes:
        message = f"the adapter's outcome cannot be sent: {fault}"
        return self._encoder.encode(Outcome(ended=CallEnd.NOT_RUN, message=message))

    def _write(self, body: bytes) -> None:
        write_frame(self._descriptor, body, self._number)
        self._number += 1


class _Runner:
    def __init__(self, session: Session, *, memory: int, control: memoryview, replies: _Replies) -> None:
        """`memory`: the descriptor of the judge's memory."""
        self._session = session
        self._memory = memory
        self._bytes = np.empty(0, np.uint8)
        """As much of it as is mapped."""
        self._control = control
        self._replies = replies
        self._calls = msgspec.msgpack.Decoder(WireCall)

    def batch(self, batch: CallBatch) -> None:
        """Make all calls; some ends are the process's too, since nothing after them could be trusted."""
        if batch.memory > self._bytes.size:
            self._bytes = np.frombuffer(mmap.mmap(self._memory, batch.memory), np.uint8)
            self._control[MEMORY_ADDRESS] = int(self._bytes.__array_interface__["data"][0])
        calls = [self._calls.decode(raw) for raw in batch.calls]
        for group in groups(calls):
            self._control[LOG_POSITION] = os.lseek(_LOG, 0, os.SEEK_CUR)
            self._control[IN_FLIGHT] = group.start
            for outcome in self._perform(calls[group.start : group.stop]):
                self._replies.send_outcome(outcome)
                if outcome.ended in PROCESS_ENDS:
                    os._exit(os.EX_OK)
            self._control[IN_FLIGHT] = IDLE

    def _perform(self, wired: Sequence[WireCall]) -> list[Outcome]:
        try:
            placed = [None if item.place is None else self._buffers(item.case, item.place) for item in wired]
            calls = [
                Call(item.case, buffers, call_mode=item.call_mode, group=item.group)
                for item, buffers in zip(wired, placed, strict=True)
            ]
        except Exception as error:  # noqa: BLE001 - one case whose buffers cannot be laid out must not cost the batch
            what = "the process of the implementation cannot lay out the buffers"
            return [candidate_error(error, what)] * len(wired)
        with contextlib.ExitStack() as stack:
            for buffers in placed:
                if buffers is not None:
                    stack.enter_context(closed_pages(buffers))
            return perform(self._session, calls)

    def _buffers(self, case: Case, place: BufferPlace) -> CallBuffers:
        from aclnn_cts.generate.buffers import InputGuards, attach  # noqa: PLC0415 - first phases alone have none

        block = self._bytes[place.start : place.start + place.size]
        return attach(case, outputs=frozenset(place.outputs), memory=block, guards=InputGuards(place.guards))


def _answer(opening: OpenRequest, replies: _Replies) -> Session | None:
    try:
        specs = load_specs([Path(folder) for folder in opening.spec_folders], edition=opening.edition)
        session = load(parse_adapter_word(opening.adapter)).open(opening.target, specs)
        declaration = declaration_of(session, adapter=opening.adapter)
        replies.send(OpenReply(declaration.capabilities, declaration.environment))
    except (UsageError, HarnessError) as error:
        replies.send(OpenRefusal(isinstance(error, UsageError), str(error)[:MESSAGE_LIMIT]))
    except Exception as error:  # noqa: BLE001 - whatever an adapter raises, the parent must hear of it
        message = f"--adapter {opening.adapter}: opening it failed: {type(error).__name__}: {error}"
        replies.send(OpenRefusal(usage=False, message=message[:MESSAGE_LIMIT]))
    else:
        return session
    return None


def main(arguments: Sequence[str]) -> int:
    """Open what the first frame names, then run batches until their pipe ends."""
    memory, control, pipe, parent = (int(argument) for argument in arguments)
    die_with(parent)
    for number in ENDINGS:
        # A worker ignores them, and what it starts inherits that: here they do what they do to any program.
        signal.signal(number, signal.SIG_DFL)
    for descriptor in (memory, control, pipe):
        # What native code may start must not keep the pipe open after this process has died.
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - os has no keyword for it
    batches_pipe = _own_input()
    replies, frames = _Replies(pipe), FrameReader()
    body = read_frame(batches_pipe, frames)
    if body is None:
        return os.EX_OK
    session = _answer(msgspec.msgpack.decode(body, type=OpenRequest), replies)
    if session is None:
        return os.EX_UNAVAILABLE
    words = memoryview(mmap.mmap(control, CONTROL_SIZE)).cast("q")
    runner = _Runner(session, memory=memory, control=words, replies=replies)
    record_faults(words, FAULT_ADDRESS)
    batches = msgspec.msgpack.Decoder(CallBatch)
    freeze_objects()
    while (body := read_frame(batches_pipe, frames)) is not None:
        runner.batch(batches.decode(body))
    session.close()
    return os.EX_OK


def _own_input() -> int:
    """The pipe of the batches, under a number that nobody else knows: who reads standard input finds that it ended."""
    pipe = os.dup(_STANDARD_INPUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.close(nothing)
    return pipe
