"""Where an adapter lives: in this process or in a runner, behind one interface, with memory that it lends for buffers.

A batch goes: `memory` for each case, `generate.buffers.prepare` in it, `run`, `inspect` of the buffers, `recycle`.
Where something else is to be done meanwhile, `start` stands for `run`, and what it gives keeps the memory to its `end`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Call, Capabilities, Session
from aclnn_cts.adapters.results import perform
from aclnn_cts.core.case import Case
from aclnn_cts.core.outcome import CallEnd, Outcome
from aclnn_cts.sandbox.alignment import ALIGNMENT, align_up
from aclnn_cts.sandbox.batch import PendingBatch, groups

_Host = TypeVar("_Host", bound="SessionHost")

DeviceCheck: TypeAlias = Callable[[Sequence[Case]], str]
"""Makes these calls again, one an operator, which had succeeded before; says why the device is lost, else nothing."""


class SessionHost(ABC):
    """An open adapter and the memory in which its calls' buffers lie. One thread uses it, and closes it.

    What does nothing here has nothing to do where calls are made in this very process.
    """

    capabilities: Capabilities
    environment: Mapping[str, str]
    isolated: bool = False
    """Whether `refresh` gives a process without a past."""
    has_guard_pages: bool = False
    """Whether the pages around inputs cannot be read while calls are made, where their layout has any."""

    @property
    def gone(self) -> str:
        """Why no calls can be made any more; empty where they can."""
        return ""

    def on_device_fault(self, check: DeviceCheck) -> None:  # noqa: B027 - see above
        """Ask `check`, after a fault of the device, why that is lost; empty where it is not."""

    @abstractmethod
    def memory(self, size: int, *, alignment: int = ALIGNMENT) -> NDArray[np.uint8]:
        """A block of bytes for one call's buffers; it ends with `recycle`."""

    def recycle(self) -> None:  # noqa: B027 - see above
        """End all loans of memory, but of batches that were started and not ended: what was judged is done with."""

    @abstractmethod
    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls, one outcome each, whatever becomes of the implementation."""

    def start(self, calls: Sequence[Call]) -> PendingBatch:
        """Begin to make the calls. Whatever else is asked of the host meanwhile waits until they are made."""
        return PendingBatch(self.run(calls))

    def refresh(self) -> None:  # noqa: B027 - see above
        """The next call meets an implementation that has made no call yet, where the host can see to that."""

    @abstractmethod
    def close(self) -> None:
        """End the implementation, and give the memory back."""

    def __enter__(self: _Host) -> _Host:  # noqa: PYI019 - typing has Self from Python 3.11 on
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_ROOM = 1 << 18
"""Bytes that an in-process host makes at a time: the blocks of a few dozen small calls."""


class InProcessHost(SessionHost):
    """Runs an adapter in this very process: for those that are Python alone, and for debugging. A crash ends both.

    After a fault of the device this process is no judge of that, so that nobody is asked.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.capabilities = session.capabilities
        self.environment = session.environment
        self._room = np.empty(0, np.uint8)
        self._next = 0

    def memory(self, size: int, *, alignment: int = ALIGNMENT) -> NDArray[np.uint8]:
        """A block of its own for each loan, to be freed with its last user; small ones are cut from one piece.

        Raises ValueError for an alignment beyond that of every block.
        """
        if alignment != ALIGNMENT:
            raise ValueError(
                f"alignment {alignment}; expected {ALIGNMENT}, as there are no guard pages in this process"
            )
        taken = align_up(size)
        if self._next + taken > self._room.size:
            room = np.empty(max(taken, _ROOM) + ALIGNMENT, np.uint8)
            start = -int(room.__array_interface__["data"][0]) % ALIGNMENT
            self._room, self._next = room[start:], 0
        start, self._next = self._next, self._next + taken
        return self._room[start : start + size]

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls; an adapter that leaves by `sys.exit` has ended the call that way."""
        outcomes: list[Outcome] = []
        for group in groups(calls):
            together = calls[group.start : group.stop]
            try:
                outcomes += [_refuse_fresh_process(outcome) for outcome in perform(self._session, together)]
            except SystemExit as error:
                outcomes += [Outcome(ended=CallEnd.EXIT, message=f"sys.exit({error.code!r})")] * len(together)
        return outcomes

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def _refuse_fresh_process(outcome: Outcome) -> Outcome:
    """The outcome; a call that wants a fresh process, or comes after a lost device, cannot be made in this one."""
    if outcome.ended == CallEnd.DEVICE_LOST:
        return msgspec.structs.replace(outcome, ended=CallEnd.NOT_RUN)
    if outcome.ended != CallEnd.WANTS_FRESH:
        return outcome
    return Outcome(
        ended=CallEnd.INEXPRESSIBLE, message="the call needs a process of its own, and here there is but one"
    )
