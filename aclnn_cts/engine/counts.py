"""How trials ended, counted: by kind of case, by constraint and by law."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.verdict import Result

__all__ = ["ConstraintCount", "Counts", "CoverageCount", "LawCount", "OperatorSummary", "total_of"]


class Counts(msgspec.Struct):
    """How many trials were planned and how they ended; `waived` is a part of `failed`."""

    cases: int = 0
    """Planned."""
    passed: int = 0
    failed: int = 0
    waived: int = 0
    errors: int = 0
    skipped: int = 0
    skipped_by_reason: dict[str, int] = {}

    @property
    def ended(self) -> int:
        """Trials with an end: what `cases` must equal."""
        return self.passed + self.failed + self.errors + self.skipped

    @property
    def judged(self) -> int:
        """Trials that say something of the implementation."""
        return self.passed + self.failed

    def include(self, other: Counts) -> None:
        """Add another's counts to these."""
        self.cases += other.cases
        self.passed += other.passed
        self.failed += other.failed
        self.waived += other.waived
        self.errors += other.errors
        self.skipped += other.skipped
        for reason, count in other.skipped_by_reason.items():
            self.skipped_by_reason[reason] = self.skipped_by_reason.get(reason, 0) + count

    def count(self, result: str, *, reason: str, waived: bool, number: int = 1) -> None:
        """Count an end of trials. `reason` is that of a skip; a result that nobody knows is a HarnessError."""
        if result == Result.PASSED:
            self.passed += number
        elif result == Result.FAILED:
            self.failed += number
            self.waived += number if waived else 0
        elif result == Result.ERROR:
            self.errors += number
        elif result == Result.SKIPPED:
            if not reason:
                raise HarnessError("a trial was skipped without a reason; every skip must name one")
            self.skipped += number
            self.skipped_by_reason[reason] = self.skipped_by_reason.get(reason, 0) + number
        else:
            raise HarnessError(f"result {result!r}; expected passed, failed, error or skipped")


class ConstraintCount(msgspec.Struct):
    """Trials whose case holds one constraint, and whose case breaks it, whatever came of them."""

    held: int = 0
    broken: int = 0


class LawCount(msgspec.Struct):
    """Trials of one law, whatever came of them, and those that were planned and could not be generated."""

    tried: int = 0
    withheld: int = 0


class CoverageCount(msgspec.Struct):
    """How much of one sort of thing that can be covered was (`campaign.promise_coverage`)."""

    met: int = 0
    of: int = 0
    """Without those apart."""
    apart: int = 0
    """Tried, and never judged: this implementation cannot be given them, say."""


class OperatorSummary(msgspec.Struct):
    """One operator: counts by kind of case (`example`, `valid`, `invalid`, ...), by constraint and by law."""

    kinds: dict[str, Counts] = {}
    constraints: dict[str, ConstraintCount] = {}
    laws: dict[str, LawCount] = {}
    coverage: dict[str, CoverageCount] = {}
    """Of a campaign, when it ended: by sort, which are `constraints`, `limits`, `laws` and `pairs`."""

    @property
    def total(self) -> Counts:
        """Over all kinds."""
        return total_of(self.kinds.values())

    def kind(self, name: str) -> Counts:
        """The counts of a kind of case, made on first use."""
        return self.kinds.get(name) or self.kinds.setdefault(name, Counts())

    def constraint(self, identifier: str) -> ConstraintCount:
        """The counts of a constraint, made on first use: naming one that no trial touches shows it as zero."""
        return self.constraints.get(identifier) or self.constraints.setdefault(identifier, ConstraintCount())

    def law(self, identifier: str) -> LawCount:
        """The counts of a law, made on first use."""
        return self.laws.get(identifier) or self.laws.setdefault(identifier, LawCount())


def total_of(parts: Iterable[Counts]) -> Counts:
    """The sum of counts."""
    total = Counts()
    for part in parts:
        total.include(part)
    return total
