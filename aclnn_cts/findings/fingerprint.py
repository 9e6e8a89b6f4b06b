"""The fingerprint of a failed record, as its outcomes tell it, and which failure shows a fault best."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import PLAIN_CHECKS, Fingerprint, Symptom
from aclnn_cts.core.outcome import CallEnd, status_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import ALSO_STATUS, Record, Result, Verdict

_OF_VALUES = Fault.of(Family.VALUES, Family.EQUAL_CALLS, Family.TOLERANCE)
_VALUE_KINDS = tuple(sorted(Fault.of(Family.VALUES), key=lambda fault: fault.order))
"""Kinds of wrong values, the gravest first."""


def with_whole_fingerprint(record: Record) -> Record:
    """A failed record with the whole of its fingerprint; any other as it is."""
    if record.verdict.result != Result.FAILED:
        return record
    whole = msgspec.structs.replace(record.fingerprint, answer=_answer(record), also=_also(record))
    return msgspec.structs.replace(record, fingerprint=whole)


def fingerprint_of_rejected_twin(trial: Trial, verdict: Verdict) -> Fingerprint | None:
    """The fingerprint of a broken call's valid twin that is rejected; None of any other verdict.

    The twin was rejected for something else than the constraint that the call was to break, whatever its dtype: the
    twins of an operator that are rejected with one status are one finding.
    """
    if verdict.kind != Fault.REJECTED or "twin" not in trial.parameters:
        return None
    return Fingerprint(operator=trial.case.operator, check="values", fault=verdict.kind)


def _answer(record: Record) -> str:
    """How the call at fault ended, where one fault has several: the first that did not return, or was refused."""
    kind = record.verdict.kind
    outcomes = record.attempts[0] if record.attempts else ()
    if kind not in (Fault.STATUS, Fault.REJECTED, Fault.CRASH) or not outcomes:
        return ""
    refused = kind == Fault.REJECTED
    last = next(
        (item for item in outcomes if item.ended != CallEnd.RETURNED or (refused and item.status)), outcomes[-1]
    )
    if last.ended == CallEnd.SIGNAL:
        return f"signal {last.signal}"
    return status_name(last.status or 0) if last.ended == CallEnd.RETURNED else last.ended


def _also(record: Record) -> tuple[Symptom, ...]:
    """What else is wrong than what the verdict names."""
    found = set(_input_changed(record))
    if (status := record.verdict.facts.get(ALSO_STATUS)) is not None:
        found.add(Symptom(Fault.STATUS, clause=record.fingerprint.clause, answer=str(status)))
    if record.fingerprint.check in PLAIN_CHECKS:
        of_values = record.verdict.kind in _OF_VALUES
        found |= {
            Symptom(Fault.VALUE, item.output)
            for item in record.verdict.deviations
            if item.beyond and not (of_values and item.output == record.fingerprint.output)
        }
    return tuple(sorted(found))


def _input_changed(record: Record) -> Iterator[Symptom]:
    """The one that a verdict would name if it did not name a write outside of an output."""
    if record.verdict.kind == Fault.GUARD:
        states = chain.from_iterable(outcome.buffers.items() for outcome in chain.from_iterable(record.attempts[:1]))
        changed = next((name for name, state in states if state.changed), None)
        if changed is not None:
            yield Symptom(Fault.INPUT, changed)


def gravity_of_fault(kind: str) -> int:
    """The place of a kind of wrong value, 0 for the gravest and for any other fault."""
    return _VALUE_KINDS.index(kind) if kind in _VALUE_KINDS else 0


def display_order(record: Record) -> tuple[bool, int, int, int, str]:
    """Which failure of a finding shows it best, the least first: of one call, grave, shown again by itself, small."""
    shown = 0 if record.after else 2 if record.conforms_alone else 1
    is_plain = record.trial.check in PLAIN_CHECKS or bool(record.fingerprint.clause)
    return not is_plain, gravity_of_fault(record.verdict.kind), shown, record.trial.case.nbytes, record.trial_id


def is_milder(kind: str, than: str) -> bool:
    """Whether one fault is beyond an assumption alone, and the other beyond a document."""
    return kind == Fault.MODEL and than != Fault.MODEL
