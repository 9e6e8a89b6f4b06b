"""What a run amounts to, counted from its records: totals that must add up, the verdict and the RESULT line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.engine.coverage import Coverage

__all__ = [
    "BROKEN",
    "CONFORMS",
    "FAILS",
    "HELD",
    "NONE",
    "SUMMARY_FORMAT",
    "ConstraintCount",
    "Counts",
    "LawCount",
    "OperatorSummary",
    "Summary",
    "result_line",
    "summary_from_json",
    "summary_to_json",
]

SUMMARY_FORMAT = "aclnn-cts/summary/1"

CONFORMS = "conforms"
FAILS = "fails"
NONE = "none"
"""No verdict: an error, nothing judged, or a total that does not add up."""

_EXIT_CODES = {CONFORMS: 0, FAILS: 1, NONE: 3}

HELD = "held"
"""Key in a verdict's facts: the ids of the constraints that the trial's case holds."""
BROKEN = "broken"
"""Key in a verdict's facts: the ids of the constraints that the trial's case breaks."""


class Counts(msgspec.Struct):
    """How many trials were planned and how they ended; `waived` is a part of `failed`."""

    cases: int = 0
    """Planned."""
    passed: int = 0
    failed: int = 0
    waived: int = 0
    errors: int = 0
    skipped: int = 0
    skipped_by_reason: dict[str, int] = {}

    @property
    def ended(self) -> int:
        """Trials with an end: what `cases` must equal."""
        return self.passed + self.failed + self.errors + self.skipped

    @property
    def judged(self) -> int:
        """Trials that say something of the implementation."""
        return self.passed + self.failed

    def include(self, other: Counts) -> None:
        """Add another's counts to these."""
        self.cases += other.cases
        self.passed += other.passed
        self.failed += other.failed
        self.waived += other.waived
        self.errors += other.errors
        self.skipped += other.skipped
        for reason, count in other.skipped_by_reason.items():
            self.skipped_by_reason[reason] = self.skipped_by_reason.get(reason, 0) + count

    def count(self, result: str, *, reason: str, waived: bool, number: int = 1) -> None:
        """Count an end of trials. `reason` is that of a skip; a result that nobody knows is a HarnessError."""
        if result == Result.PASSED:
            self.passed += number
        elif result == Result.FAILED:
            self.failed += number
            self.waived += number if waived else 0
        elif result == Result.ERROR:
            self.errors += number
        elif result == Result.SKIPPED:
            if not reason:
                raise HarnessError("a trial was skipped without a reason; every skip must name one")
            self.skipped += number
            self.skipped_by_reason[reason] = self.skipped_by_reason.get(reason, 0) + number
        else:
            raise HarnessError(f"result {result!r}; expected passed, failed, error or skipped")


class ConstraintCount(msgspec.Struct):
    """Trials whose case holds one constraint, and whose case breaks it, whatever came of them."""

    held: int = 0
    broken: int = 0


class LawCount(msgspec.Struct):
    """Trials of one law, whatever came of them, and those that were planned and could not be generated."""

    tried: int = 0
    withheld: int = 0


class OperatorSummary(msgspec.Struct):
    """One operator: counts by kind of case (`example`, `valid`, `invalid`, ...), by constraint and by law."""

    kinds: dict[str, Counts] = {}
    constraints: dict[str, ConstraintCount] = {}
    laws: dict[str, LawCount] = {}

    @property
    def total(self) -> Counts:
        """Over all kinds."""
        return _total(self.kinds.values())

    def kind(self, name: str) -> Counts:
        """The counts of a kind of case, made on first use."""
        return self.kinds.setdefault(name, Counts())

    def constraint(self, identifier: str) -> ConstraintCount:
        """The counts of a constraint, made on first use: naming one that no trial touches shows it as zero."""
        return self.constraints.setdefault(identifier, ConstraintCount())

    def law(self, identifier: str) -> LawCount:
        """The counts of a law, made on first use."""
        return self.laws.setdefault(identifier, LawCount())


class Summary(msgspec.Struct):
    """Accumulates records. The same records give the same summary in any order."""

    operators: dict[str, OperatorSummary] = {}
    waivers: dict[str, int] = {}
    """Failures that each waiver speaks for."""
    violations: list[str] = []
    """Why the run fails whatever its trials say, such as a waiver that has expired."""
    problems: list[str] = []
    """Why the run says nothing, such as a constraint that no trial broke."""
    notices: list[str] = []
    """What owners should know, such as a waiver whose pinned cases pass now."""
    notes: list[Note] = []
    """The violations and problems in codes and values, for reports in another language."""

    def operator(self, name: str) -> OperatorSummary:
        """One operator's part, made on first use."""
        return self.operators.setdefault(name, OperatorSummary())

    def plan(self, operator: str, kind: str, *, number: int = 1) -> None:
        """Say that so many trials of a kind of case are to be run: what `add` and `skip` must come up to."""
        self.operator(operator).kind(kind).cases += number

    def skip(self, operator: str, kind: str, *, reason: str, number: int = 1) -> None:
        """Count planned trials that never became a record (an operator that the product does not support)."""
        self.operator(operator).kind(kind).count(Result.SKIPPED, reason=reason, waived=False, number=number)

    def add(self, record: Record) -> None:
        """Count one record; the constraints that it held and broke stand in its verdict's facts."""
        verdict = record.verdict
        operator = self.operator(record.trial.case.operator)
        counts = operator.kind(record.trial.case.origin.kind)
        counts.count(verdict.result, reason=verdict.kind, waived=bool(record.waiver))
        if verdict.result == Result.FAILED and record.waiver:
            self.waivers[record.waiver] = self.waivers.get(record.waiver, 0) + 1

    def cover(self, coverage: Coverage) -> None:
        """Count which constraints a batch's cases held and broke."""
        for name, counts in coverage.held.items():
            for identifier, number in counts.items():
                self.operator(name).constraint(identifier).held += number
        for name, counts in coverage.broken.items():
            for identifier, number in counts.items():
                self.operator(name).constraint(identifier).broken += number
        for name, counts in coverage.laws.items():
            for identifier, number in counts.items():
                self.operator(name).law(identifier).tried += number
        for name, counts in coverage.withheld.items():
            for identifier, number in counts.items():
                self.operator(name).law(identifier).withheld += number

    def include(self, other: Summary) -> None:
        """Add the counts of another part of the same run (a chunk that a worker judged)."""
        for name, theirs in other.operators.items():
            mine = self.operator(name)
            for kind, counts in theirs.kinds.items():
                mine.kind(kind).include(counts)
            for identifier, count in theirs.constraints.items():
                mine.constraint(identifier).held += count.held
                mine.constraint(identifier).broken += count.broken
            for identifier, law in theirs.laws.items():
                mine.law(identifier).tried += law.tried
                mine.law(identifier).withheld += law.withheld
        for identifier, number in other.waivers.items():
            self.waivers[identifier] = self.waivers.get(identifier, 0) + number
        self.violations += [text for text in other.violations if text not in self.violations]
        self.problems += [text for text in other.problems if text not in self.problems]
        self.notices += [text for text in other.notices if text not in self.notices]
        self._keep(other.notes)

    def violate(self, notes: Iterable[Note]) -> None:
        """Say why the run fails whatever its trials say, in the place of what was said before."""
        told = list(notes)
        self.violations[:] = [note.text for note in told]
        self._keep(told)

    def miss(self, notes: Iterable[Note]) -> None:
        """Say why the run says nothing."""
        told = list(notes)
        self.problems += [note.text for note in told]
        self._keep(told)

    def _keep(self, notes: Iterable[Note]) -> None:
        known = {note.text for note in self.notes}
        self.notes += [note for note in notes if note.text not in known]

    @property
    def total(self) -> Counts:
        """Over all operators."""
        return _total(operator.total for operator in self.operators.values())

    def discrepancies(self) -> tuple[str, ...]:
        """Where planned is not passed + failed + errors + skipped, kind by kind: no sum can hide another's hole."""
        return tuple(note.text for note in self.holes())

    def holes(self) -> tuple[Note, ...]:
        """The discrepancies in codes and values."""
        return tuple(
            Note(
                f"{name}, {kind or 'no kind'}: {counts.cases} planned, {counts.ended} ended",
                NoteCode.TOTAL,
                {"operator": name, "kind": kind, "planned": counts.cases, "ended": counts.ended},
            )
            for name, operator in self.operators.items()
            for kind, counts in operator.kinds.items()
            if counts.cases != counts.ended
        )

    def one_sided(self, constraints: Mapping[str, Iterable[str]]) -> tuple[Note, ...]:
        """Which of the operators' constraints no trial held or no trial broke, as `operator: id never broken`."""
        codes = {HELD: NoteCode.NEVER_HELD, BROKEN: NoteCode.NEVER_BROKEN}
        return tuple(
            Note(f"{name}: {identifier} never {side}", codes[side], {"operator": name, "id": identifier})
            for name, identifiers in constraints.items()
            for identifier in identifiers
            for side in (HELD, BROKEN)
            if not getattr(self.operator(name).constraint(identifier), side)
        )

    def untried(self, laws: Mapping[str, Iterable[str]]) -> tuple[Note, ...]:
        """Which of the operators' laws no trial put to the test, as `operator: law/id never tried`."""
        return tuple(
            Note(f"{name}: {identifier} never tried", NoteCode.NEVER_TRIED, {"operator": name, "id": identifier})
            for name, identifiers in laws.items()
            for identifier in identifiers
            if not self.operator(name).law(identifier).tried
        )

    @property
    def verdict(self) -> str:
        """`fails` where any unwaived failure stands; else `none` where anything is missing; else `conforms`."""
        total = self.total
        if total.failed > total.waived or self.violations:
            return FAILS
        if total.errors or not total.judged or self.problems or self.discrepancies():
            return NONE
        return CONFORMS

    @property
    def exit_code(self) -> int:
        """0, 1 or 3: a fault outranks an error."""
        return _EXIT_CODES[self.verdict]


def _total(parts: Iterable[Counts]) -> Counts:
    total = Counts()
    for part in parts:
        total.include(part)
    return total


def result_line(summary: Summary, run: Path) -> str:
    """The last line of `run`, `fuzz` and `replay`."""
    total = summary.total
    return (
        f"RESULT verdict={summary.verdict} cases={total.cases} passed={total.passed} failed={total.failed}"
        f" waived={total.waived} errors={total.errors} skipped={total.skipped} run={run}"
    )


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """The document of `summary.json`: verdict and totals first, then each operator with its own."""
    return {
        "format": SUMMARY_FORMAT,
        "verdict": summary.verdict,
        **_counts_to_json(summary.total),
        "discrepancies": list(summary.discrepancies()),
        "violations": list(summary.violations),
        "problems": list(summary.problems),
        "notices": list(summary.notices),
        "notes": msgspec.to_builtins(summary.notes),
        "waivers": dict(sorted(summary.waivers.items())),
        "operators": {
            name: {
                **_counts_to_json(operator.total),
                "kinds": {kind: _counts_to_json(counts) for kind, counts in operator.kinds.items()},
                "constraints": msgspec.to_builtins(operator.constraints),
                "laws": msgspec.to_builtins(operator.laws),
            }
            for name, operator in sorted(summary.operators.items())
        },
    }


def _counts_to_json(counts: Counts) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(counts)
    document["skipped_by_reason"] = dict(sorted(counts.skipped_by_reason.items()))
    return document


def summary_from_json(document: object, *, where: str) -> Summary:
    """Read `summary.json` again. Totals and verdict are derived, so only the counts by kind are read."""
    try:
        return msgspec.convert(document, Summary)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}; the file was not written by this program or has been changed") from None
