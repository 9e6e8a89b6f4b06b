"""The loop that keeps workers busy: a plan says what a free worker is given next, and what its answer means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from aclnn_cts.workers.dispatch import Dispatcher
from aclnn_cts.workers.slots import Event, SlotHealth


class JobPlan(Protocol):
    """What is to be done, and what came of it."""

    def is_finished(self) -> bool:
        """Whether nothing is to be handed out or waited for any more."""
        ...

    def next_for(self, slot: int) -> msgspec.Struct | None:
        """The job that a free worker is given now; None where there is nothing for it."""
        ...

    def handle_event(self, event: Event) -> None:
        """Take an answer, or the loss of a worker."""
        ...


def schedule(plan: JobPlan, dispatcher: Dispatcher, *, seconds: float) -> Iterator[None]:
    """Work until the plan is finished; yields after every round, which lasts so many seconds at most.

    Raises as `Dispatcher.wait` and the plan do.
    """
    while not plan.is_finished():
        for number, slot in enumerate(dispatcher.slots):
            if slot.health == SlotHealth.READY and (job := plan.next_for(number)) is not None:
                dispatcher.submit(number, job)
        for event in dispatcher.wait(seconds):
            plan.handle_event(event)
        yield
