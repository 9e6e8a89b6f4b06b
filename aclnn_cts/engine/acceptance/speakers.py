"""Which trials speak for which clauses.

A clause that a constraint encodes is spoken for by the trials that break that constraint, or sit on its limit. A clause
that a promise encodes is spoken for by the trials of the promise whose case meets the clause's condition. A wrong value
of one output says nothing of clauses on another output.

A clause on the life cycle of a call is not spoken for by wrong values of an output that the plain call gets wrong too:
the manner of the call is not at fault. They speak for the clauses that the plain call speaks for, but
where the trial calls two cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Fault, Record, Result
from aclnn_cts.engine.acceptance.together import Member
from aclnn_cts.engine.life_cycle import LIFE_CYCLES, OTHER_CASE, RepeatedFailure
from aclnn_cts.spec.expression import UNDEFINED
from aclnn_cts.spec.model import Clause, Spec

__all__ = ["FIRST_PHASE", "PLAIN_CALL", "VALUE_FAULTS", "Key", "Said", "Speakers", "is_valid_call", "key_of"]

VALUE_FAULTS = frozenset(
    {Fault.VALUE, Fault.MODEL, Fault.SPECIAL, Fault.UNWRITTEN, Fault.SHAPE, Fault.DTYPE, Fault.RULER, Fault.LAW}
)
"""Faults of one output's contents."""

FIRST_PHASE = "first phase alone"
"""Why a trial that passed says nothing of a clause, among the reasons to skip."""

PLAIN_CALL = "plain call"
"""Why a life-cycle trial with wrong values says nothing of a clause: the plain call fails too."""

_EVIDENCE = 3
"""Trial ids that are kept of each side."""

_BREAKING = frozenset({"status", *(name for name, entry in LIFE_CYCLES.items() if isinstance(entry, RepeatedFailure))})
_LIKE_VALUES = frozenset({"boundary", "precision"})
"""Promises whose valid calls are held to `values` too."""
_VALUES = "values"
_WRONG_VALUES = frozenset({Fault.VALUE, Fault.MODEL, Fault.SPECIAL})

Key = tuple[str, str, str]
"""What a clause of an operator is spoken for by: promise, the output that it is about, the text of its condition."""


@dataclass(slots=True)
class Said:
    """What trials said, counted."""

    passed: int = 0
    failed: int = 0
    waived: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """By reason; errors of the harness stand among them as `error`."""
    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    findings: dict[Member, int] = field(default_factory=dict)
    """Failures, by what they have in common."""

    @property
    def trials(self) -> int:
        """All of them."""
        return self.passed + self.failed + sum(self.skipped.values())

    def add(self, record: Record, member: Member | None = None) -> None:
        """Count one trial."""
        result = record.verdict.result
        if result == Result.PASSED and record.verdict.facts.get("phases") == 1:
            # A call that went no further than phase one shows nothing of what the clause says of its outputs.
            self.skipped[FIRST_PHASE] = self.skipped.get(FIRST_PHASE, 0) + 1
        elif result == Result.PASSED:
            self.passed += 1
            if len(self.good) < _EVIDENCE:
                self.good.append(record.trial_id)
        elif result == Result.FAILED:
            self.failed += 1
            self.waived += bool(record.waiver)
            if member is not None:
                self.findings[member] = self.findings.get(member, 0) + 1
            if len(self.bad) < _EVIDENCE:
                self.bad.append(record.trial_id)
        else:
            reason = record.verdict.kind if result == Result.SKIPPED else "error"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def include(self, other: Said) -> None:
        """Add what others said."""
        self.passed += other.passed
        self.failed += other.failed
        self.waived += other.waived
        for reason, number in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + number
        self.good = [*self.good, *other.good][:_EVIDENCE]
        self.bad = [*self.bad, *other.bad][:_EVIDENCE]
        for member, number in other.findings.items():
            self.findings[member] = self.findings.get(member, 0) + number


def is_valid_call(record: Record) -> bool:
    """Whether the trial's own case keeps every constraint."""
    return record.trial.promise not in _BREAKING and "twin" not in record.trial.parameters


def key_of(clause: Clause, spec: Spec) -> Key:
    """What a clause that a promise encodes is spoken for by."""
    parts = clause.at.split(".")
    named = parts[1] if parts[0] == "params" and len(parts) > 1 and parts[1] in spec.outputs else ""
    return (clause.promise or "", clause.output or named, clause.when_text or "")


@dataclass(frozen=True, slots=True)
class _Listener:
    key: Key
    condition: Callable[[Mapping[str, Any], Target], Any] | None
    said: Said

    def listens(self, record: Record, about: str) -> bool:
        """Whether a record says something of its clauses, `about` being the one output that it is about."""
        if about and self.key[1] and self.key[1] != about:
            return False
        if self.condition is None:
            return True
        try:
            return bool(self.condition(record.trial.case.arguments, record.trial.case.target))
        except UNDEFINED:
            return False


@dataclass(slots=True)
class Speakers:
    """Listens to the records of one operator."""

    spec: Spec
    interface: Sequence[Clause]
    by_key: dict[Key, Said] = field(default_factory=dict)
    by_constraint: dict[str, Said] = field(default_factory=dict)
    by_example: dict[str, Said] = field(default_factory=dict)
    """By the address of the example."""
    _plain: set[str] = field(default_factory=set)
    """Outputs that calls held to `values` get wrong."""
    _aside: dict[Key, dict[str, Said]] = field(default_factory=dict)
    """By output: life-cycle trials that got it wrong, for the clauses of their promise and for those of `values`."""
    _listeners: dict[str, list[_Listener]] = field(default_factory=dict)
    _example_of: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the clauses by what speaks for them."""
        for clause in (*self.spec.clauses, *self.interface):
            if clause.promise is None:
                continue
            key = key_of(clause, self.spec)
            if key not in self.by_key:
                said = self.by_key[key] = Said()
                self._listeners.setdefault(key[0], []).append(_Listener(key, clause.when, said))
        for example in self.spec.examples:
            self._example_of[f"{self.spec.document}, {example.at}"] = example.name

    def add(self, record: Record, member: Member | None = None) -> None:
        """Let one record speak; `member` is that of a finding that a failure is."""
        promise, case = record.trial.promise, record.trial.case
        fault = record.verdict.kind if record.verdict.result == Result.FAILED else ""
        about = record.signature.output if fault in VALUE_FAULTS else ""
        if about and fault in _WRONG_VALUES and promise in LIFE_CYCLES:
            self._set_aside(record, about, member)
        else:
            for name in self._promises(record, promise):
                if name == _VALUES and fault in _WRONG_VALUES:
                    self._plain.add(about)
                for listener in self._listeners.get(name, ()):
                    if listener.listens(record, about):
                        listener.said.add(record, member)
        constraint = case.origin.constraint or record.signature.constraint
        if constraint and self._is_about(record):
            self.by_constraint.setdefault(constraint, Said()).add(record, member)
        example = self._example_of.get(case.origin.source or "") if promise == "example" else None
        if example is not None:
            self.by_example.setdefault(example, Said()).add(record, member)

    def _promises(self, record: Record, promise: str) -> Iterator[str]:
        yield promise
        if promise in _LIKE_VALUES and is_valid_call(record):
            yield _VALUES

    def said_of(self, clause: Clause) -> Said:
        """What all records say of a clause that a promise encodes."""
        key = key_of(clause, self.spec)
        said = Said()
        said.include(self.by_key.get(key, Said()))
        for output, aside in self._aside.get(key, {}).items():
            if (key[0] == _VALUES) == (output in self._plain):
                said.include(aside)
            elif key[0] != _VALUES:
                said.skipped[PLAIN_CALL] = said.skipped.get(PLAIN_CALL, 0) + aside.failed
        return said

    def _set_aside(self, record: Record, output: str, member: Member | None) -> None:
        """Keep a life-cycle trial until all records tell what the plain call does."""
        # Of two calls the failing one may be the other, of which no condition can be asked.
        names = (record.trial.promise,) if OTHER_CASE in record.trial.parameters else (record.trial.promise, _VALUES)
        for name in names:
            for listener in self._listeners.get(name, ()):
                if listener.listens(record, output):
                    self._aside.setdefault(listener.key, {}).setdefault(output, Said()).add(record, member)

    @staticmethod
    def _is_about(record: Record) -> bool:
        """Whether a trial says something of its constraint: a valid call on its limit does so where it is refused."""
        if not is_valid_call(record):
            return True
        return record.verdict.result == Result.FAILED and record.verdict.kind not in VALUE_FAULTS
