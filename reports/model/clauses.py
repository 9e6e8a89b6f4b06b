"""The rows of an acceptance report for the clauses: each with its verdict, and the findings that contradict it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from aclnn_cts.clauses.clause_verdicts import BY_WEIGHT, ClauseVerdicts
from aclnn_cts.reports.model.acceptance_rows import ClauseRow
from aclnn_cts.speclang.model import Clause
from aclnn_cts.triage.dedup import Member

__all__ = ["ClauseRows", "interface_rows", "with_specific"]

_EVIDENCE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRows:
    """The rows of one operator's clauses."""

    verdicts: ClauseVerdicts
    findings: Mapping[Member, str]
    """Ids of findings."""

    def rows(self) -> tuple[ClauseRow, ...]:
        """Every clause of the document, in its order."""
        return tuple(self.row(clause, self.verdicts.spec.operator) for clause in self.verdicts.spec.clauses)

    def row(self, clause: Clause, operator: str) -> ClauseRow:
        """One clause."""
        found = self.verdicts.of(clause, prefix="" if operator else "interface.")
        said = found.said
        return ClauseRow(
            operator=operator,
            at=clause.at,
            en=clause.en,
            zh=clause.zh,
            certainty=clause.certainty,
            products=clause.products,
            encoding=next(
                name for name in ("constraints", "check", "interface", "example", "untestable") if getattr(clause, name)
            ),
            constraints=clause.constraints,
            check=clause.check or "",
            condition=clause.when_text or "",
            faults=clause.faults,
            interface=clause.interface or "",
            untestable=clause.untestable,
            contradicts=clause.contradicts,
            verdict=found.verdict,
            reason=found.reason,
            in_scope=self.verdicts.speakers is not None,
            held=found.held,
            broken=found.broken,
            passed=said.passed,
            failed=said.failed,
            waived=said.waived,
            otherwise=said.otherwise,
            skipped=dict(sorted(said.skipped.items())),
            evidence=tuple([*said.bad, *said.good][:_EVIDENCE]),
            findings=_sum({self.findings[member]: number} for member, number in said.findings.items()),
        )


def interface_rows(clauses: Sequence[Clause], operators: Sequence[ClauseRows]) -> tuple[ClauseRow, ...]:
    """The clauses of the interface over all operators in scope: met where each of them meets it or leaves it open."""
    rows = []
    for clause in clauses:
        each = [operator.row(clause, "") for operator in operators]
        merged = replace(
            each[0],
            held=sum(row.held for row in each),
            broken=sum(row.broken for row in each),
            passed=sum(row.passed for row in each),
            failed=sum(row.failed for row in each),
            waived=sum(row.waived for row in each),
            otherwise=sum(row.otherwise for row in each),
            skipped=_sum(row.skipped for row in each),
            evidence=tuple(name for row in each for name in row.evidence)[:_EVIDENCE],
            findings=_sum(row.findings for row in each),
        )
        verdicts = {row.verdict: row for row in each}
        for verdict in BY_WEIGHT:
            if verdict in verdicts:
                rows.append(replace(merged, verdict=verdict, reason=verdicts[verdict].reason))
                break
    return tuple(rows)


def with_specific(rows: Sequence[ClauseRow]) -> tuple[ClauseRow, ...]:
    """The rows, each with the findings that it is the most specific clause of.

    One finding contradicts every clause that its trials speak for. What it is about shows where the largest part of a
    clause's judged trials fails with it.
    """
    largest: dict[str, float] = {}
    for row in rows:
        for name, number in row.findings.items():
            largest[name] = max(largest.get(name, 0.0), number / row.judged)
    return tuple(
        replace(
            row,
            specific=tuple(name for name, number in row.findings.items() if number / row.judged >= largest[name]),
        )
        if row.findings
        else row
        for row in rows
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for entry in counts:
        for reason, number in entry.items():
            total[reason] = total.get(reason, 0) + number
    return dict(sorted(total.items()))
