"""Listens to records for one clause, or one constraint, and tells what they say of it.

What is to be told apart is the fault of a condition, a limit or a call mode from one that other calls have too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aclnn_cts.clauses.conditions import (
    CONTENTS,
    OF_CONTENTS,
    ConditionedCalls,
    Sort,
    is_at_fault,
    sort_of_contents,
)
from aclnn_cts.clauses.counted import OTHER_CALLS, OTHER_FAULT, PLAIN_CALL, Said
from aclnn_cts.core.case import owner
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.speclang.expression import UNDEFINED
from aclnn_cts.triage.dedup import Member

VALUES = "values"
"""The check that a plain call is held to."""

_OF_VALUES = Fault.of(Family.VALUES)
_JUDGED_LAST = Fault.of(Family.VALUES, Family.TOLERANCE)
"""Faults that are looked for after all others."""


def sort_of(record: Record) -> Sort:
    """That of a failure."""
    kind = record.verdict.kind
    return Fault.VALUE if kind in _OF_VALUES else kind, record.fingerprint.output


class Key(NamedTuple):
    """What a clause of an operator that a check encodes is spoken for by."""

    check: str
    output: str
    """The one that it is about; empty for all."""
    condition: str
    faults: tuple[str, ...]
    products: tuple[str, ...] = ()
    """Where it is stated: a part of the condition."""


@dataclass(slots=True)
class Listener:
    """Listens for the clauses of one key."""

    key: Key
    condition: Callable[[Mapping[str, Any], Target], Any] | None
    bit: int = 0
    """Its condition among those of its check (`ConditionedCalls`); 0 where it has none."""
    said: Said = field(default_factory=Said)
    """What needs no second look."""
    failed: dict[Sort, Said] = field(default_factory=dict)
    """Calls that meet the condition and fail; all faults of one output's contents are one sort here."""
    call_mode: dict[tuple[Sort, bool], Said] = field(default_factory=dict)
    """Failures of calls in a call mode, or of valid twins, and whether such a fault contradicts."""

    @property
    def is_conditional(self) -> bool:
        """Whether some calls meet its condition, and others need not."""
        return self.condition is not None or bool(self.key.products)

    def hear(self, record: Record, member: Member | None) -> int:
        """Listen to a record; its bit where the call meets the condition, else 0."""
        if not self._meets(record):
            return 0
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
            self.failed.setdefault(sort_of_contents(record), Said()).add(record, member)
        else:
            self.said.add(record, member)
        return self.bit

    def hear_call_mode(self, record: Record, sort: Sort, member: Member | None) -> None:
        """Listen to a failure of a call in a call mode, or of a valid twin."""
        if not self._is_of_another(record) and self._meets(record):
            counts = self._counts(record.verdict.kind)
            self.call_mode.setdefault((sort, counts), Said()).add(record, member)

    def all_said(self, plain: AbstractSet[Sort], at_fault: Callable[[Sort], int]) -> Said:
        """What all records say.

        `plain` are the sorts of failure of calls held to `values`, `at_fault` gives the conditions (bits) that failures
        of a sort are put down to.
        """
        said = Said()
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

    def _take(self, said: Said, sort: Sort, failures: Said, at_fault: Callable[[Sort], int]) -> None:
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

    said: Said = field(default_factory=Said)
    """What needs no second look."""
    twins: dict[Sort, Said] = field(default_factory=dict)
    """Broken calls whose valid twin fails."""
    limits: dict[tuple[Sort, int], Said] = field(default_factory=dict)
    """Valid calls on its limit that fail, by sort and the conditions that they meet."""
    on_limit: Counter[int] = field(default_factory=Counter)
    """Valid calls on its limit that were judged, by the conditions that they meet."""

    def all_said(self, plain: AbstractSet[Sort], calls: ConditionedCalls, at_fault: Callable[[Sort], int]) -> Said:
        """What all records say beside `calls` on no limit.

        A failure on the limit that has a condition at fault (`at_fault`, judged by those calls) says nothing of it.
        """
        said = Said()
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
