"""The fingerprint of a failed record, and the findings of a run's failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint, GroupedFinding, Looks
from aclnn_cts.core.verdict import Deviation, Record, Result
from aclnn_cts.findings.group import group
from aclnn_cts.findings.signature import symptom
from aclnn_cts.store.run_directory import FINDINGS
from aclnn_cts.store.store_reader import Query, ResultReader

__all__ = ["findings_of", "fingerprint", "grouped", "grouped_in"]

_OF_VALUES = Fault.of(Family.VALUES, Family.LAW)
_ROUNDING = 2.0**-6
"""Errors below this share of the value are of arithmetic: BF16, the coarsest format, has 2^-8."""


def fingerprint(record: Record) -> Fingerprint:
    """That of a failed record."""
    verdict, signature = record.verdict, record.signature
    return Fingerprint(
        operator=signature.operator,
        check=signature.promise,
        fault=verdict.kind,
        clause=signature.constraint,
        answer=symptom(record),
        looks=_looks(record) if verdict.kind in _OF_VALUES else Looks.NONE,
        output=signature.output,
        mode=signature.mode,
        dtype=signature.dtype,
    )


def _looks(record: Record) -> Looks:
    """Those of the worst element of the output at fault."""
    at_fault = [item for item in record.verdict.deviations if item.beyond]
    named = [item for item in at_fault if item.output == record.signature.output]
    worst = next(iter(named or at_fault), None)
    return Looks.WRONG if worst is None else _of_element(worst)


def _of_element(worst: Deviation) -> Looks:
    got, expected = float(worst.got), float(worst.expected)
    if not math.isfinite(expected):
        return Looks.SPECIAL
    if not math.isfinite(got):
        return Looks.STRAY
    small = abs(got - expected) < _ROUNDING * max(abs(got), abs(expected))
    return Looks.ROUNDING if small else Looks.WRONG


def grouped(failures: Iterable[Record]) -> tuple[GroupedFinding, ...]:
    """The findings of failed records, those without a waiver first; each waiver has findings of its own."""
    numbers: dict[str, Counter[Fingerprint]] = {}
    for record in failures:
        numbers.setdefault(record.waiver, Counter())[fingerprint(record)] += 1
    return tuple(
        GroupedFinding(fingerprints=members, failures=sum(counts[item] for item in members), waiver=waiver)
        for waiver, counts in sorted(numbers.items())
        for members in group(counts)
    )


def grouped_in(results: ResultReader) -> tuple[GroupedFinding, ...]:
    """The findings of all failures that a store holds."""
    return grouped(results.records(Query(result=Result.FAILED)))


def findings_of(results: ResultReader) -> tuple[GroupedFinding, ...]:
    """The findings that a run has stored; of one that has not ended, those of its failures so far.

    Raises HarnessError where they are damaged.
    """
    stored = results.state(FINDINGS)
    if stored is None:
        return grouped_in(results)
    try:
        return msgspec.convert(stored, tuple[GroupedFinding, ...])
    except msgspec.ValidationError as error:
        raise HarnessError(f"{results.path} (state {FINDINGS}): {error}; the file is damaged or newer") from None
