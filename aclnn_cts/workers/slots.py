"""The places where workers run: their health, their events, and when one that cannot be opened is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aclnn_cts.core.errors import HarnessError, UsageError

A = TypeVar("A")


class SlotHealth:
    """How a slot is (values of `Slot.health`)."""

    OPENING = "opening"
    READY = "ready"
    BUSY = "busy"
    OUT = "out"
    """It has not been open for a minute; it is tried again, at longer intervals."""


@dataclass(slots=True)
class Slot:
    """One place where a worker runs, with a device of its own."""

    name: str
    device: str = ""
    """What tells devices apart: slots of one device may confirm a finding for each other. Empty: there is but one."""
    health: str = SlotHealth.OPENING
    lost: int = 0
    """Workers that were lost here."""

    @property
    def title(self) -> str:
        """Its name, and its device where it has one of its own."""
        return f"{self.name} ({self.device})" if self.device else self.name


@dataclass(frozen=True, slots=True)
class JobDone:
    """A worker has answered."""

    slot: int
    answer: object
    """One of `Service.answers`, or a `WorkerFailed`."""


@dataclass(frozen=True, slots=True)
class WorkerLost(Generic[A]):
    """A worker was lost, and its job with it. Another one takes its place."""

    slot: int
    reason: str
    begun: bool = True
    """Whether the worker was open: otherwise the loss says nothing of the job."""
    answer: A | None = None
    """What the job had come to where its implementation was gone before its end."""


@dataclass(frozen=True, slots=True)
class WorkerUnavailable:
    """A worker cannot be opened; it is tried again, and nothing more is said of it until it is back."""

    slot: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerRecovered:
    """A worker is open that could not be."""

    slot: int
    seconds: float
    """After the first failure."""


Event = JobDone | WorkerLost[Any] | WorkerUnavailable | WorkerRecovered


FIRST_PAUSE = 2.0
"""Seconds between the first opening that failed and the next; each pause is twice the one before."""
LONGEST_PAUSE = 300.0

OUT_SECONDS = 60.0
"""After so long without an open worker a slot is out; it is tried on all the same."""

PATIENCE_SECONDS = 600.0
"""Without any open worker for so long the campaign ends."""


@dataclass(slots=True)
class _Place:
    due: float | None = 0.0
    """When it is to be opened; None: that is under way, or done."""
    ever: bool = False
    """Whether it was open once, so that its words are right."""
    failed: int = 0
    """Openings in a row."""
    since: float = 0.0
    """When the first of them failed."""
    down: float = 0.0
    """Since when it is not open."""
    reason: str = ""
    """Of the last of them."""


@dataclass(slots=True)
class WorkerBackoff:
    """Keeps the time of what is to be opened, and the health of slots that are not open."""

    slots: Sequence[Slot]
    nothing: str = "no worker could be opened"
    """What is said where none is open for too long, and no opening has failed."""
    clock: Callable[[], float] = time.monotonic
    _places: list[_Place] = field(init=False)
    _alive: float = field(init=False)
    """When a worker was open last."""

    def __post_init__(self) -> None:
        self._alive = self.clock()
        self._places = [_Place(down=self._alive) for _ in self.slots]

    def due_slots(self) -> list[int]:
        """Slots that are to be opened now; from here on that is under way."""
        now = self.clock()
        numbers = [number for number, place in enumerate(self._places) if place.due is not None and place.due <= now]
        for number in numbers:
            self._places[number].due = None
        return numbers

    def until_due(self, most: float) -> float:
        """Seconds until a slot is to be opened, at most so many."""
        now = self.clock()
        return max(min([most, *(place.due - now for place in self._places if place.due is not None)]), 0.0)

    def note_opened(self, number: int) -> list[Event]:
        """A slot is open; that it is back, where an opening had failed before."""
        place, now = self._places[number], self.clock()
        self._places[number] = _Place(due=None, ever=True, down=now)
        self._alive = now
        return [WorkerRecovered(number, now - place.since)] if place.failed else []

    def note_lost(self, number: int) -> None:
        """What was open is so no more, and is to be opened at once."""
        self._places[number].due = self._places[number].down = self.clock()
        self.slots[number].health = SlotHealth.OPENING

    def note_failed(self, number: int, reason: str, *, usage: bool = False) -> list[Event]:
        """An opening has failed, and is tried again after a pause; that the slot is away, for the first in a row.

        Raises UsageError where `usage` says that the words are wrong with which the slot was never open, and
        HarnessError where the first opening of every slot has failed.
        """
        place, slot, now = self._places[number], self.slots[number], self.clock()
        if usage and not place.ever:
            raise UsageError(reason)
        if not place.failed:
            place.since = now
        if slot.health in (SlotHealth.READY, SlotHealth.BUSY):
            place.down = now
        place.failed += 1
        place.reason = reason
        if all(each.failed and not each.ever for each in self._places):
            raise HarnessError(reason)
        place.due = now + min(FIRST_PAUSE * 2.0 ** min(place.failed - 1, 30), LONGEST_PAUSE)
        if slot.health != SlotHealth.OUT:
            slot.health = SlotHealth.OPENING
        return [WorkerUnavailable(number, reason)] if place.failed == 1 else []

    def check_slots(self) -> None:
        """See which slots are out. HarnessError where no worker has been open for too long."""
        now = self.clock()
        for slot, place in zip(self.slots, self._places, strict=True):
            if slot.health == SlotHealth.OPENING and now - place.down > OUT_SECONDS:
                slot.health = SlotHealth.OUT
        if any(slot.health in (SlotHealth.READY, SlotHealth.BUSY) for slot in self.slots):
            self._alive = now
        elif now - self._alive > PATIENCE_SECONDS:
            told = [
                f"{slot.title}: {each.reason}"
                for slot, each in zip(self.slots, self._places, strict=True)
                if each.reason
            ]
            raise HarnessError(
                f"{self.nothing} for {PATIENCE_SECONDS / 60.0:.0f} minutes; mend that and go on with --resume"
                + "".join(f"\n  {text}" for text in told)
            )
