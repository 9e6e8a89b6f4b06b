"""What a campaign shows of itself while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aclnn_cts.engine.campaign.dispatch import Slot
from aclnn_cts.engine.campaign.finding import Finding
from aclnn_cts.engine.campaign.promise_coverage import Share
from aclnn_cts.engine.summary import Summary

__all__ = ["OperatorStatus", "Status", "Watcher"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStatus:
    """One operator."""

    name: str
    cases: int
    failed: int
    worst: float
    """The largest error of what conforms, as a share of its bound."""
    coverage: Mapping[str, Share]
    """By sort: constraints, limits, laws, pairs."""
    factors: Mapping[str, Share]
    """Pairs by factor."""
    unjudged: int
    """Pairs that were tried, and that no case of was judged."""

    @property
    def covered(self) -> Share:
        """Over all sorts."""
        return sum(self.coverage.values(), Share(0, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A moment of a campaign."""

    seconds: float
    """Of all its sessions."""
    limit_seconds: float | None
    chunks: int
    limit_chunks: int | None
    phase: str
    rate: float
    """Cases a second of the last half minute."""
    summary: Summary
    findings: Sequence[Finding]
    slots: Sequence[Slot]
    operators: Sequence[OperatorStatus]
    disk_bytes: int
    disk_limit: int
    waiting: int
    """Findings that are yet to be confirmed."""
    ending: str = ""
    """Why no more chunks are made."""
    ran_on: str = ""
    """What the implementation says of itself in a line; empty where it says nothing."""

    @property
    def covered(self) -> Share:
        """Over all operators."""
        return sum((item.covered for item in self.operators), Share(0, 0))


class Watcher(Protocol):
    """Shows a campaign; called from one thread, about twice a second."""

    def __call__(self, status: Status, /) -> None: ...

    def notice(self, message: str, /) -> None:
        """Say a thing that a person should know."""
        ...
