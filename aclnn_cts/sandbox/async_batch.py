"""Batches whose calls are made while their starter does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from aclnn_cts.core.outcome import Outcome

_T = TypeVar("_T")


class Pending(Protocol):
    """A batch that was started. Whoever started it ends it; until then its buffers are its own."""

    def advance(self) -> None:
        """See to what may have stopped the batch, without waiting for a call: to be asked now and then."""
        ...

    def outcomes(self) -> list[Outcome]:
        """Wait until all calls are made; one outcome each, in their order."""
        ...

    def end(self) -> None:
        """Let go of the buffers, which the next `recycle` takes. Calls that are under way are broken off."""
        ...


class Made:
    """A batch of a host that makes all calls at once."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = list(outcomes)

    def advance(self) -> None:
        """Nothing to see to."""

    def outcomes(self) -> list[Outcome]:
        """What is known already."""
        return self._outcomes

    def end(self) -> None:
        """Nothing is held."""


class Aside(Generic[_T]):
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


class UnderWay:
    """The one batch of a host that is being made while whoever started it does something else."""

    def __init__(self) -> None:
        self.batch: Started | None = None
        """None where there is nothing to wait for."""

    def begin(
        self,
        steps: Generator[Aside[Any], None, None],
        *,
        outcomes: list[Outcome],
        release: Callable[[], None],
    ) -> Started:
        """Begin a batch; what was under way must be finished.

        - `steps`: make the batch's calls; they yield what is to be waited for, aside, before they go on.
        - `outcomes`: the list that they fill.
        - `release`: lets go of the batch's buffers.
        """
        batch = Started(self, steps, outcomes=outcomes, release=release)
        try:
            batch.go_on()
        except BaseException:
            batch.end()
            raise
        return batch

    def finish(self) -> None:
        """Wait for the batch, where there is one."""
        if self.batch is not None:
            self.batch.outcomes()

    def end(self) -> None:
        """Break off the batch, where there is one."""
        if self.batch is not None:
            self.batch.end()


class Started:
    """A batch that is made in steps. `UnderWay.begin` makes one."""

    def __init__(
        self,
        under_way: UnderWay,
        steps: Generator[Aside[Any], None, None],
        *,
        outcomes: list[Outcome],
        release: Callable[[], None],
    ) -> None:
        self._under_way = under_way
        self._steps = steps
        self._outcomes = outcomes
        self._release: Callable[[], None] | None = release
        self._work: Aside[Any] | None = None

    def go_on(self) -> None:
        """One step: up to where there is something to wait for, or the end."""
        # What a step asks of the host (of the device, after a fault) has nothing to wait for.
        self._under_way.batch = self._work = None
        self._work = next(self._steps, None)
        self._under_way.batch = None if self._work is None else self

    def advance(self) -> None:
        """Where a runner has ended, give what it left to the next; never waits for a call."""
        if self._work is not None and self._work.done:
            self.go_on()

    def outcomes(self) -> list[Outcome]:
        """Wait until all calls are made."""
        while self._work is not None:
            self.go_on()
        return self._outcomes

    def end(self) -> None:
        """Let go of the buffers. Calls that are still under way are ended, with their runner."""
        if self._work is not None:
            self._work.strike()
            self._work = None
            self._under_way.batch = None
            self._steps.close()
        # Once: by the next time the same memory may be another batch's.
        release, self._release = self._release, None
        if release is not None:
            release()
