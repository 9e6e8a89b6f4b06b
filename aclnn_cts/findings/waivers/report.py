"""What a run shows of its waivers: those that have expired, and those that are no longer needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.findings.waivers.file import Waiver


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverReport:
    """What a run says of the waivers that concern it, in the order of the files."""

    expired: tuple[Waiver, ...]
    """They speak for nothing any more and fail the run."""
    mended: tuple[Waiver, ...]
    """Each of their pinned cases for this product was judged, and none failed."""
    unused: tuple[Waiver, ...]
    """Trials in their scope were judged, and none failed as they say."""
    ignored: str = ""
    """One line about those for other versions of the adapter's library; empty where there are none."""

    def violations(self) -> tuple[Note, ...]:
        """Why the run fails: for `Summary.violate`."""
        return tuple(
            Note(
                f"{waiver.where}: waiver {waiver.id} expired on {waiver.expiry}; "
                f"{waiver.owner} renews it or has it mended",
                NoteCode.EXPIRED,
                {"waiver": waiver.id, "owner": waiver.owner, "expiry": waiver.expiry.isoformat()},
            )
            for waiver in self.expired
        )

    def notices(self) -> tuple[str, ...]:
        """What the owners should know."""
        return (
            *([self.ignored] if self.ignored else []),
            *(f"{waiver.where}: waiver {waiver.id}: its pinned cases pass now; remove it" for waiver in self.mended),
            *(
                f"{waiver.where}: waiver {waiver.id}: nothing in its scope failed in this run; see whether it is needed"
                for waiver in self.unused
            ),
        )


class WaiverEvidence(msgspec.Struct):
    """What the records of a process, or of several together, say of waivers; plain JSON values when encoded."""

    pins: dict[str, tuple[str, ...]] = {}
    """Of each waiver that speaks, by its id: the ids of the cases that are pinned for the product."""
    judged: set[str] = set()
    """Ids of waivers in whose scope trials were judged."""
    used: set[str] = set()
    """Ids of waivers that a failure needed."""
    passed: set[str] = set()
    """Ids of pinned cases."""
    failed: set[str] = set()

    def include(self, other: WaiverEvidence) -> None:
        """Take in what another process has seen; where the two know other pins of a waiver, these here count."""
        self.pins = {**other.pins, **self.pins}
        self.judged |= other.judged
        self.used |= other.used
        self.passed |= other.passed
        self.failed |= other.failed

    def beyond(self, told: WaiverEvidence) -> WaiverEvidence:
        """What of it is not told yet."""
        return WaiverEvidence(
            pins={name: pins for name, pins in self.pins.items() if name not in told.pins},
            judged=self.judged - told.judged,
            used=self.used - told.used,
            passed=self.passed - told.passed,
            failed=self.failed - told.failed,
        )

    def report(self, waivers: Iterable[Waiver], *, expired: tuple[Waiver, ...] = (), ignored: str = "") -> WaiverReport:
        """What it comes to."""
        speaking = [waiver for waiver in waivers if waiver.id in self.pins]
        mended = tuple(waiver for waiver in speaking if self._mended(self.pins[waiver.id]))
        unused = tuple(
            waiver
            for waiver in speaking
            if waiver.id in self.judged and waiver.id not in self.used and waiver not in mended
        )
        return WaiverReport(expired=expired, mended=mended, unused=unused, ignored=ignored)

    def _mended(self, pins: tuple[str, ...]) -> bool:
        return bool(pins) and all(pin in self.passed and pin not in self.failed for pin in pins)
