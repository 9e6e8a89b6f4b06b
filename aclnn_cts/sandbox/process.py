"""The judge's side of runners: a host, the processes behind it, and one lost call for each that dies.

A crash, an exit, a call that takes too long or too much memory ends the runner; the call that was in flight gets the
outcome that says so, with the runner's last words, and the rest of the batch goes to the spare.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.adapters.registry import parse_adapter_word
from aclnn_cts.core.case import Case, first_phase
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import PROCESS_ENDS, READ_OUTSIDE, CallEnd, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import CallBuffers, InputGuards
from aclnn_cts.sandbox.adaptive_timeout import AdaptiveTimeout
from aclnn_cts.sandbox.alignment import ALIGNMENT
from aclnn_cts.sandbox.arena import Arena
from aclnn_cts.sandbox.batch import BackgroundWork, PendingBatch
from aclnn_cts.sandbox.batch_outcomes import BatchOutcomes
from aclnn_cts.sandbox.child import Child, ChildEnd
from aclnn_cts.sandbox.declaration import Declaration, declaration_of
from aclnn_cts.sandbox.host import DeviceCheck, SessionHost
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES, RunnerLimits, limits_with_slack, memory_of_runner
from aclnn_cts.sandbox.wire import (
    BufferPlace,
    CallBatch,
    ChannelError,
    OpenRefusal,
    OpenReply,
    OpenRequest,
    WireCall,
    decode_message,
    outcome_of_message,
)

__all__ = ["ProcessHost", "RunnerLimits"]

_WORTH_SECONDS = 0.005
"""Of work, from which on a thread costs little beside it."""

Answers: TypeAlias = tuple[list[Outcome], ChildEnd | None]
"""Of a runner, and how it ended if it did."""


class ProcessHost(SessionHost):
    """An adapter in a process of its own, replaced as often as it dies.

    The thread that makes a host must outlive it: the system ends a runner with the thread that started it.

    `workers` hosts share this machine's memory, and no call has more than `max_bytes` of arguments, where `limits`
    says nothing of memory.

    Raises UsageError or HarnessError, as the adapter does, where it cannot be opened.
    """

    isolated = True

    def __init__(
        self,
        adapter: str,
        *,
        target: Target,
        spec_folders: Sequence[Path] = (),
        edition: str = "",
        limits: RunnerLimits | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        workers: int = 1,
        spare: bool = True,
    ) -> None:
        folders = tuple(str(folder.resolve()) for folder in spec_folders)
        opening = OpenRequest(adapter=adapter, target=target, spec_folders=folders, edition=edition)
        self._limits = limits or RunnerLimits()
        self._encoder = msgspec.msgpack.Encoder()
        self._outcomes = msgspec.msgpack.Decoder(Outcome)
        self._arena = Arena()
        memory = (self._limits.memory_bytes or 0, "")
        if not self._limits.memory_bytes:
            memory = memory_of_runner(workers, python=parse_adapter_word(adapter).is_python, max_bytes=max_bytes)
        self._runners = self._new_runners(opening, memory=memory, spare=spare)
        self._check: DeviceCheck | None = None
        self._succeeded: dict[str, Case] = {}
        """By operator, the first call that succeeded and wrote elements, else the first that succeeded."""
        self._lost: Outcome | None = None
        """What every call comes to once the device was taken out."""
        self._no_runner = ""
        """Why none could be started for the last calls."""
        self._batch: PendingBatch | None = None
        """The one that was started last."""
        self._call_seconds: float | None = None
        """How long a call has taken lately, the way to the runner and back included."""
        try:
            opened = self._runners.open_first()
            self.capabilities, self.environment = opened.capabilities, opened.environment
            # A device reads copies of the memory that the runner shares.
            self.has_guard_pages = self.capabilities.target is None
            if limits is None:
                self._limits = limits_with_slack(self._limits, self.capabilities.call_seconds)
            self._patience = AdaptiveTimeout(seconds=self._limits.call_seconds, least=self._limits.hung_seconds)
        except BaseException:
            self._runners.kill()
            raise

    def _new_runners(self, opening: OpenRequest, *, memory: tuple[int, str], spare: bool) -> Runners:
        return Runners(opening, arena=self._arena, limits=self._limits, memory=memory, spare=spare)

    @property
    def gone(self) -> str:
        """Why calls are `not run`: the device is lost, or no runner could be started; empty where they can be made."""
        return self._lost.message if self._lost is not None else self._no_runner

    def on_device_fault(self, check: DeviceCheck) -> None:
        """After a fault of the device, or a death on one, `check` is asked in the fresh runner why the device is lost.

        Empty: it is not. Calls that never succeeded say nothing of the device.

        What is run on a device that is lost is `not run`, and nobody's fault.
        """
        self._check = check

    def memory(self, size: int, *, alignment: int = ALIGNMENT) -> NDArray[np.uint8]:
        """A block in memory that the runner shares. Raises HarnessError where there is none."""
        return self._arena.lend(size, alignment=alignment)

    def recycle(self) -> None:
        """End all loans of memory."""
        self._arena.recycle()

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls in order; one that ends its runner ends no other.

        Raises HarnessError for buffers that do not lie in this host's memory. What a runner that cannot be replaced
        leaves undone is `not run`.
        """
        self._finish()
        outcomes = BatchOutcomes(calls)
        for _ in self._made(outcomes, calls, aside=False):
            pass
        return outcomes.known

    def start(self, calls: Sequence[Call]) -> PendingBatch:
        """Have the calls made while the caller does something else. What was started before is finished first.

        A thread reads what the runner says, and ends it beyond its limits; starting and replacing runners is left to
        the caller's thread, with which they would end. Few quick calls are not worth a thread, and are made at once.
        """
        self._finish()
        held = self._arena.hold(call.buffers.memory for call in calls if call.buffers is not None)
        outcomes = BatchOutcomes(calls)
        worth = self._call_seconds is None or len(calls) * self._call_seconds >= _WORTH_SECONDS
        self._batch = PendingBatch(
            outcomes.known,
            steps=self._made(outcomes, calls, aside=worth),
            release=partial(self._arena.release, held),
        )
        return self._batch

    def _finish(self) -> None:
        """Wait for what was started."""
        if self._batch is not None:
            self._batch.outcomes()

    def _made(
        self, outcomes: BatchOutcomes, calls: Sequence[Call], *, aside: bool
    ) -> Generator[BackgroundWork[Answers], None, None]:
        """Make the calls; with `aside` it yields what to wait for whenever a runner has been given some."""
        wired = [self._wire(call) for call in calls]
        while not outcomes.complete:
            done = len(outcomes.known)
            if isinstance(refused := self._lost or wired[done], Outcome):
                outcomes.known.append(refused)
                continue
            seconds = map(self._patience.seconds, calls[done:])
            sendable = tuple(zip(calls[done:], _leading_raw(wired[done:]), seconds, strict=False))
            try:
                child = self._runners.ready_runner()
            except (HarnessError, UsageError) as error:
                self._no_runner = f"no runner could be started: {error}"
                outcomes.fill(Outcome(ended=CallEnd.NOT_RUN, message=self._no_runner))
                break
            self._no_runner = ""
            work: Callable[[], Answers] = partial(self._work, child, sendable)
            if aside:
                work = BackgroundWork(work, strike=child.strike)
                try:
                    yield work
                except GeneratorExit:
                    # Nobody waits for it any more.
                    self._runners.retire(child)
                    raise
            with self._runners.ended_on_interrupt():
                answers, ending = work()
            outcomes.known += answers
            suspicion = None
            if ending is not None:
                self._runners.retire(child)
                ending = self._located(ending, calls)
                suspicion = outcomes.runner_ended(answers, ending)
            for call, outcome in zip(calls[done:], outcomes.known[done:], strict=False):
                self._patience.note_outcome(call, outcome)
                self._note_success(call, outcome)
            # A fault is of the device; and who dies or hangs in the middle of its work may leave it unfit.
            if suspicion is not None and (suspicion.ended in PROCESS_ENDS or self.capabilities.target is not None):
                self._look_at_device(suspicion)
        outcomes.note_faults()

    def refresh(self) -> None:
        """Replace the runner by one that has made no call yet, and wait for each call in full again."""
        self._finish()
        self._patience.note_fresh_process()
        self._runners.refresh()

    def close(self) -> None:
        """End all runners, kindly where they are idle, and give the memory back."""
        if self._batch is not None:
            self._batch.end()
        self._runners.close()

    def _wire(self, call: Call) -> msgspec.Raw | Outcome:
        place = None
        if call.buffers is not None:
            buffers = call.buffers
            start = self._arena.locate(buffers.memory)
            guards = buffers.layout.guards if isinstance(buffers, CallBuffers) else InputGuards.BANDS
            place = BufferPlace(start, buffers.memory.nbytes, tuple(buffers.outputs), guards)
        try:
            return msgspec.Raw(self._encoder.encode(WireCall(call.case, place, dict(call.call_mode), call.group)))
        except OverflowError:
            message = "a size or an attribute does not fit in 64 bits, and no C interface takes it"
            return Outcome(ended=CallEnd.INEXPRESSIBLE, message=message)

    def _work(self, child: Child, calls: Sequence[tuple[Call, msgspec.Raw, float]]) -> Answers:
        """Have calls made, each within its time limit."""
        began = time.monotonic()
        outcomes: list[Outcome] = []
        batch = self._encoder.encode(CallBatch(self._arena.size, tuple(raw for _, raw, _ in calls)))
        if ending := child.send(batch, seconds=self._limits.call_seconds):
            return outcomes, ending
        for _, _, seconds in calls:
            note = self._patience.note(seconds)
            reply = child.receive(seconds=seconds, note=note)
            if isinstance(reply, ChildEnd):
                return outcomes, reply
            try:
                outcomes.append(outcome_of_message(self._outcomes, reply))
            except ChannelError as error:
                return outcomes, child.end_as_broken(str(error))
            if outcomes[-1].ended in PROCESS_ENDS:
                return outcomes, child.end("the process came to its end with this call")
        lately = (time.monotonic() - began) / len(calls)
        self._call_seconds = lately if self._call_seconds is None else (self._call_seconds + lately) / 2.0
        return outcomes, None

    def _note_success(self, call: Call, outcome: Outcome) -> None:
        """Keep a plain call that succeeded and breaks no rule, for a look at the device after a fault."""
        if outcome.ended != CallEnd.RETURNED or outcome.status:
            return
        if call.call_mode or call.group is not None or call.case.origin.constraint:
            return
        operator, buffers = call.case.operator, call.buffers
        if buffers is not None and all(buffer.view.size for buffer in buffers.outputs.values()):
            known = self._succeeded.get(operator)
            if known is None or known.call.phases == 1:
                self._succeeded[operator] = call.case
        else:
            self._succeeded.setdefault(operator, first_phase(call.case))

    def _located(self, ending: ChildEnd, calls: Sequence[Call]) -> ChildEnd:
        """The end of a runner; of one that met a guard page, it names the input beside which that lies."""
        fault = ending.fault
        if fault is None:
            return ending
        for buffers in (call.buffers for call in calls):
            if not isinstance(buffers, CallBuffers):
                continue
            offset = fault - self._arena.locate(buffers.memory)
            if (name := buffers.layout.guarded_by(offset)) is not None:
                byte = offset - buffers.layout.places[name].offset
                message = f"it reached for byte {byte} of the storage of {name}; {ending.message}"
                return replace(ending, message=message, facts={READ_OUTSIDE: name})
        return ending

    def _look_at_device(self, fault: Outcome) -> None:
        check, self._check = self._check, None
        if check is None:
            return
        try:
            reason = check(tuple(self._succeeded.values()))
        finally:
            self._check = check
        if reason:
            what = fault.message.partition("\n")[0]
            message = f"the device is taken out: after {fault.ended} ({what}) it also fails {reason}"
            self._lost = Outcome(ended=CallEnd.NOT_RUN, message=message)


def _leading_raw(wired: Sequence[msgspec.Raw | Outcome]) -> Iterator[msgspec.Raw]:
    for item in wired:
        if isinstance(item, Outcome):
            return
        yield item


class Runners:
    """The runner at work and its spare, which map one arena; both end with whoever holds this, or at exit.

    The thread that makes them must outlive them: the system ends a runner with the thread that started it.
    """

    def __init__(
        self, opening: OpenRequest, *, arena: Arena, limits: RunnerLimits, memory: tuple[int, str], spare: bool
    ) -> None:
        """`memory`: bytes that each may take, and what to say beside that limit."""
        self._opening = opening
        self._arena = arena
        self._limits = limits
        self._keep_spare = spare
        self._memory_bytes, self._memory_note = memory
        self._answers: msgspec.msgpack.Decoder[OpenReply | OpenRefusal] = msgspec.msgpack.Decoder(
            OpenReply | OpenRefusal
        )
        self.children: list[Child] = []
        """The runner at work first, then the spare."""
        self._ready: set[Child] = set()
        self._asked = False
        """Whether a runner was asked for. A spare waits from the second time on: many hosts make one batch of calls."""
        # Runs at exit too, and when a host is forgotten: no runner outlives its host.
        self._finalizer = weakref.finalize(self, _end_all, self.children, arena)

    def open_first(self) -> Declaration:
        """Start the first runner; what its adapter declares. Raises UsageError or HarnessError, as the adapter does."""
        return self._await_open(self._start())

    def ready_runner(self) -> Child:
        """The runner at work, started if there is none. Raises as `opened`."""
        if self.children and self.children[0] not in self._ready:
            # A spare that came to grief while it waited says nothing of the next.
            with contextlib.suppress(HarnessError):
                self._await_open(self.children[0])
        if not self.children:
            self._await_open(self._start())
        child = self.children[0]
        if self._keep_spare and self._asked and len(self.children) == 1:
            self._start()
        self._asked = True
        return child

    def retire(self, child: Child) -> None:
        """End a runner; the spare takes its place."""
        child.kill()
        self._arena.drop_strays()
        self._ready.discard(child)
        if child in self.children:
            self.children.remove(child)

    def refresh(self) -> None:
        """Have the next call meet a runner that has made none."""
        if self.children:
            self.retire(self.children[0])

    @contextlib.contextmanager
    def ended_on_interrupt(self) -> Iterator[None]:
        """Around waiting for a runner, after which none may be left that somebody does not wait for any more."""
        try:
            yield
        except BaseException:
            # Ctrl-C in the middle of a batch: what the runner still says would answer the wrong question.
            for child in tuple(self.children):
                self.retire(child)
            raise

    def close(self) -> None:
        """End all runners, kindly where they are idle, and give the memory back."""
        for child in self.children:
            child.close_input()
        for child in self.children:
            child.wait(self._limits.close_seconds if child in self._ready else 0.0)
        self.kill()

    def kill(self) -> None:
        """End all runners at once, and give the memory back."""
        self._ready.clear()
        self._finalizer()

    def _start(self) -> Child:
        child = Child(self._arena, memory_bytes=self._memory_bytes, memory_note=self._memory_note)
        self.children.append(child)
        child.send(msgspec.msgpack.encode(self._opening), seconds=self._limits.open_seconds)
        return child

    def _await_open(self, child: Child) -> Declaration:
        with self.ended_on_interrupt():
            reply = child.receive(seconds=self._limits.open_seconds)
        if isinstance(reply, ChildEnd):
            self.retire(child)
            raise HarnessError(f"--adapter {self._opening.adapter}: its runner ended while opening it: {reply.message}")
        try:
            declaration = self._declaration(reply)
        except BaseException:
            self.retire(child)
            raise
        self._ready.add(child)
        return declaration

    def _declaration(self, reply: bytes) -> Declaration:
        try:
            answer = decode_message(self._answers, reply)
        except ChannelError as error:
            raise HarnessError(f"--adapter {self._opening.adapter}: opening it failed: {error}") from None
        if isinstance(answer, OpenRefusal):
            raise (UsageError if answer.usage else HarnessError)(answer.message)
        return declaration_of(answer, adapter=self._opening.adapter)


def _end_all(children: list[Child], arena: Arena) -> None:
    for child in children:
        child.kill()
    children.clear()
    arena.close()
