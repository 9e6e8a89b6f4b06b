"""Batches of calls: their groups, their outcomes, which call broke the device, and batches that are made meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.outcome import EARLIER_FAULT, PROCESS_ENDS, Ended, Outcome

if TYPE_CHECKING:
    from aclnn_cts.sandbox.child import ChildEnd


def has_device_fault(outcomes: Sequence[Outcome]) -> bool:
    """Whether a fault of the device showed in one of these calls."""
    return any(item.ended == Ended.DEVICE_FAULT or EARLIER_FAULT in item.facts for item in outcomes)


_TRIES_BEFORE_CALL = 2
"""Runners that may die before a call begins until the call is given up."""


class BatchOutcomes:
    """One outcome a call, in their order, as runners come and go."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self.known: list[Outcome] = []
        self._deaths = 0
        """Runners in a row that died before the next call began."""
        self._refreshed = -1
        """The call that has asked for a fresh process."""
        self._met_lost_device = -1
        """The call that has met a device which was lost before it."""
        self._met_fault: dict[int, str] = {}
        """What calls were told of faults that were there before them."""

    @property
    def complete(self) -> bool:
        """Whether every call has its outcome."""
        return len(self.known) >= len(self._calls)

    def note_faults(self) -> None:
        """Tell of calls that met the fault of one before them, by a fact; when all calls have their outcome."""
        for place, message in self._met_fault.items():
            outcome = self.known[place]
            self.known[place] = msgspec.structs.replace(outcome, facts={**outcome.facts, EARLIER_FAULT: message})

    def fill(self, outcome: Outcome) -> None:
        """The same outcome for all that is left."""
        self.known += [outcome] * (len(self._calls) - len(self.known))

    def runner_ended(self, answers: Sequence[Outcome], ending: ChildEnd) -> Outcome | None:
        """A runner has ended that gave these answers, which `known` holds by now.

        A call that must meet a fresh process is left to the next runner, and all others that began have an outcome
        afterwards. Gives the outcome that casts doubt on the device, if one does.
        """
        last = answers[-1] if answers else None
        if last is not None and last.ended == Ended.WANTS_FRESH:
            self.known.pop()
            if self._refreshed == len(self.known):
                self.known.append(Outcome(ended=Ended.INEXPRESSIBLE, message="no fresh process is fresh enough"))
            self._refreshed = len(self.known)
            return None
        if last is not None and last.ended == Ended.DEVICE_LOST:
            self._lost_device(last)
            return last
        if last is not None and last.ended in PROCESS_ENDS:
            self._deaths = 0
            self.known += [last] * self._rest_of_group(len(self.known))
            return last
        begun = self._begun(len(answers), ending)
        # A group that has all its outcomes is done: the runner died right after it.
        if begun is None or len(self.known) > begun + self._rest_of_group(begun + 1):
            self._between_calls(answers, ending)
            return None
        self._deaths = 0
        self.known += [ending.outcome()] * (1 + self._rest_of_group(len(self.known) + 1))
        return self.known[-1]

    def _begun(self, answers: int, ending: ChildEnd) -> int | None:
        """The place of the call that was being made, by a runner that has given so many answers.

        Its word is shared memory, which a wild write may have changed. One that its answers contradict says nothing:
        the call under way is then the first without an answer.
        """
        if len(self.known) == len(self._calls):
            return None
        if ending.in_flight is not None and not ending.in_answer:
            place = len(self.known) - answers + ending.in_flight
            believed = 0 <= ending.in_flight <= answers and end_of_group(self._calls, place) >= len(self.known)
            return place if believed else len(self.known)
        return len(self.known) if ending.in_answer else None

    def _lost_device(self, fault: Outcome) -> None:
        """What an earlier call left behind ends with the process: one more try. What is the device's own does not."""
        self.known.pop()
        if EARLIER_FAULT in fault.facts:
            self._met_fault.setdefault(len(self.known), str(fault.facts[EARLIER_FAULT]))
        if self._met_lost_device == len(self.known):
            unrun = Outcome(ended=Ended.NOT_RUN, message=fault.message)
            self.known += [unrun] * (1 + self._rest_of_group(len(self.known) + 1))
        self._met_lost_device = len(self.known)

    def _between_calls(self, answers: Sequence[Outcome], ending: ChildEnd) -> None:
        self._deaths = 0 if answers else self._deaths + 1
        if self._deaths == _TRIES_BEFORE_CALL:
            self._deaths = 0
            self.known.append(Outcome(ended=Ended.NOT_RUN, message=f"runners die before the call: {ending.message}"))

    def _rest_of_group(self, start: int) -> int:
        """How many calls from `start` on belong to the group of the call before it."""
        return end_of_group(self._calls, start - 1) - start


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
