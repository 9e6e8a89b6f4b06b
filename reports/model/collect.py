"""The one pass over the records of the runs: everything that a report counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from aclnn_cts.core.case import Tensor, owner
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.outcome import GROWN_BYTES, CallEnd, status_name
from aclnn_cts.core.verdict import (
    DISPUTE_FACT,
    FINER_FACT,
    SECOND_ORACLE,
    Observation,
    Record,
    Result,
    SkipReason,
    Verdict,
    is_valid_call,
)
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.reports.model.finding_tally import FindingTallies
from aclnn_cts.reports.model.precision import PrecisionTally
from aclnn_cts.reports.model.standard_tally import StandardTally
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.possible_cells import LAYOUTS, RANKS, PossibleCells

ACCEPTED, REFUSED = "accepted", "refused"
"""What an implementation without statuses did."""

SAME_CALLS = frozenset({"determinism", "life-cycle/cold-warm"})
"""Checks whose trials make one call several times."""

_OBSERVATIONS = tuple(kind.value for kind in Observation)


def _count(counts: Counts, record: Record) -> None:
    """Count the end of one trial, which was planned."""
    counts.cases += 1
    counts.add(record.verdict, waived=bool(record.waiver))


@dataclass(slots=True)
class OperatorTally:
    """One operator's records."""

    spec: Spec
    speakers: ClauseEvidence
    precision: PrecisionTally
    checks: dict[str, Counts] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Counter[str]] = field(default_factory=dict)
    """By check: facts that were recorded and not judged, and how often."""
    broken: dict[str, Counts] = field(default_factory=dict)
    """By constraint: the trials that break it."""
    returned: dict[str, Counter[str]] = field(default_factory=dict)
    not_enforced: Counter[str] = field(default_factory=Counter)
    maps: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)
    possible: dict[str, PossibleCells] = field(default_factory=dict)
    """By kind of map, what calls on the targets of the runs can meet."""
    judged: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By check, mode and dtype."""
    dtypes: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """By check, dtype of the first output, argument and its dtype: judged trials."""
    compared: Counter[str] = field(default_factory=Counter)
    """By check: trials that made one call several times and got outputs each time."""
    alike: Counter[str] = field(default_factory=Counter)
    """Of these, those with the same bits each time."""

    findings: dict[str, set[int]] = field(default_factory=dict)
    """By check: the numbers of the findings that it met."""

    def add(self, record: Record, finding: int | None = None) -> None:
        """Count one record, with the number of a failure's finding."""
        check, verdict, case = record.trial.check, record.verdict, record.trial.case
        _count(self.checks.setdefault(check, Counts()), record)
        self.speakers.add(record, finding)
        self.precision.add(record)
        for deviation in verdict.deviations:
            error_ratio = math.inf if math.isnan(deviation.error_ratio) else deviation.error_ratio
            if error_ratio > self.worst.get(check, 0.0):
                self.worst[check] = error_ratio
        for name in (FINER_FACT, *_OBSERVATIONS, GROWN_BYTES):
            if verdict.facts.get(name):
                self.facts.setdefault(check, Counter())[name] += 1
        if check in SAME_CALLS:
            self._compare(check, record)
        judged = verdict.result in (Result.PASSED, Result.FAILED)
        first = record.fingerprint.dtype
        if judged:
            self.judged[check, verdict.mode, first] += 1
            self.dtypes.update((check, first, name, tensor.dtype) for name, tensor in case.tensors())
        if is_valid_call(record.trial):
            if judged:
                self._place(record)
            return
        constraint = case.origin.constraint or record.fingerprint.clause
        if constraint:
            _count(self.broken.setdefault(constraint, Counts()), record)
            self.returned.setdefault(constraint, Counter())[returned_word(record)] += 1
            self.not_enforced[constraint] += bool(verdict.facts.get(Observation.LIMIT.value))

    def _compare(self, check: str, record: Record) -> None:
        """Whether the outputs of one call that was made several times had the same bits, by their SHA-256."""
        calls = record.attempts[0] if record.attempts else ()
        if any(item.ended != CallEnd.RETURNED or item.status for item in calls):
            return
        bits = [{name: state.sha256 for name, state in item.buffers.items() if state.sha256} for item in calls]
        if len(bits) > 1 and all(bits):
            self.compared[check] += 1
            self.alike[check] += all(item == bits[0] for item in bits[1:])

    def _place(self, record: Record) -> None:
        """Where a judged valid call stands in the coverage maps."""
        dtype = record.fingerprint.dtype or "-"
        tensors = [tensor for name, tensor in record.trial.case.tensors() if owner(name) not in self.spec.outputs]
        if not tensors:
            return
        first = tensors[0]
        largest = max(tensor.numel for tensor in tensors)
        contents = first.data.recipe or "values" if first.data is not None else "none"
        for kind, column in (
            ("rank", str(min(len(first.shape), RANKS))),
            ("size", _size_class(largest)),
            ("contents", contents),
            ("layout", _layout(tensors)),
        ):
            self.maps.setdefault(kind, Counter())[dtype, column] += 1


@dataclass(slots=True)
class CollectedRecords:
    """What the records of all runs come to."""

    operators: dict[str, OperatorTally]
    findings: FindingTallies
    disputes: list[Note] = field(default_factory=list)
    second_oracle: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By code and text of the note."""
    statuses: dict[int, bool] = field(default_factory=dict)
    """By run: whether a call returned a status."""
    standards: dict[tuple[int, str], StandardTally] = field(default_factory=dict)
    """By run and operator, of runs by a vendor's standard."""

    def add(self, record: Record, run: int) -> None:
        """Count one record of the run of that number."""
        verdict = record.verdict
        finding = self.findings.add(record, run) if verdict.result == Result.FAILED else None
        operator = record.trial.case.operator
        if operator not in self.operators:
            raise HarnessError(f"{operator}: the run has records of it and no spec; expected a run as it was written")
        self.operators[operator].add(record, finding)
        if (standard := self.standards.get((run, operator))) is not None:
            standard.add(record)
        if finding is not None:
            self.operators[operator].findings.setdefault(record.trial.check, set()).add(finding)
        if not self.statuses.get(run):
            self._see_status(record, run)
        if (second := verdict.facts.get(SECOND_ORACLE)) is not None:
            self.second_oracle[str(second).partition(":")[0]] += 1
        if verdict.result == Result.SKIPPED and verdict.kind == SkipReason.DISPUTE:
            self.disputes.append(_dispute(verdict))
        elif verdict.result == Result.ERROR:
            self.errors[_error_code(record), verdict.message] += 1

    def _see_status(self, record: Record, run: int) -> None:
        for outcomes in record.attempts:
            for outcome in outcomes:
                if outcome.ended == CallEnd.RETURNED:
                    self.statuses[run] = outcome.phase_one is not None


def _dispute(verdict: Verdict) -> Note:
    told = verdict.facts.get(DISPUTE_FACT)
    if not isinstance(told, Mapping):  # of an earlier version of the harness
        return Note(verdict.message)
    place = f"{told['output']}{list(told['index'])}"
    values = {"place": place, "first": str(told["first"]), "second": str(told["second"])}
    return Note(verdict.message, NoteCode.DISPUTE, values)


def _error_code(record: Record) -> str:
    outcomes = record.attempts[0] if record.attempts else ()
    return NoteCode.NOT_RUN if any(item.ended == CallEnd.NOT_RUN for item in outcomes) else NoteCode.HARNESS


def returned_word(record: Record) -> str:
    """What came back of the call that was put to the test: a status name, or how the call ended."""
    if not record.attempts or not record.attempts[0]:
        return "not called"
    outcome = record.attempts[0][-1]
    if outcome.ended == CallEnd.RAISED:
        return REFUSED
    if outcome.ended != CallEnd.RETURNED:
        return outcome.ended
    return ACCEPTED if outcome.status is None else status_name(outcome.status)


def _size_class(numel: int) -> str:
    """Elements of the largest input, by powers of four: `1-3`, `4-15`, ..."""
    if numel < 1:
        return "0"
    low = 4 ** min((numel.bit_length() - 1) // 2, 8)
    return f"{low}-{low * 4 - 1}" if low < 4**8 else f"{low}-"


def _layout(tensors: list[Tensor]) -> str:
    if all(tensor.is_contiguous for tensor in tensors):
        return "offset" if any(tensor.offset for tensor in tensors) else "contiguous"
    return "strided"


def coverage_order(kind: str, columns: Mapping[str, int] | set[str]) -> list[str]:
    """The columns of a coverage map in the order in which a person looks for them."""
    if kind == "size":
        return sorted(columns, key=lambda word: int(word.partition("-")[0]))
    if kind == "layout":
        return sorted(columns, key=LAYOUTS.index)
    return sorted(columns)
