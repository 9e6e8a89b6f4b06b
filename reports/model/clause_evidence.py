"""Which trials speak for which clauses.

A clause that a constraint encodes is spoken for by the trials that break that constraint, or sit on its limit. A clause
that a check encodes is spoken for by the trials of the check whose case meets the clause's condition. A wrong value
of one output says nothing of clauses on another output.

A clause that names the kinds of fault that contradict it is contradicted by no others: wrong values leave it kept, as
all else was judged before them.

A clause with a condition, or on a limit, is not spoken for by a fault that calls outside of the condition have too, or
that another condition explains better (`conditions.ConditionedCalls`).

A clause on a call mode, or on a broken call, is not spoken for by a fault that the plain call has as well, or the valid
twin as plain calls have it. A fault in a call mode speaks for the clauses that the plain call speaks for, but where the
trial calls two cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.trial import OTHER_CASE
from aclnn_cts.core.verdict import TWIN_FAILED, Record, Result, is_valid_call
from aclnn_cts.findings.explain import call_at_fault
from aclnn_cts.reports.model.attribution import (
    OF_CONTENTS,
    VALUES,
    ClauseListener,
    ConditionedCalls,
    ConstraintListener,
    EvidenceCounts,
    EvidenceKey,
    Sort,
    is_judged,
    sort_of,
)
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.store.counts import OpenElementCount
from aclnn_cts.trials.plan import LIFE_CYCLE, REPEATED_FAILURE

_STATUS = "status"
_LIMIT = "boundary"
_LIKE_VALUES = frozenset({_LIMIT, "memory", "precision"})
"""Checks whose valid call is held to `values` too."""
_OF_MEMORY = Fault.of(Family.MEMORY)
_OF_BROKEN = Fault.of(Family.ACCEPTED)


def key_of(clause: Clause, spec: Spec) -> EvidenceKey:
    """What a clause that a check encodes is spoken for by."""
    parts = clause.at.split(".")
    named = parts[1] if parts[0] == "params" and len(parts) > 1 and parts[1] in spec.outputs else ""
    return EvidenceKey(
        clause.check or "", clause.output or named, clause.when_text or "", clause.faults, clause.products
    )


def _is_of_twin(record: Record) -> bool:
    """Whether the valid twin of a broken call is at fault, or such a call does what any call may do."""
    kind = record.verdict.kind
    if kind in _OF_MEMORY and not is_valid_call(record.trial):
        return True
    if "twin" not in record.trial.parameters or kind in _OF_BROKEN:
        return False
    if kind == Fault.REJECTED or kind in OF_CONTENTS:
        return True
    outcomes = record.attempts[0] if record.attempts else ()
    number = call_at_fault(kind, record.fingerprint.output, outcomes)
    return number is not None and number + 1 < len(outcomes)


@dataclass(slots=True)
class ClauseEvidence:
    """Listens to the records of one operator."""

    spec: Spec
    interface: Sequence[Clause]
    by_constraint: dict[str, EvidenceCounts] = field(default_factory=dict)
    """What all of a constraint's trials came to, whatever it is worth for its clauses."""
    by_example: dict[str, EvidenceCounts] = field(default_factory=dict)
    """By the address of the example."""
    openness: dict[str, OpenElementCount] = field(default_factory=dict)
    """Of calls held to `values`, by dtype of the first output."""
    _by_key: dict[EvidenceKey, ClauseListener] = field(default_factory=dict)
    _by_check: dict[str, list[ClauseListener]] = field(default_factory=dict)
    _constraints: dict[tuple[str, str], ConstraintListener] = field(default_factory=dict)
    """By constraint and product."""
    _plain: set[Sort] = field(default_factory=set)
    """Sorts of failure of calls held to `values`, and of calls that must be refused."""
    _calls: dict[str, ConditionedCalls] = field(default_factory=dict)
    """Calls by check."""
    _plain_calls: ConditionedCalls = field(default_factory=ConditionedCalls)
    """Calls held to `values`, on no limit."""
    _at_fault: dict[tuple[str, Sort], int] = field(default_factory=dict)
    """Conditions that failures are put down to, by check (empty: `_plain_calls`) and sort, once asked for."""
    _example_of: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the clauses by what speaks for them."""
        for clause in (*self.spec.clauses, *self.interface):
            if clause.check is None:
                continue
            key = key_of(clause, self.spec)
            if key not in self._by_key:
                listeners = self._by_check.setdefault(key.check, [])
                conditional = clause.when is not None or clause.products
                self._by_key[key] = ClauseListener(key, clause.when, bit=1 << len(listeners) if conditional else 0)
                listeners.append(self._by_key[key])
        for example in self.spec.examples:
            self._example_of[f"{self.spec.document}, {example.at}"] = example.name

    def add(self, record: Record, finding: int | None = None) -> None:
        """Let one record speak; `finding` is the number of a failure's."""
        self._at_fault.clear()
        check, case = record.trial.check, record.trial.case
        failed = record.verdict.result == Result.FAILED
        twin = failed and _is_of_twin(record)
        met = 0
        if failed and (twin or check in LIFE_CYCLE):
            sort = _of_many(record) if check == REPEATED_FAILURE else sort_of(record)
            for name in self._of_call_mode(record, check):
                for listener in self._by_check.get(name, ()):
                    listener.hear_call_mode(record, sort, finding)
        else:
            for name in self._checks(record, check):
                met = self._hear(name, record, finding)
            if failed and check == _STATUS:
                self._plain.add(_of_many(record))
        constraint = case.origin.constraint or record.fingerprint.clause
        if constraint:
            self._hear_constraint(constraint, record, finding, twin=twin, met=met)
        example = self._example_of.get(case.origin.source or "") if check == "example" else None
        if example is not None:
            self.by_example.setdefault(example, EvidenceCounts()).add(record, finding)

    def _hear(self, check: str, record: Record, finding: int | None) -> int:
        """Listen to a call held to a check; the conditions that it meets."""
        met = 0
        for listener in self._by_check.get(check, ()):
            met |= listener.add_record(record, finding)
        self._calls.setdefault(check, ConditionedCalls()).add(record, met)
        if check == VALUES:
            self.openness.setdefault(record.fingerprint.dtype, OpenElementCount()).add(record.verdict)
            if record.verdict.result == Result.FAILED:
                self._plain.add(sort_of(record))
            if record.trial.check != _LIMIT:
                self._plain_calls.add(record, met)
        return met

    @staticmethod
    def _checks(record: Record, check: str) -> Iterator[str]:
        yield check
        if check in _LIKE_VALUES and is_valid_call(record.trial):
            yield VALUES

    @staticmethod
    def _of_call_mode(record: Record, check: str) -> Iterator[str]:
        yield check
        # Of two calls the failing one may be the other, of which no condition can be asked.
        if check in LIFE_CYCLE and check != REPEATED_FAILURE and OTHER_CASE not in record.trial.parameters:
            yield VALUES

    def _hear_constraint(self, constraint: str, record: Record, finding: int | None, *, twin: bool, met: int) -> None:
        """A valid call on its limit says something of a constraint where it fails, but of no output's contents."""
        listener = self._constraints.setdefault((constraint, record.trial.case.product), ConstraintListener())
        valid = is_valid_call(record.trial)
        if valid:
            listener.on_limit[met] += is_judged(record)
            if record.verdict.result != Result.FAILED or record.verdict.kind in OF_CONTENTS:
                return
        self.by_constraint.setdefault(constraint, EvidenceCounts()).add(record, finding)
        if TWIN_FAILED in record.verdict.facts:
            listener.said.skip(TWIN_FAILED)
        elif valid:
            listener.limits.setdefault((sort_of(record), met), EvidenceCounts()).add(record, finding)
        elif twin:
            listener.twins.setdefault(sort_of(record), EvidenceCounts()).add(record, finding)
        else:
            listener.said.add(record, finding)

    def evidence_for(self, clause: Clause) -> EvidenceCounts:
        """What all records say of a clause that a check encodes."""
        listener = self._by_key.get(key_of(clause, self.spec))
        if listener is None:
            return EvidenceCounts()
        check = listener.key.check
        return listener.evidence_counts(self._plain, lambda sort: self._blamed(check, sort))

    def is_mostly_open(self, clause: Clause) -> bool:
        """Whether so many elements are open, of a dtype that the clause's calls have, that it does not count as met."""
        listener = self._by_key.get(key_of(clause, self.spec))
        return listener is not None and any(self.openness[dtype].is_too_large for dtype in listener.dtypes)

    def _blamed(self, check: str, sort: Sort) -> int:
        """The conditions of a check's clauses that failures of a sort are put down to."""
        if (check, sort) not in self._at_fault:
            listeners = self._by_check.get(check or VALUES, ())
            mine = [item for item in listeners if sort in item.failed]
            calls = self._calls.get(check, self._plain_calls) if check else self._plain_calls
            about = sum(item.bit for item in mine if item.key.faults)
            self._at_fault[check, sort] = calls.at_fault(sort, sum(item.bit for item in mine), about=about)
        return self._at_fault[check, sort]

    def evidence_for_constraint(self, constraint: str, clause: Clause) -> EvidenceCounts:
        """What the records of a clause's products say of a constraint that encodes it."""
        said = EvidenceCounts()
        for (name, product), listener in self._constraints.items():
            if name == constraint and clause.applies_to(product):
                said.include(
                    listener.evidence_counts(self._plain, self._plain_calls, lambda sort: self._blamed("", sort))
                )
        return said


def _of_many(record: Record) -> Sort:
    """What a call that must be refused, and many of them in a row, have in common where they fail."""
    return record.verdict.kind, f"broken {record.fingerprint.clause}"
