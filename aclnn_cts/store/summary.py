"""What a run amounts to, counted from its records: totals that must add up, the RESULT line, `summary.json`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.outside import convert_document
from aclnn_cts.core.verdict import Record, Result, RunVerdict
from aclnn_cts.speclang.evaluate import Evaluation
from aclnn_cts.speclang.model import Constraint
from aclnn_cts.store.counts import CornerCount, Counts, OpenRow, OperatorSummary, TriedCount, total_of
from aclnn_cts.store.run_verdict import Conclusion, OperatorVerdict, Terms, conclude_run, exit_code, percent
from aclnn_cts.store.scope import Scope

HELD = "held"
"""Key in a verdict's facts: the ids of the constraints that the trial's case holds."""
BROKEN = "broken"
"""Key in a verdict's facts: the ids of the constraints that the trial's case breaks."""
_ID = attrgetter("id")


class Summary(msgspec.Struct):
    """Accumulates records. The same records give the same summary in any order."""

    operators: dict[str, OperatorSummary] = {}
    terms: Terms | None = None
    """What the counts are measured by; None: a part of a run."""
    scope: Scope | None = None
    """What the adapter declared to offer; None as of `terms`."""
    finished: bool = False
    """Whether the run came to its end."""
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
        return self.operators.get(name) or self.operators.setdefault(name, OperatorSummary())

    def apart(self, operators: Collection[str]) -> Summary:
        """The same summary, in which these operators can be counted on without a change of this one.

        Others share their counts with it: a copy of all of them would cost more than a batch of small calls.
        """
        counted = {name: part.copy() if name in operators else part for name, part in self.operators.items()}
        return msgspec.structs.replace(
            self,
            operators=counted,
            waivers=dict(self.waivers),
            violations=list(self.violations),
            problems=list(self.problems),
            notices=list(self.notices),
            notes=list(self.notes),
        )

    def demand(
        self,
        operator: str,
        *,
        dtypes: Iterable[str] = (),
        rules: Iterable[str] = (),
        cells: Iterable[str] = (),
        corners: Iterable[str] = (),
    ) -> None:
        """Say which dtypes (`grad FLOAT`), status rules and corners a run must judge, and its planned cells."""
        mine = self.operator(operator)
        for corner in corners:
            mine.corners.setdefault(corner, CornerCount())
        for cell in cells:
            mine.cells.setdefault(cell, 0)
        for known, names in ((mine.dtypes, dtypes), (mine.rules, rules)):
            for name in names:
                known.setdefault(name, TriedCount())

    def plan(self, operator: str, kind: str, *, number: int = 1) -> None:
        """Say that so many trials of a kind of case are to be run: what `add` and `skip` must come up to."""
        self.operator(operator).kind(kind).cases += number

    def skip(self, operator: str, kind: str, *, reason: str, number: int = 1, result: str = Result.SKIPPED) -> None:
        """Count planned trials that never became a record (an operator that the product does not support)."""
        self.operator(operator).kind(kind).count(result, reason=reason, number=number)

    def add(self, record: Record) -> None:
        """Count one record."""
        self.operator(record.trial.case.operator).add(record)
        if record.verdict.result == Result.FAILED and record.waiver:
            self.waivers[record.waiver] = self.waivers.get(record.waiver, 0) + 1

    def cover(self, operators: Sequence[str], evaluations: Sequence[Evaluation]) -> None:
        """Count which constraints the cases of some trials held and broke, each with its operator."""
        for name in dict.fromkeys(operators):
            counts = self.operator(name)
            mine = [found for operator, found in zip(operators, evaluations, strict=True) if operator == name]
            for identifier, number in _counted(found.held for found in mine).items():
                counts.constraint(identifier).held += number
            for identifier, number in _counted(found.broken for found in mine).items():
                counts.constraint(identifier).broken += number

    def include(self, other: Summary) -> None:
        """Add the counts of another part of the same run (a batch, or a chunk that a worker judged)."""
        for name, theirs in other.operators.items():
            self.operator(name).include(theirs)
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
        return total_of(operator.total for operator in self.operators.values())

    @property
    def openness(self) -> list[OpenRow]:
        """How much of the values could not be judged, the most open first."""
        rows = [
            OpenRow(name, dtype, check, item)
            for name, operator in self.operators.items()
            for (dtype, _, check), item in ((key.partition(" "), item) for key, item in operator.openness.items())
            if item.calls
        ]
        return sorted(rows, key=lambda row: (-row.open.share, row[:3]))

    def discrepancies(self) -> tuple[str, ...]:
        """Where planned is not the sum of all ends, kind by kind: no sum can hide another's hole."""
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

    @property
    def conclusion(self) -> Conclusion:
        """The verdict and what it rests on."""
        known = {note.text: note for note in self.notes}
        return conclude_run(
            self.operators,
            self.terms,
            finished=self.finished,
            violations=[known.get(text, Note(text)) for text in self.violations],
            problems=[*(known.get(text, Note(text)) for text in self.problems), *self.holes()],
        )

    @property
    def verdict(self) -> RunVerdict:
        """The verdict alone."""
        return self.conclusion.verdict

    @property
    def exit_code(self) -> int:
        """0, 1 or 3: a fault outranks an error."""
        return exit_code(self.verdict)


def _counted(constraints: Iterable[Sequence[Constraint]]) -> Mapping[str, int]:
    return Counter(map(_ID, itertools.chain.from_iterable(constraints)))


def result_line(summary: Summary, run: Path | None) -> str:
    """The last line of `run`, `fuzz` and `replay`; `run`: the directory, None where there is none."""
    total, conclusion = summary.total, summary.conclusion
    return (
        f"RESULT verdict={conclusion.verdict.value} judged={percent(conclusion.share)}% cases={total.cases}"
        f" passed={total.passed} failed={total.failed} waived={total.waived} errors={total.errors}"
        f" skipped={total.skipped} out_of_scope={total.out_of_scope} run={run if run is not None else '-'}"
    )


SUMMARY_FORMAT = "aclnn-cts/summary/2"


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """The document of `summary.json`: verdict and totals first, then each operator with its own."""
    conclusion = summary.conclusion
    return {
        "format": SUMMARY_FORMAT,
        "verdict": conclusion.verdict.value,
        "judged": percent(conclusion.share),
        "terms": msgspec.to_builtins(summary.terms),
        "scope": msgspec.to_builtins(summary.scope),
        "finished": summary.finished,
        "causes": [note.text for note in conclusion.causes],
        "reasons": [msgspec.to_builtins(reason) for reason in conclusion.reasons],
        **_counts_to_json(summary.total),
        "discrepancies": list(summary.discrepancies()),
        "violations": list(summary.violations),
        "problems": list(summary.problems),
        "notices": list(summary.notices),
        "notes": msgspec.to_builtins(summary.notes),
        "waivers": dict(sorted(summary.waivers.items())),
        "operators": {
            name: {
                **_verdict_to_json(conclusion.operators.get(name)),
                **_counts_to_json(operator.total),
                "kinds": {kind: _counts_to_json(counts) for kind, counts in operator.kinds.items()},
                "aims": {aim: _counts_to_json(counts) for aim, counts in operator.aims.items()},
                "constraints": msgspec.to_builtins(operator.constraints),
                "dtypes": msgspec.to_builtins(operator.dtypes),
                "corners": msgspec.to_builtins(operator.corners),
                "cells": dict(sorted(operator.cells.items())),
                "rules": msgspec.to_builtins(operator.rules),
                "unjudged": msgspec.to_builtins(operator.unjudged),
                "observed": msgspec.to_builtins(operator.observed),
                "openness": msgspec.to_builtins(dict(sorted(operator.openness.items()))),
                "coverage": msgspec.to_builtins(operator.coverage),
            }
            for name, operator in sorted(summary.operators.items())
        },
    }


def _verdict_to_json(found: OperatorVerdict | None) -> dict[str, Any]:
    """The verdict on one operator; none on one of which nothing was asked."""
    if found is None:
        return {}
    return {
        "verdict": found.verdict.value,
        "judged": percent(found.share),
        "causes": [note.text for note in found.causes],
        "scope": dict(found.scope),
    }


def _counts_to_json(counts: Counts) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(counts)
    return {**document, "skipped_by_reason": counts.reasons, "out_of_scope_by_reason": counts.outside}


def summary_from_json(document: object, *, where: str) -> Summary:
    """Read `summary.json` again. Totals and verdict are derived, so only the counts are read."""
    return convert_document(document, Summary, where=where, expected="what a run wrote, unchanged", error=HarnessError)
