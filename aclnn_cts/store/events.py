"""What a run says while it runs: it emits events, and everything that shows or stores is a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """First of all events, before anything is planned."""

    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsExpected:
    """About so many trials are going to be planned: what the time that is left is reckoned from."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsPlanned:
    """So many trials of an operator's kind of case are going to be run; comes before the first record of them."""

    operator: str
    kind: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsSkipped:
    """Planned trials that no record will tell of, and why."""

    operator: str
    kind: str
    reason: str
    number: int = 1
    result: str = Result.SKIPPED
    """Skipped, or out of scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted:
    """The run turns to another part of its plan, such as the boundary cases of one operator."""

    name: str
    operator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFinished:
    """All that is planned of an operator has been judged, and others are still to come."""

    operator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJudged:
    """Trials that have ended, waivers applied.

    `state` is what a resumed run must know and is stored together with the records, in whole or not at all: plain
    JSON values by key, such as the number of the chunk that the batch completes.
    """

    records: tuple[Record, ...]
    coverage: Summary = field(default_factory=Summary)
    """Which constraints the trials' cases held and broke, and which cells were reached: these counts alone."""
    state: Mapping[str, object] | None = None
    blobs: tuple[bytes, ...] = ()
    """Recorded outputs, kept by their SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A thing that a person should know and that is no record: a worker was lost, a waiver is no longer needed."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """Last of all events, also after an interruption."""

    summary: Summary
    seconds: float
    interrupted: bool = False


Event: TypeAlias = (
    RunStarted
    | TrialsExpected
    | TrialsPlanned
    | TrialsSkipped
    | PhaseStarted
    | OperatorFinished
    | BatchJudged
    | Notice
    | RunFinished
)


class Consumer(Protocol):
    """Shows or stores events; called in their order, from one thread."""

    def __call__(self, event: Event, /) -> None: ...
