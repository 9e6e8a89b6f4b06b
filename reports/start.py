"""The explorer's first table: every operator with its verdict and figures, by family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aclnn_cts.core.clause_verdict import ClauseVerdict
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.document.catalogue import family_of
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts, VerdictRow
from aclnn_cts.reports.model.acceptance_rows import ClauseRow
from aclnn_cts.reports.text import VERDICTS

_BADGES = {
    RunVerdict.FAILS: "contradicted",
    RunVerdict.INCONCLUSIVE: "untested",
    RunVerdict.CONFORMS: "met",
    RunVerdict.CONFORMS_WITH_WAIVERS: "untested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRow:
    """One operator in one run."""

    run: RunFacts
    part: VerdictRow
    badge: str
    clauses: tuple[int, ...]
    """Met, contradicted, untested, open; of all runs together."""
    findings: int


def start_rows(report: Acceptance) -> list[StartRow]:
    """Operators of all runs, in the order of the documents."""
    clauses: dict[str, list[str]] = {}
    for row in report.clauses:
        clauses.setdefault(row.operator, []).append(row.verdict)
    return [
        StartRow(
            run=run,
            part=row,
            badge=_BADGES.get(row.found.verdict, "open"),
            clauses=tuple(clauses.get(row.operator, []).count(name) for name in VERDICTS),
            findings=sum(card.operator == row.operator and run.name in card.runs for card in report.findings),
        )
        for run in report.runs
        for row in run.operators
    ]


def families(rows: Sequence[StartRow]) -> list[tuple[str, list[StartRow]]]:
    """By the family of the operator, those with failures first."""
    found: dict[str, list[StartRow]] = {}
    for row in rows:
        found.setdefault(family_of(row.part.operator), []).append(row)
    return sorted(found.items(), key=lambda item: (-sum(row.part.ends.unwaived for row in item[1]), item[0]))


def unremarkable(rows: Sequence[ClauseRow]) -> frozenset[str]:
    """The clauses that give nothing to look at: met, left open by the document, or beyond any test."""
    return frozenset(
        row.clause.at
        for row in rows
        if not row.findings
        and not row.said.failed
        and (row.verdict in (ClauseVerdict.MET, ClauseVerdict.OPEN) or row.reason == "unreachable")
    )


def anchors(report: Acceptance) -> dict[str, tuple[str, ...]]:
    """Ids for links to each finding, by the hash of what it is, and to its case: the same in every report."""
    seen: set[str] = set()
    made = {}
    for card in report.findings:
        names = [name for name in _anchors(card.file, card.trial_id) if name not in seen]
        seen.update(names)
        made[card.id] = tuple(names)
    return made


def _anchors(file: str, trial: str) -> Iterator[str]:
    yield f"finding-{file.rpartition('-')[2].removesuffix('.json')}"
    yield f"case-{trial[:16]}"
