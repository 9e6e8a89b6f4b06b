"""Where an adapter lives: in this process or in a runner, behind one interface, with memory that it lends for buffers.

A batch goes: `memory` for each case, `generate.buffers.prepare` in it, `run`, `inspect` of the buffers, `recycle`.
Where something else is to be done meanwhile, `start` stands for `run`, and what it gives keeps the memory to its `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.adapters.protocol import Call, Capabilities, Session
from aclnn_cts.adapters.registry import choose, load
from aclnn_cts.adapters.results import perform
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.target import DEFAULT_PRODUCT, OWN_PRODUCT, Target
from aclnn_cts.sandbox.arena import ALIGNMENT, aligned
from aclnn_cts.sandbox.async_batch import Made, Pending
from aclnn_cts.sandbox.call_groups import end_of_group
from aclnn_cts.sandbox.declaration import declaration_of
from aclnn_cts.sandbox.process import Limits, ProcessHost
from aclnn_cts.speclang.model import Spec


class SessionHost(Protocol):
    """An open adapter and the memory in which its calls' buffers lie. One thread uses it, and closes it."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def isolated(self) -> bool:
        """Whether `refresh` gives a process without a past."""
        ...

    @property
    def gone(self) -> str:
        """Why no calls can be made any more; empty where they can."""
        ...

    def on_device_fault(self, check: Callable[[], str]) -> None:
        """Ask `check`, after a fault of the device, why that is lost; empty where it is not."""
        ...

    def memory(self, size: int) -> NDArray[np.uint8]:
        """A block of bytes for one call's buffers, aligned to 64; it ends with `recycle`."""
        ...

    def recycle(self) -> None:
        """End all loans of memory, but of batches that were started and not ended: what was judged is done with."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls, one outcome each, whatever becomes of the implementation."""
        ...

    def start(self, calls: Sequence[Call]) -> Pending:
        """Begin to make the calls. Whatever else is asked of the host meanwhile waits until they are made."""
        ...

    def refresh(self) -> None:
        """The next call meets an implementation that has made no call yet, where the host can see to that."""
        ...

    def close(self) -> None: ...
    def __enter__(self) -> SessionHost: ...  # noqa: PYI034 - typing has Self from Python 3.11 on
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


_ROOM = 1 << 18
"""Bytes that an in-process host makes at a time: the blocks of a few dozen small calls."""


class InProcessHost:
    """Runs an adapter in this very process: for those that are Python alone, and for debugging. A crash ends both."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._room = np.empty(0, np.uint8)
        self._next = 0

    @property
    def capabilities(self) -> Capabilities:
        """The session's own."""
        return self._session.capabilities

    @property
    def environment(self) -> Mapping[str, str]:
        """The session's own."""
        return self._session.environment

    @property
    def isolated(self) -> bool:
        """Never: this process has made its calls."""
        return False

    @property
    def gone(self) -> str:
        """Never: what ends the implementation ends this process."""
        return ""

    def on_device_fault(self, check: Callable[[], str]) -> None:
        """Not asked here: after such a fault this process is no judge of the device."""

    def memory(self, size: int) -> NDArray[np.uint8]:
        """A block of its own for each loan: small ones are cut from one piece, which ends with the last of them."""
        taken = aligned(size)
        if self._next + taken > self._room.size:
            room = np.empty(max(taken, _ROOM) + ALIGNMENT, np.uint8)
            start = -int(room.__array_interface__["data"][0]) % ALIGNMENT
            self._room, self._next = room[start:], 0
        start, self._next = self._next, self._next + taken
        return self._room[start : start + size]

    def recycle(self) -> None:
        """Nothing to do: blocks end with their last user."""

    def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Make the calls; an adapter that leaves by `sys.exit` has ended the call that way."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(calls):
            together = group_of(calls, len(outcomes))
            try:
                outcomes += [_told(outcome) for outcome in perform(self._session, together)]
            except SystemExit as error:
                outcomes += [Outcome(ended=Ended.EXIT, message=f"sys.exit({error.code!r})")] * len(together)
        return outcomes

    def start(self, calls: Sequence[Call]) -> Pending:
        """Make the calls at once: one process does one thing at a time."""
        return Made(self.run(calls))

    def refresh(self) -> None:
        """Not possible here: the process stays the same."""

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def __enter__(self) -> InProcessHost:  # noqa: PYI034 - typing has Self from Python 3.11 on
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _told(outcome: Outcome) -> Outcome:
    """What cannot be granted in one process is said to be so."""
    if outcome.ended == Ended.DEVICE_LOST:
        return msgspec.structs.replace(outcome, ended=Ended.NOT_RUN)
    if outcome.ended != Ended.WANTS_FRESH:
        return outcome
    return Outcome(ended=Ended.INEXPRESSIBLE, message="the call needs a process of its own, and here there is but one")


def group_of(calls: Sequence[Call], start: int) -> Sequence[Call]:
    """The call at `start` and those after it that belong to its group."""
    return calls[start : end_of_group(calls, start)]


def open_host(
    adapter: str,
    *,
    target: Target,
    specs: Mapping[str, Spec],
    spec_folders: Sequence[Path] = (),
    edition: str = "",
    isolate: bool | None = None,
    limits: Limits | None = None,
    workers: int = 1,
) -> SessionHost:
    """Open what an `--adapter` word names, in a runner unless its entry says that it needs none.

    An empty product (`OWN_PRODUCT`) is the device's own, or the default for an implementation that is no device.
    `isolate` overrides the entry. `spec_folders` are the user's own (`--specs`), which a runner loads for itself,
    in this edition of the documents.
    `workers` processes like this one share the machine's memory.
    Raises UsageError for a word or option that is wrong, HarnessError where the adapter cannot be opened here.
    """
    choice = choose(adapter)
    if target.product == OWN_PRODUCT and not choice.own_product:
        target = msgspec.structs.replace(target, product=DEFAULT_PRODUCT)
    if choice.isolate if isolate is None else isolate:
        return ProcessHost(
            adapter, target=target, spec_folders=spec_folders, edition=edition, limits=limits, workers=workers
        )
    session = load(choice).open(target, specs)
    declaration_of(session, adapter=adapter)
    return InProcessHost(session)
