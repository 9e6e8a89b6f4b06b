"""The failures of each finding of the runs of a report, as their records are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from aclnn_cts.core.faults import severity
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.fingerprint import PLAIN_CHECKS
from aclnn_cts.core.verdict import ALONE_FACT, SECOND_ORACLE, Record
from aclnn_cts.findings.findings import FindingIndex, findings_of_runs
from aclnn_cts.findings.fingerprint import display_order


class FailureSort(NamedTuple):
    """What failures of one finding differ in."""

    run: int
    check: str
    clause: str
    kind: str
    answer: str

    @property
    def is_plain(self) -> bool:
        """Whether one call shows it by itself."""
        return self.check in PLAIN_CHECKS or bool(self.clause)


@dataclass(slots=True)
class FindingTally:
    """The recorded failures of one finding."""

    finding: Finding
    best: Record
    best_run: int
    sorts: Counter[FailureSort] = field(default_factory=Counter)
    parts: dict[int, dict[str, Finding]] = field(default_factory=dict)
    """By run what it has stored of it, by trial file."""
    judged_as: set[tuple[str, str, str]] = field(default_factory=set)
    """Check, mode and dtype of the trials."""
    dtypes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By argument and dtype: the trials."""
    alone: Counter[str] = field(default_factory=Counter)
    second: Counter[str] = field(default_factory=Counter)

    def add(self, record: Record, run: int, part: Finding) -> None:
        """Count a failure, which the run has stored as `part`, and keep it where it shows the finding best."""
        verdict, found = record.verdict, record.fingerprint
        self.sorts[FailureSort(run, record.trial.check, found.clause, verdict.kind, found.answer)] += 1
        self.parts.setdefault(run, {})[part.file] = part
        self.judged_as.add((record.trial.check, verdict.mode, found.dtype))
        self.dtypes.update((name, tensor.dtype) for name, tensor in record.trial.case.tensors())
        if (alone := verdict.facts.get(ALONE_FACT)) is not None:
            self.alone[str(alone).partition(" (")[0]] += 1
        if (second := verdict.facts.get(SECOND_ORACLE)) is not None:
            self.second[str(second).partition(":")[0]] += 1
        if display_order(record) < display_order(self.best):
            self.best, self.best_run = record, run

    def of_run(self, run: int) -> Finding:
        """What a run has stored of it, with all of the run's failures."""
        parts = sorted(self.parts[run].values(), key=lambda item: -item.failures)
        return msgspec.structs.replace(parts[0], counts=tuple(each for item in parts for each in item.counts))


class FindingTallies:
    """The findings of the runs, with the failures that were read so far."""

    def __init__(self, runs: Sequence[tuple[Finding, ...]]) -> None:
        self._runs = runs
        self._indexes = [FindingIndex(found) for found in runs]
        # What several runs met is one finding; of one run they are its own.
        self._together = findings_of_runs(runs)
        self._index = FindingIndex(self._together)
        self.tallies: dict[int, FindingTally] = {}
        """By number, of findings that a record was read of."""

    def add(self, record: Record, run: int) -> int:
        """Count a failure of the run of that number; the number of its finding."""
        number = self._index.number_of(record)
        tally = self.tallies.get(number)
        if tally is None:
            tally = self.tallies[number] = FindingTally(self._together[number], record, run)
        tally.add(record, run, self._runs[run][self._indexes[run].number_of(record)])
        return number

    def ids(self) -> dict[int, str]:
        """`F1`, `F2`, ... by number: unwaived ones first, then the gravest, then the most frequent."""

        def order(number: int) -> tuple[bool, int, int, str]:
            finding = self.tallies[number].finding
            return bool(finding.waiver), severity(finding.kind).order, -finding.failures, finding.file

        return {number: f"F{place}" for place, number in enumerate(sorted(self.tallies, key=order), start=1)}
