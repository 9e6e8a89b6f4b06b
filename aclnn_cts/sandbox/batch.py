"""Batches of calls: their groups, which call broke the device, and batches that are made meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from aclnn_cts.core.outcome import EARLIER_FAULT, CallEnd, Outcome


def has_device_fault(outcomes: Sequence[Outcome]) -> bool:
    """Whether a fault of the device showed in one of these calls."""
    return any(item.ended == CallEnd.DEVICE_FAULT or EARLIER_FAULT in item.facts for item in outcomes)


_T = TypeVar("_T")


class BackgroundWork(Generic[_T]):
    """A piece of work in a thread of its own; calling it waits for the result.

    The thread ends with the program where that does not wait for it. `strike` makes the work end soon.
    """

    def __init__(self, work: Callable[[], _T], *, strike: Callable[[], None]) -> None:
        self._work = work
        self._strike = strike
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, name="aclnn-cts-batch", daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    @property
    def done(self) -> bool:
        """Whether calling it would not wait."""
        return not self._thread.is_alive()

    def strike(self) -> None:
        """Make the work end, and wait for that."""
        self._strike()
        self._thread.join()

    def __call__(self) -> _T:
        """The result, or the exception. An interrupt while waiting for it ends the work first."""
        try:
            self._thread.join()
        except BaseException:
            self.strike()
            raise
        if self._error is not None:
            raise self._error
        return self._results[0]


class PendingBatch:
    """A batch that was started. Whoever started it ends it; until then its buffers are its own."""

    def __init__(
        self,
        outcomes: list[Outcome],
        *,
        steps: Generator[BackgroundWork[Any], None, None] | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """Begin the batch.

        - `outcomes`: one a call, in the order of the calls; filled by the steps.
        - `steps`: make the batch's calls; they yield what is to be waited for, aside, before they go on. None: all
          calls were made.
        - `release`: lets go of the batch's buffers.
        """
        self._outcomes = outcomes
        self._steps = steps
        self._release = release
        self._work: BackgroundWork[Any] | None = None
        """What there is to wait for, if anything."""
        try:
            self._go_on()
        except BaseException:
            self.end()
            raise

    def _go_on(self) -> None:
        """One step: up to where there is something to wait for, or the end."""
        # What a step asks of the host (of the device, after a fault) has nothing to wait for.
        self._work = None
        if self._steps is not None:
            self._work = next(self._steps, None)

    def advance(self) -> None:
        """Where a runner has ended, give what it left to the next; never waits for a call. To be asked now and then."""
        if self._work is not None and self._work.done:
            self._go_on()

    def outcomes(self) -> list[Outcome]:
        """Wait until all calls are made; one outcome each, in their order."""
        while self._work is not None:
            self._go_on()
        return self._outcomes

    def end(self) -> None:
        """Let go of the buffers, which the next `recycle` takes. Calls under way are ended, with their runner."""
        if self._steps is not None and self._work is not None:
            self._work.strike()
            self._work = None
            self._steps.close()
        # Once: by the next time the same memory may be another batch's.
        release, self._release = self._release, None
        if release is not None:
            release()


class GroupedCall(Protocol):
    """A call that may belong to a group."""

    @property
    def group(self) -> int | None:
        """Neighbours of one group are made together; None: alone."""
        ...


def end_of_group(calls: Sequence[GroupedCall], start: int) -> int:
    """The place after the last call that is made together with the one at `start`."""
    group = calls[start].group
    end = start + 1
    while group is not None and end < len(calls) and calls[end].group == group:
        end += 1
    return end


def groups(calls: Sequence[GroupedCall], start: int = 0, stop: int | None = None) -> Iterator[range]:
    """The places of calls that are made together, from `start` on; `stop` is where a group ends."""
    while start < (len(calls) if stop is None else stop):
        group = range(start, end_of_group(calls, start))
        yield group
        start = group.stop
