"""The fingerprint of a failed record, and the findings of a run or a campaign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Beside, Fingerprint, GroupedFinding, Looks
from aclnn_cts.core.outcome import Ended, status_name
from aclnn_cts.core.printable import shown
from aclnn_cts.core.rounding import BINARY_FORMATS
from aclnn_cts.core.verdict import ALONE_FACT, ALSO_STATUS, Deviation, Record, Result
from aclnn_cts.findings.finding import FINDING_STATE, Confirmed, Finding
from aclnn_cts.findings.group import PLAIN, group
from aclnn_cts.store.run_directory import FINDINGS
from aclnn_cts.store.store_reader import Query, ResultReader

_OF_VALUES = Fault.of(Family.VALUES, Family.LAW)
_ROUNDING = 2.0**-6
"""Errors below this share of the value are of arithmetic: BF16, the coarsest format, has 2^-8."""
_NEAR = 2.0**-2
"""Errors of a wrong term are of any size; those between this and `_ROUNDING` tell it from arithmetic."""
_SMALLEST_HALF, _SMALLEST_FLOAT = 2.0**-14, 2.0**-126
"""The smallest normal numbers of FLOAT16, and of FLOAT and BF16: arithmetic that flushes makes 0 of what is below."""

_MOSTLY = 0.8
"""Failures of an output that need other calls, of those that were run again: from so many on all of them do."""

_LARGEST = frozenset(BINARY_FORMATS[name].largest for name in ("FLOAT", "FLOAT16", "BF16"))


def fingerprinted(record: Record) -> Record:
    """A failed record with the whole of its fingerprint; any other as it is."""
    if record.verdict.result != Result.FAILED:
        return record
    of_values = record.verdict.kind in _OF_VALUES
    whole = msgspec.structs.replace(
        record.fingerprint,
        answer=_answer(record),
        looks=_looks(record) if of_values else Looks.NONE,
        beside=_beside(record),
    )
    return msgspec.structs.replace(record, fingerprint=whole)


def _answer(record: Record) -> str:
    """How the call at fault ended, where one fault has several: the first that did not return, or was refused."""
    kind = record.verdict.kind
    outcomes = record.attempts[0] if record.attempts else ()
    if kind not in (Fault.STATUS, Fault.REJECTED, Fault.CRASH) or not outcomes:
        return ""
    refused = kind == Fault.REJECTED
    last = next((item for item in outcomes if item.ended != Ended.RETURNED or (refused and item.status)), outcomes[-1])
    if last.ended == Ended.SIGNAL:
        return f"signal {last.signal}"
    return status_name(last.status or 0) if last.ended == Ended.RETURNED else last.ended


def _beside(record: Record) -> tuple[Beside, ...]:
    """What else is wrong than what the verdict names."""
    found = set(_input_changed(record))
    if (status := record.verdict.facts.get(ALSO_STATUS)) is not None:
        found.add(Beside("", Looks.NONE, Fault.STATUS, str(status)))
    if record.fingerprint.check in PLAIN:
        of_values = record.verdict.kind in _OF_VALUES
        others = (
            item
            for item in record.verdict.deviations
            if item.beyond and not (of_values and item.output == record.fingerprint.output)
        )
        found |= {Beside(item.output, _of_element(item, record.fingerprint.dtype)) for item in others}
    return tuple(sorted(found))


def _input_changed(record: Record) -> Iterator[Beside]:
    """The one that a verdict would name if it did not name a write outside of an output."""
    if record.verdict.kind == Fault.GUARD:
        states = chain.from_iterable(outcome.buffers.items() for outcome in chain.from_iterable(record.attempts[:1]))
        changed = next((name for name, state in states if state.changed), None)
        if changed is not None:
            yield Beside(changed, Looks.NONE, Fault.INPUT)


def _looks(record: Record) -> Looks:
    """Those of the worst element of the output at fault."""
    at_fault = [item for item in record.verdict.deviations if item.beyond]
    named = [item for item in at_fault if item.output == record.fingerprint.output]
    worst = next(iter(named or at_fault), None)
    return Looks.WRONG if worst is None else _of_element(worst, record.fingerprint.dtype)


def _of_element(worst: Deviation, dtype: str) -> Looks:
    got, expected = float(worst.got), float(worst.expected)
    if abs(got) in _LARGEST:
        return Looks.CLAMPED
    if not math.isfinite(expected):
        return Looks.SPECIAL
    if not math.isfinite(got):
        return Looks.STRAY
    largest = max(abs(got), abs(expected))
    if largest < (_SMALLEST_HALF if dtype == "FLOAT16" else _SMALLEST_FLOAT):
        return Looks.ROUNDING if got else Looks.FLUSHED
    error = abs(got - expected) / max(largest, abs(expected) * worst.cancellation)
    if error < _ROUNDING:
        return Looks.ROUNDING
    if not got:
        return Looks.ZERO
    return Looks.NEAR if error < _NEAR else Looks.WRONG


@dataclass(slots=True)
class RunAgain:
    """Which failures show only after other calls, as far as they were run again."""

    _met: set[Fingerprint] = field(default_factory=set)
    """Those without a waiver: what a waiver accepts is not run again."""
    _shown: set[Fingerprint] = field(default_factory=set)
    """Those that were seen to need other calls."""
    _again: dict[tuple[str, ...], list[bool]] = field(default_factory=dict)
    """By operator, constraint and output: whether it was so, of each that was run again."""

    def add(self, record: Record) -> None:
        """Take what came of a failure alone, where that was tried."""
        found = record.fingerprint
        if not record.waiver:
            self._met.add(found)
        if record.after or (record.conforms_alone and record.flaky_rate is None):
            self._shown.add(found)
            self._again.setdefault(_place(found), []).append(True)
        elif ALONE_FACT in record.verdict.facts and record.trial.check in PLAIN:
            # A law or a life cycle makes the other calls itself.
            self._again.setdefault(_place(found), []).append(False)

    @property
    def order_dependent(self) -> Collection[Fingerprint]:
        """Those that were seen to need other calls, and all of an output of which hardly any shows alone.

        Few of them are run again.
        """
        places = {place for place, again in self._again.items() if sum(again) >= _MOSTLY * len(again)}
        return self._shown.union(found for found in self._met if _place(found) in places)


def _place(found: Fingerprint) -> tuple[str, ...]:
    return found.operator, found.clause, found.output or found.fault


def grouped(failures: Iterable[Record]) -> tuple[GroupedFinding, ...]:
    """The findings of failed records, those without a waiver first; each waiver has findings of its own."""
    numbers: dict[str, Counter[Fingerprint]] = {}
    again = RunAgain()
    for record in failures:
        numbers.setdefault(record.waiver, Counter())[record.fingerprint] += 1
        again.add(record)
    return _grouped(numbers, again.order_dependent)


def _grouped(
    numbers: Mapping[str, Mapping[Fingerprint, int]], after: Collection[Fingerprint]
) -> tuple[GroupedFinding, ...]:
    return tuple(
        GroupedFinding(
            fingerprints=found.fingerprints,
            numbers=tuple(counts[item] for item in found.fingerprints),
            waiver=waiver,
            hidden=found.hidden,
            order_dependent=all(item in after for item in found.fingerprints),
        )
        for waiver, counts in sorted(numbers.items())
        for found in group(counts, order_dependent=after)
    )


def grouped_findings(findings: Iterable[Finding]) -> tuple[GroupedFinding, ...]:
    """The findings of all failures that a campaign has counted, of which it keeps few records."""
    numbers: dict[str, Counter[Fingerprint]] = {}
    after: set[Fingerprint] = set()
    for finding in findings:
        for (waiver, found), number in finding.counts:
            numbers.setdefault(waiver, Counter())[found] += number
            if finding.confirmed == Confirmed.ORDER:
                after.add(found)
    return _grouped(numbers, after)


def grouped_in(results: ResultReader) -> tuple[GroupedFinding, ...]:
    """The findings of all failures of a store: as a campaign has counted them, else of its records."""
    counted = [msgspec.convert(value, Finding) for _, value in results.states(FINDING_STATE)]
    if any(item.counts for item in counted):
        return grouped_findings(counted)
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


def findings_together(runs: Sequence[tuple[GroupedFinding, ...]]) -> tuple[GroupedFinding, ...]:
    """The findings of several runs: of one run its own, else those of all their failures."""
    if len(runs) == 1:
        return runs[0]
    numbers: dict[str, Counter[Fingerprint]] = {}
    after: set[Fingerprint] = set()
    for item in chain.from_iterable(runs):
        numbers.setdefault(item.waiver, Counter()).update(dict(zip(item.fingerprints, item.numbers, strict=True)))
        after.update(item.fingerprints if item.order_dependent else ())
    return _grouped(numbers, after)


def indexed(found: Iterable[GroupedFinding]) -> Callable[[str, Fingerprint], int]:
    """What says which of the findings a failure is, by its waiver and fingerprint.

    It raises HarnessError for a failure that none of them has.
    """
    places = {(item.waiver, each): number for number, item in enumerate(found) for each in item.fingerprints}

    def place(waiver: str, given: Fingerprint) -> int:
        if (waiver, given) not in places:
            raise HarnessError(
                f"the findings that a run has stored lack one of its failures ({shown(given.text())}); its"
                " results.sqlite is damaged, or of another version of this program"
            )
        return places[waiver, given]

    return place


def message_of(record: Record, hidden: Beside | None = None) -> str:
    """What a verdict says; for what another fault hides (`GroupedFinding.hidden`), that first."""
    message = record.verdict.message
    if hidden is None:
        return message
    if hidden.fault:
        said = (
            f"{hidden.output}: the call changed this input" if hidden.output else f"the call returned {hidden.answer}"
        )
    else:
        worst = next((item for item in record.verdict.deviations if item.output == hidden.output), None)
        if worst is None:
            return message
        said = f"{worst.place} is {worst.got}, expected {worst.expected}"
    return f"{said}; the same call also has another fault: {message}"


_SHOWS = (
    Confirmed.ALWAYS,
    Confirmed.DEVICE,
    Confirmed.ORDER,
    Confirmed.FLAKY,
    Confirmed.UNKNOWN,
    Confirmed.WAITING,
)
"""What shows a fault best comes first."""


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """One for each group of failures, with the failures of the whole group; in the given order.

    What a campaign keeps as one and looks like two faults is given twice.
    """
    found = list(findings)
    shown = [(number, item) for number, item in enumerate(found) if not item.counts]
    for kin in grouped_findings(found):
        inside = frozenset(kin.fingerprints)
        members = [
            number
            for number, item in enumerate(found)
            if any(waiver == kin.waiver and each in inside for (waiver, each), _ in item.counts)
        ]
        best = min(members, key=lambda number: _order(found[number]))
        shown.append((best, msgspec.structs.replace(found[best], failures=kin.failures, waiver=kin.waiver)))
    return [item for _, item in sorted(shown, key=itemgetter(0))]


def represented(findings: Collection[Finding]) -> Finding:
    """Of findings that are one fault, the one that shows it best, with the failures of all of them."""
    best = min(findings, key=_order)
    return msgspec.structs.replace(best, failures=sum(item.failures for item in findings))


def _order(finding: Finding) -> tuple[int, bool, bool]:
    tells_calls = finding.trial is not None and bool(finding.trial.after)
    return _SHOWS.index(finding.confirmed), not tells_calls, not finding.shrunk
