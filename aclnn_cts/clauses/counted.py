"""What trials say of one statement, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from aclnn_cts.core.verdict import Record, Result, Skip
from aclnn_cts.judgement.status import ACCEPTED_FACT
from aclnn_cts.triage.dedup import Member

FIRST_PHASE = "first phase alone"
"""Why a trial that passed says nothing of a clause, among the reasons to skip."""

NO_STATUS = "rejected without a status"
"""Why a trial that passed says nothing of a clause: the clause is about the status."""

PLAIN_CALL = "plain call"
"""Why a trial that failed says nothing of a clause on a call mode: the plain call fails so too."""

OTHER_CALLS = "other calls"
"""Why a trial that failed says nothing of a clause: calls that it is not about fail so too."""

OTHER_FAULT = "other fault"
"""Why a trial that failed says nothing of a clause: the fault hides what the clause is about."""

_EVIDENCE = 3
"""Trial ids that are kept of each side."""


@dataclass(slots=True)
class Said:
    """What trials said, counted."""

    passed: int = 0
    failed: int = 0
    waived: int = 0
    otherwise: int = 0
    """Trials that failed, and keep the clause: with wrong values, where the clause is not about them."""
    skipped: Counter[str] = field(default_factory=Counter)
    """By reason; errors of the harness are among them as `error`, and what is out of scope as that."""
    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    findings: Counter[Member] = field(default_factory=Counter)
    """Failures, by what they have in common."""

    @property
    def judged(self) -> int:
        """Trials that say something."""
        return self.passed + self.failed + self.otherwise

    @property
    def trials(self) -> int:
        """All of them."""
        return self.judged + sum(self.skipped.values())

    @property
    def aside(self) -> int:
        """Trials that would have said something and did not; what the document leaves open could not."""
        return sum(number for reason, number in self.skipped.items() if reason != Skip.OPEN)

    def add(self, record: Record, member: Member | None = None) -> None:
        """Count one trial."""
        result = record.verdict.result
        if is_first_phase(record):
            # A call that went no further than phase one shows nothing of what the clause says of its outputs.
            self.skip(FIRST_PHASE)
        elif result == Result.PASSED and ACCEPTED_FACT in record.verdict.facts:
            self.skip(NO_STATUS)
        elif result == Result.PASSED:
            self.passed += 1
            if len(self.good) < _EVIDENCE:
                self.good.append(record.trial_id)
        elif result == Result.FAILED:
            self.failed += 1
            self.waived += bool(record.waiver)
            if member is not None:
                self.findings[member] += 1
            if len(self.bad) < _EVIDENCE:
                self.bad.append(record.trial_id)
        else:
            self.skip(record.verdict.kind if result == Result.SKIPPED else result)

    def skip(self, reason: str, number: int = 1) -> None:
        """Count some that say nothing."""
        self.skipped[reason] += number

    def include(self, other: Said) -> None:
        """Add what others said."""
        self.passed += other.passed
        self.failed += other.failed
        self.waived += other.waived
        self.otherwise += other.otherwise
        self.skipped.update(other.skipped)
        self.good = [*self.good, *other.good][:_EVIDENCE]
        self.bad = [*self.bad, *other.bad][:_EVIDENCE]
        self.findings.update(other.findings)


def is_first_phase(record: Record) -> bool:
    """Whether it passed, and went no further than phase one."""
    return record.verdict.result == Result.PASSED and record.verdict.facts.get("phases") == 1
