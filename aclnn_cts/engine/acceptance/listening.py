"""Listens to records for one clause, or one constraint, and tells whether it is at fault where trials fail.

What is to be told apart is the fault of a condition, a limit or a manner of calling from one that other calls have too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Fault, Record, Result
from aclnn_cts.engine.acceptance.said import OTHER_CALLS, OTHER_FAULT, PLAIN_CALL, Said, is_first_phase
from aclnn_cts.engine.acceptance.together import Member
from aclnn_cts.spec.expression import UNDEFINED

__all__ = ["VALUES", "VALUE_FAULTS", "ConstraintListener", "Key", "Listener", "Sort", "is_at_fault", "sort_of"]

VALUES = "values"
"""The promise that a plain call is held to."""

VALUE_FAULTS = frozenset(
    {Fault.VALUE, Fault.MODEL, Fault.SPECIAL, Fault.UNWRITTEN, Fault.SHAPE, Fault.DTYPE, Fault.RULER, Fault.LAW}
)
"""Faults of one output's contents."""

TIMES = 2
"""How many times as often as others calls fail that meet a condition which is at fault."""

EXPECTED = 5
"""That none of them fails where so many are expected to is no chance: exp(-5) is below one in a hundred."""

_WRONG_VALUES = frozenset({Fault.VALUE, Fault.MODEL, Fault.SPECIAL})
_JUDGED_LAST = frozenset({*_WRONG_VALUES, Fault.RULER})
"""Faults that are looked for after all others."""
_CONTENTS = "contents"

Sort = tuple[str, str]
"""What failures have in common: kind of fault, all of wrong values as one, and output."""


def sort_of(record: Record) -> Sort:
    """That of a failure."""
    kind = record.verdict.kind
    return Fault.VALUE if kind in _WRONG_VALUES else kind, record.signature.output


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


class Key(NamedTuple):
    """What a clause of an operator that a promise encodes is spoken for by."""

    promise: str
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
    said: Said = field(default_factory=Said)
    """What needs no second look."""
    failed: dict[Sort, Said] = field(default_factory=dict)
    """Calls that meet the condition and fail; all faults of one output's contents are one sort here."""
    manner: dict[tuple[Sort, bool], Said] = field(default_factory=dict)
    """Failures of calls in a manner, or of valid twins, and whether such a fault contradicts."""
    judged: Counter[bool] = field(default_factory=Counter)
    """Calls that meet the condition, and calls that do not."""
    failed_outside: Counter[Sort] = field(default_factory=Counter)
    """Calls that do not meet it and fail."""

    def hear(self, record: Record, member: Member | None) -> None:
        """Listen to a record."""
        if self._is_of_another(record):
            return
        kind = record.verdict.kind
        failed = record.verdict.result == Result.FAILED
        meets = self._meets(record)
        self.judged[meets] += is_judged(record)
        sort = (_CONTENTS if kind in VALUE_FAULTS else kind, record.signature.output)
        if not meets:
            self.failed_outside[sort] += failed
        elif failed and not self._counts(kind):
            if kind in _JUDGED_LAST:
                self.said.otherwise += 1
            else:
                self.said.skip(OTHER_FAULT)
        elif failed and self._is_conditional:
            self.failed.setdefault(sort, Said()).add(record, member)
        else:
            self.said.add(record, member)

    def hear_manner(self, record: Record, sort: Sort, member: Member | None) -> None:
        """Listen to a failure of a call in a manner, or of a valid twin."""
        if not self._is_of_another(record) and self._meets(record):
            counts = self._counts(record.verdict.kind)
            self.manner.setdefault((sort, counts), Said()).add(record, member)

    def all_said(self, plain: AbstractSet[Sort]) -> Said:
        """What all records say; `plain` are the sorts of failure of calls held to `values`."""
        said = Said()
        said.include(self.said)
        for sort, failures in self.failed.items():
            self._take(said, sort, failures)
        for (sort, counts), failures in self.manner.items():
            if self.key.promise == VALUES:
                if sort in plain and counts:
                    self._take(said, (_CONTENTS if sort[0] in VALUE_FAULTS else sort[0], sort[1]), failures)
                elif sort in plain:
                    said.otherwise += failures.failed
            elif not counts:
                said.skip(OTHER_FAULT, failures.failed)
            elif sort in plain:
                said.skip(PLAIN_CALL, failures.failed)
            else:
                said.include(failures)
        return said

    def _take(self, said: Said, sort: Sort, failures: Said) -> None:
        if not self._is_conditional or self._is_at_fault(sort):
            said.include(failures)
        else:
            said.skip(OTHER_CALLS, failures.failed)

    def _is_at_fault(self, sort: Sort) -> bool:
        met, outside = self.judged[True], self.judged[False]
        if not outside:
            # That calls fail says nothing of what all of them have in common, unless the clause is about such a fault.
            return bool(self.key.faults)
        failed = self.failed[sort].failed if sort in self.failed else 0
        return is_at_fault(failed, met, self.failed_outside[sort], outside)

    def _is_of_another(self, record: Record) -> bool:
        """Whether it is about the contents of an output, or the memory beside it, that the clauses are not about."""
        about = record.signature.output if _is_of_one_output(record) else ""
        return bool(about and self.key.output and self.key.output != about)

    def _counts(self, kind: str) -> bool:
        return not self.key.faults or kind in self.key.faults

    @property
    def _is_conditional(self) -> bool:
        return self.condition is not None or bool(self.key.products)

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
    return record.verdict.result == Result.FAILED and (kind in VALUE_FAULTS or kind == Fault.GUARD)


@dataclass(slots=True)
class ConstraintListener:
    """Listens for one constraint."""

    said: Said = field(default_factory=Said)
    """What needs no second look."""
    twins: dict[Sort, Said] = field(default_factory=dict)
    """Broken calls whose valid twin fails."""
    limits: dict[Sort, Said] = field(default_factory=dict)
    """Valid calls on its limit that fail."""
    on_limit: int = 0
    """Valid calls on its limit that were judged."""

    def all_said(self, plain: AbstractSet[Sort], failed: Counter[Sort], calls: int) -> Said:
        """What all records say; `failed` counts those of `calls` that are on no limit, by sort."""
        said = Said()
        said.include(self.said)
        for sort, failures in self.twins.items():
            if sort in plain:
                said.skip(PLAIN_CALL, failures.failed)
            else:
                said.include(failures)
        for sort, failures in self.limits.items():
            if is_at_fault(failures.failed, self.on_limit, failed[sort], calls):
                said.include(failures)
            else:
                said.skip(OTHER_CALLS, failures.failed)
        return said
