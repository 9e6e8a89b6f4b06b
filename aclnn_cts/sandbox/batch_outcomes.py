"""The outcomes of a batch whose calls runners make: each call has one, also where its runner dies."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.outcome import EARLIER_FAULT, PROCESS_ENDS, CallEnd, Outcome
from aclnn_cts.sandbox.batch import end_of_group
from aclnn_cts.sandbox.child import ChildEnd

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
        if last is not None and last.ended == CallEnd.WANTS_FRESH:
            self.known.pop()
            if self._refreshed == len(self.known):
                self.known.append(Outcome(ended=CallEnd.INEXPRESSIBLE, message="no fresh process is fresh enough"))
            self._refreshed = len(self.known)
            return None
        if last is not None and last.ended == CallEnd.DEVICE_LOST:
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
            unrun = Outcome(ended=CallEnd.NOT_RUN, message=fault.message)
            self.known += [unrun] * (1 + self._rest_of_group(len(self.known) + 1))
        self._met_lost_device = len(self.known)

    def _between_calls(self, answers: Sequence[Outcome], ending: ChildEnd) -> None:
        self._deaths = 0 if answers else self._deaths + 1
        if self._deaths == _TRIES_BEFORE_CALL:
            self._deaths = 0
            self.known.append(Outcome(ended=CallEnd.NOT_RUN, message=f"runners die before the call: {ending.message}"))

    def _rest_of_group(self, start: int) -> int:
        """How many calls from `start` on belong to the group of the call before it."""
        return end_of_group(self._calls, start - 1) - start
