"""Batches whose calls are made while their starter does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from aclnn_cts.core.outcome import Outcome

__all__ = ["Aside", "Made", "Pending"]

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
        self._result: _T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._do, name="aclnn-cts-batch", daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._result = self._work()
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
        return self._result  # type: ignore[return-value]
