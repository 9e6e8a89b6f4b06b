"""The findings of a run or a campaign: made of its failures, stored, read, and looked up for a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.fingerprint import PLAIN_CHECKS, Fingerprint, Symptom
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import ALONE_FACT, Record, Result
from aclnn_cts.findings.fingerprint import display_order
from aclnn_cts.findings.group import group_failures
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.store.run_directory import FINDINGS
from aclnn_cts.store.store_reader import Query, ResultReader

FINDING_STATE = "finding/"
"""What the keys of a campaign's findings in a store's state begin with; that of its trial file follows."""

EXAMPLES = 25
"""Records that a campaign keeps of a finding; the failures after them are counted."""

BROKEN_CALL = "invalid"
"""The kind of calls that break a constraint."""


@dataclass(slots=True)
class Failures:
    """The failures of one run, as far as findings are made of them."""

    numbers: dict[str, Counter[Fingerprint]] = field(default_factory=dict)
    """By waiver, empty for none."""
    enforced: set[str] = field(default_factory=set)
    """Operators that answered a broken constraint as promised."""
    best: dict[tuple[str, Fingerprint], Record] = field(default_factory=dict)
    """The failure that shows each best, by waiver."""
    _alone: dict[Fingerprint, bool] = field(default_factory=dict)
    """Whether a fingerprint was seen alone, of those that were run again."""
    _unwaived: tuple[int, tuple[Finding, ...]] = (0, ())
    """How many fingerprints there were when findings were last made, and those without a waiver."""

    def add(self, record: Record) -> None:
        """Take a record; those that passed say which operators enforce constraints."""
        if record.verdict.result == Result.FAILED:
            found = record.fingerprint
            self.numbers.setdefault(record.waiver, Counter())[found] += 1
            place = record.waiver, found
            self.best[place] = min(self.best.get(place, record), record, key=display_order)
            if record.after or (record.conforms_alone and record.flaky_rate is None):
                self._alone.setdefault(found, False)
            elif ALONE_FACT in record.verdict.facts and record.trial.check in PLAIN_CHECKS:
                # Equal calls or a life cycle make the other calls itself.
                self._alone[found] = True
        elif record.verdict.result == Result.PASSED and record.trial.case.origin.kind == BROKEN_CALL:
            self.enforced.add(record.trial.case.operator)

    @property
    def order_dependent(self) -> Collection[Fingerprint]:
        """Those that need other calls, and all that show what these do where nothing was seen alone."""
        needy = {(found.operator, found.symptom) for found, alone in self._alone.items() if not alone}
        seen = {(found.operator, found.symptom) for found, alone in self._alone.items() if alone}
        every = chain.from_iterable(numbers for waiver, numbers in self.numbers.items() if not waiver)
        alike = {found for found in every if (found.operator, found.symptom) in needy - seen}
        return alike | {found for found, alone in self._alone.items() if not alone}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those without a waiver first, then the most frequent; each with the failure that shows it best."""
        operators = {item.operator for counts in self.numbers.values() for item in counts}
        found = _grouped(self.numbers, self.order_dependent, unenforced=operators - self.enforced)
        return tuple(
            with_best_record(item, (self.best[item.waiver, each] for each in item.fingerprints)) for item in found
        )

    @property
    def unwaived(self) -> tuple[Finding, ...]:
        """The findings so far that no waiver accepts; made anew only where a fingerprint is new."""
        if self._unwaived[0] != len(self.best):
            self._unwaived = len(self.best), tuple(item for item in self.findings if not item.waiver)
        return self._unwaived[1]


def _grouped(
    numbers: Mapping[str, Mapping[Fingerprint, int]],
    after: Collection[Fingerprint],
    *,
    unenforced: Collection[str] = (),
) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            key=Fingerprint(operator=found.fingerprints[0].operator, check="", **msgspec.structs.asdict(found.symptom)),
            waiver=waiver,
            counts=tuple((item, counts[item]) for item in found.fingerprints),
            confirmed=Confirmation.ORDER if all(item in after for item in found.fingerprints) else Confirmation.WAITING,
        )
        for waiver, counts in sorted(numbers.items())
        for found in group_failures(counts, order_dependent=after, unenforced=unenforced)
    )


def with_best_record(finding: Finding, records: Iterable[Record]) -> Finding:
    """The finding with that of its failures that shows it best."""
    symptom = finding.key.symptom
    best = min(records, key=lambda item: (item.fingerprint.symptom != symptom, display_order(item)))
    confirmed, alone = finding.confirmed, finding.alone
    if (rate := best.flaky_rate) is not None:
        confirmed, alone = Confirmation.FLAKY, rate
    elif best.conforms_alone:
        confirmed, alone = Confirmation.ORDER, (0, 1)
    return msgspec.structs.replace(
        finding,
        trial=best.reproducing_trial,
        record=best,
        message=message_of(best, symptom),
        confirmed=confirmed,
        alone=alone,
    )


def message_of(record: Record, symptom: Symptom) -> str:
    """What a verdict says; of what another fault hides, that first."""
    message = record.verdict.message
    if symptom not in record.fingerprint.also or symptom == record.fingerprint.symptom:
        return message
    worst = next((item for item in record.verdict.deviations if item.output == symptom.output), None)
    if symptom.fault == Fault.STATUS:
        said = f"the call returned {symptom.answer}"
    elif symptom.fault == Fault.INPUT:
        said = f"{symptom.output}: the call changed this input"
    elif worst is not None:
        said = f"{worst.place} is {worst.got}, expected {worst.expected}"
    else:
        return message
    return f"{said}; the same call also has another fault: {message}"


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings put together as those of one run, in the given order; each has what is known of its best part."""
    given = list(findings)
    numbers: dict[str, Counter[Fingerprint]] = {}
    for item in given:
        numbers.setdefault(item.waiver, Counter()).update(dict(item.counts))
    after = {each for item in given if item.confirmed == Confirmation.ORDER for each in item.fingerprints}
    made = []
    for found in _grouped(numbers, after):
        inside = frozenset(found.fingerprints)
        parts = [item for item in given if item.waiver == found.waiver and not inside.isdisjoint(item.fingerprints)]
        best = min(parts, key=partial(_order, found.key.symptom))
        made.append((given.index(parts[0]), msgspec.structs.replace(best, key=found.key, counts=found.counts)))
    return tuple(item for _, item in sorted(made, key=itemgetter(0)))


_SHOWS = (
    Confirmation.ALWAYS,
    Confirmation.DEVICE,
    Confirmation.ORDER,
    Confirmation.FLAKY,
    Confirmation.UNKNOWN,
    Confirmation.WAITING,
)
"""What shows a fault best comes first."""


def _order(symptom: Symptom, finding: Finding) -> tuple[bool, int, bool, bool, int]:
    # What shows the symptom itself comes first: equal calls that always differ do not stand for a value that is wrong
    # now and then.
    is_another = finding.key.symptom != symptom
    tells_calls = finding.trial is not None and bool(finding.trial.after)
    return is_another, _SHOWS.index(finding.confirmed), not tells_calls, not finding.shrunk, -finding.failures


def findings_in(results: ResultReader) -> tuple[Finding, ...]:
    """The findings of all failures of a store: as a campaign has counted them, else of its records."""
    counted = [msgspec.convert(value, Finding) for _, value in results.states(FINDING_STATE)]
    if counted:
        return merge_findings(counted)
    passed = Query(kind=BROKEN_CALL, result=Result.PASSED)
    failures = Failures(enforced={operator for (operator,) in results.tally("operator", query=passed)})
    for record in results.records(Query(result=Result.FAILED)):
        failures.add(record)
    return failures.findings


def findings_of(results: ResultReader) -> tuple[Finding, ...]:
    """The findings that a run has stored; of one that has not ended, those of its failures so far.

    Raises HarnessError where they are damaged.
    """
    stored = results.state(FINDINGS)
    if stored is None:
        return findings_in(results)
    try:
        return msgspec.convert(stored, tuple[Finding, ...])
    except msgspec.ValidationError as error:
        raise HarnessError(f"{results.path} (state {FINDINGS}): {error}; the file is damaged or newer") from None


def findings_of_runs(runs: Sequence[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The findings of several runs: of one run its own, else those of all their failures."""
    return runs[0] if len(runs) == 1 else merge_findings(chain.from_iterable(runs))


class FindingIndex:
    """Which of some findings a failure is."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._places: dict[tuple[str, Fingerprint], list[int]] = {}
        self._findings = tuple(findings)
        for number, item in enumerate(self._findings):
            for each in item.fingerprints:
                self._places.setdefault((item.waiver, each), []).append(number)

    def number_of(self, record: Record) -> int:
        """The number of a failure's finding. Raises HarnessError for one that none of them has."""
        found = self._places.get((record.waiver, record.fingerprint))
        if found is None:
            raise HarnessError(
                "the findings that a run has stored lack one of its failures"
                f" ({quote(record.fingerprint.text())}); its results.sqlite is damaged, or of another version of this"
                " program"
            )
        return next(
            (number for number in found if meets_condition(self._findings[number], record.trial.case)), found[-1]
        )


def meets_condition(finding: Finding, case: Case) -> bool:
    """Whether a call meets the finding's condition, or that has none."""
    return finding.condition is None or compile_predicate(finding.condition.when)(case)
