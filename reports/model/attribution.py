"""What records say of one clause or constraint: counts, and the condition that failures are put down to.

What is to be told apart is the fault of a condition, a limit or a call mode from one that other calls have too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from aclnn_cts.core.case import owner
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import ACCEPTED_FACT, Record, Result, SkipReason
from aclnn_cts.speclang.expression import UNDEFINED

TIMES = 2
"""How many times as often as others calls fail that meet a condition which is at fault."""

EXPECTED = 5
"""That none of them fails where so many are expected to is no chance: exp(-5) is below one in a hundred."""

OF_CONTENTS = Fault.of(Family.VALUES, Family.OUTPUT, Family.TOLERANCE, Family.EQUAL_CALLS)
"""Faults of one output's contents."""

CONTENTS = "contents"
"""Stands for all of them in a sort."""

Sort: TypeAlias = tuple[str, str]
"""What failures have in common: kind of fault, all of wrong values as one, and output."""


def sort_of_contents(record: Record) -> Sort:
    """That of a failure, all faults of one output's contents as one."""
    kind = record.verdict.kind
    return CONTENTS if kind in OF_CONTENTS else kind, record.fingerprint.output


def is_at_fault(failed: int, of: int, failed_others: int, of_others: int) -> bool:
    """Whether a condition is at fault where `failed` calls `of` those that meet it do, beside others.

    At least half of them fail, and that at least `TIMES` times as often as others; or no other call fails, and at least
    `EXPECTED` of them would where all calls failed alike.
    """
    if not failed_others and failed * of_others >= EXPECTED * of:
        return failed > 0
    return 2 * failed >= of and failed * of_others >= TIMES * failed_others * of


def is_judged(record: Record) -> bool:
    """Whether a trial says something of the implementation, beyond its first phase."""
    return record.verdict.result == Result.FAILED or (
        record.verdict.result == Result.PASSED and not is_first_phase(record)
    )


@dataclass(slots=True)
class ConditionedCalls:
    """Calls held to one check, counted by the conditions that they meet, each of which is a bit."""

    judged: Counter[int] = field(default_factory=Counter)
    failed: dict[Sort, Counter[int]] = field(default_factory=dict)

    def add(self, record: Record, met: int) -> None:
        """Count a call."""
        self.judged[met] += is_judged(record)
        if record.verdict.result == Result.FAILED:
            self.failed.setdefault(sort_of_contents(record), Counter())[met] += 1

    def outside(self, sort: Sort, conditions: int) -> tuple[int, int]:
        """Of the calls that meet none of these conditions: how many fail so, and how many there are."""
        failed, judged = (
            sum(number for met, number in counts.items() if not met & conditions)
            for counts in (self.failed.get(sort, Counter()), self.judged)
        )
        return failed, judged

    def at_fault(self, sort: Sort, candidates: int, *, about: int = 0) -> int:
        """The conditions, of these, that failures of a sort are put down to; `about` are those that name the fault."""
        found = 0
        while best := self._best(sort, candidates & ~found, apart=found):
            found |= best
        return found | self._common(sort, candidates, about, apart=found)

    def _common(self, sort: Sort, candidates: int, about: int, *, apart: int) -> int:
        """Conditions that every call meets, where these say so of the fault, or most calls fail.

        That some calls fail says nothing else of what all of them have in common.
        """
        failed, judged = self.outside(sort, apart)
        common = sum(bit for bit in _bits(candidates) if self.judged and not self.outside(sort, bit)[1])
        if failed and 2 * failed >= judged:
            return common
        return 0 if sort[0] == Fault.REJECTED else common & about

    def _best(self, sort: Sort, candidates: int, *, apart: int) -> int:
        """The condition whose calls fail most often, then most calls, and those that the same calls meet; 0: none."""
        best, highest = 0, (0.0, 0)
        all_failed, calls = self.outside(sort, apart)
        for bit in _bits(candidates) if all_failed else ():
            failed_others, others = self.outside(sort, apart | bit)
            failed, of = all_failed - failed_others, calls - others
            if not failed or not others or not is_at_fault(failed, of, failed_others, others):
                continue
            if (failed / of, failed) > highest:
                best, highest = bit, (failed / of, failed)
        if not best:
            return 0
        left = [met for met in self.judged if not met & apart]
        return sum(bit for bit in _bits(candidates) if all(bool(met & bit) == bool(met & best) for met in left))


def _bits(conditions: int) -> list[int]:
    return [1 << place for place in range(conditions.bit_length()) if conditions >> place & 1]


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
class EvidenceCounts:
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
    findings: Counter[int] = field(default_factory=Counter)
    """Failures, by the number of their finding."""

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
        return sum(number for reason, number in self.skipped.items() if reason != SkipReason.OPEN)

    def add(self, record: Record, finding: int | None = None) -> None:
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
            if finding is not None:
                self.findings[finding] += 1
            if len(self.bad) < _EVIDENCE:
                self.bad.append(record.trial_id)
        else:
            self.skip(record.verdict.kind if result == Result.SKIPPED else result)

    def skip(self, reason: str, number: int = 1) -> None:
        """Count some that say nothing."""
        self.skipped[reason] += number

    def include(self, other: EvidenceCounts) -> None:
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


VALUES = "values"
"""The check that a plain call is held to."""

_OF_VALUES = Fault.of(Family.VALUES)
_JUDGED_LAST = Fault.of(Family.VALUES, Family.TOLERANCE)
"""Faults that are looked for after all others."""


def sort_of(record: Record) -> Sort:
    """That of a failure."""
    kind = record.verdict.kind
    return Fault.VALUE if kind in _OF_VALUES else kind, record.fingerprint.output


class EvidenceKey(NamedTuple):
    """What a clause of an operator that a check encodes is spoken for by."""

    check: str
    output: str
    """The one that it is about; empty for all."""
    condition: str
    faults: tuple[str, ...]
    products: tuple[str, ...] = ()
    """Where it is stated: a part of the condition."""


@dataclass(slots=True)
class ClauseListener:
    """Listens for the clauses of one key."""

    key: EvidenceKey
    condition: Callable[[Mapping[str, Any], Target], Any] | None
    bit: int = 0
    """Its condition among those of its check (`ConditionedCalls`); 0 where it has none."""
    said: EvidenceCounts = field(default_factory=EvidenceCounts)
    """What needs no second look."""
    failed: dict[Sort, EvidenceCounts] = field(default_factory=dict)
    """Calls that meet the condition and fail; all faults of one output's contents are one sort here."""
    call_mode: dict[tuple[Sort, bool], EvidenceCounts] = field(default_factory=dict)
    """Failures of calls in a call mode, or of valid twins, and whether such a fault contradicts."""
    dtypes: set[str] = field(default_factory=set)
    """Of the first output of calls that meet the condition."""

    @property
    def is_conditional(self) -> bool:
        """Whether some calls meet its condition, and others need not."""
        return self.condition is not None or bool(self.key.products)

    def add_record(self, record: Record, finding: int | None) -> int:
        """Listen to a record; its bit where the call meets the condition, else 0."""
        if not self._meets(record):
            return 0
        self.dtypes.add(record.fingerprint.dtype)
        if self._is_of_another(record):
            return self.bit
        kind = record.verdict.kind
        failed = record.verdict.result == Result.FAILED
        if failed and not self._counts(kind):
            if kind in _JUDGED_LAST:
                self.said.otherwise += 1
            else:
                self.said.skip(OTHER_FAULT)
        elif failed and self.is_conditional:
            self.failed.setdefault(sort_of_contents(record), EvidenceCounts()).add(record, finding)
        else:
            self.said.add(record, finding)
        return self.bit

    def hear_call_mode(self, record: Record, sort: Sort, finding: int | None) -> None:
        """Listen to a failure of a call in a call mode, or of a valid twin."""
        if not self._is_of_another(record) and self._meets(record):
            counts = self._counts(record.verdict.kind)
            self.call_mode.setdefault((sort, counts), EvidenceCounts()).add(record, finding)

    def evidence_counts(self, plain: AbstractSet[Sort], at_fault: Callable[[Sort], int]) -> EvidenceCounts:
        """What all records say.

        `plain` are the sorts of failure of calls held to `values`, `at_fault` gives the conditions (bits) that failures
        of a sort are put down to.
        """
        said = EvidenceCounts()
        said.include(self.said)
        for sort, failures in self.failed.items():
            self._take(said, sort, failures, at_fault)
        for (sort, counts), failures in self.call_mode.items():
            if self.key.check == VALUES:
                if sort in plain and counts:
                    self._take(said, (CONTENTS if sort[0] in OF_CONTENTS else sort[0], sort[1]), failures, at_fault)
                elif sort in plain:
                    said.otherwise += failures.failed
            elif not counts:
                said.skip(OTHER_FAULT, failures.failed)
            elif sort in plain:
                said.skip(PLAIN_CALL, failures.failed)
            else:
                said.include(failures)
        return said

    def _take(
        self, said: EvidenceCounts, sort: Sort, failures: EvidenceCounts, at_fault: Callable[[Sort], int]
    ) -> None:
        if not self.is_conditional or at_fault(sort) & self.bit:
            said.include(failures)
        else:
            said.skip(OTHER_CALLS, failures.failed)

    def _is_of_another(self, record: Record) -> bool:
        """Whether it is about the contents of an output, or the memory beside it, that the clauses are not about."""
        about = record.fingerprint.output if _is_of_one_output(record) else ""
        return bool(about and self.key.output and self.key.output != owner(about))

    def _counts(self, kind: str) -> bool:
        return not self.key.faults or kind in self.key.faults

    def _meets(self, record: Record) -> bool:
        if self.key.products and record.trial.case.product not in self.key.products:
            return False
        if self.condition is None:
            return True
        try:
            return bool(self.condition(record.trial.case.arguments, record.trial.case.target))
        except UNDEFINED:
            return False


def _is_of_one_output(record: Record) -> bool:
    kind = record.verdict.kind
    return record.verdict.result == Result.FAILED and (kind in OF_CONTENTS or kind == Fault.GUARD)


@dataclass(slots=True)
class ConstraintListener:
    """Listens for one constraint."""

    said: EvidenceCounts = field(default_factory=EvidenceCounts)
    """What needs no second look."""
    twins: dict[Sort, EvidenceCounts] = field(default_factory=dict)
    """Broken calls whose valid twin fails."""
    limits: dict[tuple[Sort, int], EvidenceCounts] = field(default_factory=dict)
    """Valid calls on its limit that fail, by sort and the conditions that they meet."""
    on_limit: Counter[int] = field(default_factory=Counter)
    """Valid calls on its limit that were judged, by the conditions that they meet."""

    def evidence_counts(
        self, plain: AbstractSet[Sort], calls: ConditionedCalls, at_fault: Callable[[Sort], int]
    ) -> EvidenceCounts:
        """What all records say beside `calls` on no limit.

        A failure on the limit that has a condition at fault (`at_fault`, judged by those calls) says nothing of it.
        """
        said = EvidenceCounts()
        said.include(self.said)
        for sort, failures in self.twins.items():
            if sort in plain:
                said.skip(PLAIN_CALL, failures.failed)
            else:
                said.include(failures)
        for (sort, met), failures in self.limits.items():
            if not met & at_fault(sort) and self._is_at_fault(sort, calls, at_fault(sort)):
                said.include(failures)
            else:
                said.skip(OTHER_CALLS, failures.failed)
        return said

    def _is_at_fault(self, sort: Sort, calls: ConditionedCalls, blamed: int) -> bool:
        """Whether the limit is, as far as no other condition explains the failures."""
        failed = sum(said.failed for (other, met), said in self.limits.items() if other == sort and not met & blamed)
        of = sum(number for met, number in self.on_limit.items() if not met & blamed)
        return is_at_fault(failed, of, *calls.outside(sort, blamed))
