"""The places where a campaign's workers run, and what the head is told of them."""

from __future__ import annotations

from dataclasses import dataclass

from aclnn_cts.campaign.fleet.inflight_log import Position
from aclnn_cts.campaign.fleet.jobs import Answer


class Health:
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
    health: str = Health.OPENING
    lost: int = 0
    """Workers that were lost here."""

    @property
    def title(self) -> str:
        """Its name, and its device where it has one of its own."""
        return f"{self.name} ({self.device})" if self.device else self.name


@dataclass(frozen=True, slots=True)
class Done:
    """A worker has answered."""

    slot: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker was lost, and its job with it. Another one takes its place."""

    slot: int
    reason: str
    flight: Position | None = None
    begun: bool = True
    """Whether the worker was open: otherwise the loss says nothing of the job."""
    answer: Answer | None = None
    """What the job had come to where its implementation was gone before its end."""


@dataclass(frozen=True, slots=True)
class Away:
    """A worker cannot be opened; it is tried again, and nothing more is said of it until it is back."""

    slot: int
    reason: str


@dataclass(frozen=True, slots=True)
class Back:
    """A worker is open that could not be."""

    slot: int
    seconds: float
    """After the first failure."""


Event = Done | Lost | Away | Back
