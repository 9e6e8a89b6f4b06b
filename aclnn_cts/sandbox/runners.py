"""The processes behind a host: one runner works and one spare waits, each started, opened and ended here alone."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator

import msgspec

from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.sandbox.arena import Arena
from aclnn_cts.sandbox.child import Child, Ending
from aclnn_cts.sandbox.declaration import Declaration, declaration_of
from aclnn_cts.sandbox.limits import Limits, share_of_memory
from aclnn_cts.sandbox.wire import ChannelError, Opened, Opening, Refused, decoded


class Runners:
    """The runner at work and its spare, which map one arena; both end with whoever holds this, or at exit.

    The thread that makes them must outlive them: the system ends a runner with the thread that started it.
    """

    def __init__(self, opening: Opening, *, arena: Arena, limits: Limits, workers: int, spare: bool) -> None:
        self._opening = opening
        self._arena = arena
        self._limits = limits
        self._keep_spare = spare
        self._memory_bytes = limits.memory_bytes or share_of_memory(workers)
        self._memory_note = f", a share of {workers} workers" if workers > 1 and not limits.memory_bytes else ""
        self._answers: msgspec.msgpack.Decoder[Opened | Refused] = msgspec.msgpack.Decoder(Opened | Refused)
        self.children: list[Child] = []
        """The runner at work first, then the spare."""
        self._ready: set[Child] = set()
        self._asked = False
        """Whether a runner was asked for. A spare waits from the second time on: many hosts make one batch of calls."""
        # Runs at exit too, and when a host is forgotten: no runner outlives its host.
        self._finalizer = weakref.finalize(self, _end_all, self.children, arena)

    def opened(self) -> Declaration:
        """Start the first runner; what its adapter declares. Raises UsageError or HarnessError, as the adapter does."""
        return self._await_open(self._start())

    def ready(self) -> Child:
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
        if isinstance(reply, Ending):
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
            answer = decoded(self._answers, reply)
        except ChannelError as error:
            raise HarnessError(f"--adapter {self._opening.adapter}: opening it failed: {error}") from None
        if isinstance(answer, Refused):
            raise (UsageError if answer.usage else HarnessError)(answer.message)
        return declaration_of(answer, adapter=self._opening.adapter)


def _end_all(children: list[Child], arena: Arena) -> None:
    for child in children:
        child.kill()
    children.clear()
    arena.close()
