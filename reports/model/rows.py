"""Rows of the report's tables, from what was collected: clauses, constraints, checks, and what bits were promised.

A clause has its verdict and the findings that contradict it. Of determinism there is what a source promises of an
operator's bits, and what the trials that asked for them again came to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aclnn_cts.core.dtypes import INEXACT, component
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS
from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import precision_of
from aclnn_cts.reports.model.acceptance import OperatorPart
from aclnn_cts.reports.model.acceptance_rows import (
    CampaignCoverage,
    CheckRow,
    ClauseRow,
    ConstraintRow,
    CoverageMap,
    DeterminismPart,
    RepeatRow,
)
from aclnn_cts.reports.model.attribution import EvidenceCounts
from aclnn_cts.reports.model.clause_verdicts import BY_WEIGHT, ClauseVerdicts
from aclnn_cts.reports.model.collect import OperatorTally, coverage_order
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.store.counts import Counts, ObservationCount
from aclnn_cts.store.possible_cells import MAPS, PossibleCells
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import Summary
from aclnn_cts.trials.plan import CHECK_NAMES


def operator_part(spec: Spec, summary: Summary) -> OperatorPart:
    """One operator in scope."""
    return OperatorPart(
        operator=spec.operator,
        document_edition=spec.edition,
        document_sha256=spec.document_sha256,
        ends=summary.operator(spec.operator).total,
    )


def check_rows(tally: OperatorTally, ids: Mapping[int, str]) -> Iterator[CheckRow]:
    """The checks of an operator in the order of a run; `ids` are those of findings, by number."""
    order = {name: number for number, name in enumerate(CHECK_NAMES)}
    names = sorted(tally.checks, key=lambda name: (order.get(name, len(order)), name))
    for name in names:
        ends = tally.checks.get(name, Counts())
        yield CheckRow(
            operator=tally.spec.operator,
            check=name,
            ends=ends,
            findings=tuple(entry for number, entry in ids.items() if number in tally.findings.get(name, ())),
            worst=number_or_word(tally.worst.get(name, 0.0)),
            facts=dict(sorted(tally.facts.get(name, {}).items())),
        )


def constraint_rows(
    tally: OperatorTally, summary: Summary, products: frozenset[str], ids: Mapping[int, str]
) -> Iterator[ConstraintRow]:
    """The constraints of an operator in the order of its spec."""
    spec = tally.spec
    product = min(products & set(spec.products), default=spec.products[0])
    for item in spec.constraints:
        side = summary.operator(spec.operator).constraint(item.id)
        said = tally.speakers.by_constraint.get(item.id, EvidenceCounts())
        when, words = item.when_text, item.rule.describe(product)
        yield ConstraintRow(
            operator=spec.operator,
            id=item.id,
            rule=words.en + (f" (when {when})" if when is not None else ""),
            rule_zh=words.zh + (f"（当 {when} 时）" if when is not None else ""),
            strength=item.strength,
            group=item.group or "",
            promised=item.statuses or (ANY_ERROR, SUCCESS),
            clauses=spec.clauses_of(item.id) or item.clauses,
            held=side.held,
            broken=side.broken,
            ends=tally.broken.get(item.id, Counts()),
            returned=dict(tally.returned[item.id].most_common()) if item.id in tally.returned else {},
            not_enforced=tally.not_enforced[item.id],
            applies=any(map(item.applies_to, products)),
            findings=tuple(ids[number] for number in said.findings),
        )


def observation_rows(summary: Summary) -> list[tuple[str, ObservationCount]]:
    """What all operators did beside what their documents suggest, the most frequent first."""
    seen = [(name, item) for name, operator in summary.operators.items() for item in operator.observed.values()]
    return sorted(seen, key=lambda entry: -entry[1].number)


def campaign_rows(run: RunDirectory) -> Iterator[CampaignCoverage]:
    """What a campaign had covered when it ended; nothing of any other run."""
    operators = run.summary().operators if run.manifest.is_campaign else {}
    for name in sorted(operators):
        if sorts := operators[name].coverage:
            yield CampaignCoverage(
                run=run.path.resolve().name,
                operator=name,
                sorts={sort: (count.met, count.of, count.apart) for sort, count in sorts.items()},
            )


def regime_maps(operator: str, cells: Mapping[str, int]) -> Iterator[CoverageMap]:
    """The cells of a summary (`OperatorSummary.cells`) as maps of dtype and size regime, one a layout.

    Cells that no plan is to reach are said to be impossible.
    """
    counts = {tuple(cell.split(" ", 2)): number for cell, number in cells.items()}
    for kind, layout in (("regime", "contiguous"), ("regime_strided", "strided")):
        rows = sorted({dtype for _, dtype, of in counts if of == layout})
        columns = [item.value for item in Regime if any((item.value, dtype, layout) in counts for dtype in rows)]
        if rows:
            yield CoverageMap(
                operator=operator,
                kind=kind,
                rows=tuple(rows),
                columns=tuple(columns),
                counts=tuple(tuple(counts.get((column, row, layout), 0) for column in columns) for row in rows),
                possible=tuple(tuple((column, row, layout) in counts for column in columns) for row in rows),
            )


def coverage_maps(tally: OperatorTally) -> Iterator[CoverageMap]:
    """What judged valid calls of an operator covered, of what calls on the targets of the runs can."""
    if not tally.maps:
        return
    for kind in MAPS:
        counts = tally.maps.get(kind)
        if not counts:
            continue
        can = tally.possible.get(kind, PossibleCells())
        rows = sorted({*can.rows, *(row for row, _ in counts)})
        columns = coverage_order(kind, {*can.columns, *(column for _, column in counts)})
        yield CoverageMap(
            operator=tally.spec.operator,
            kind=kind,
            rows=tuple(rows),
            columns=tuple(columns),
            counts=tuple(tuple(counts[row, column] for column in columns) for row in rows),
            possible=tuple(
                tuple(
                    counts[row, column] > 0 or (row, column) in can.cells or (can.every and row in can.reachable)
                    for column in columns
                )
                for row in rows
            ),
        )


REPEATS = ("determinism", "life-cycle/cold-warm", "life-cycle/two-streams", "life-cycle/repeatable")
"""Checks that ask for one result again: the same call again, cold and warm, beside another, from one executor."""

_SECTION = "repeatable"


def determinism_part(tally: OperatorTally, checks: Sequence[CheckRow], targets: Iterable[Target]) -> DeterminismPart:
    """One operator; `checks` are its rows, `targets` those of the runs."""
    rows: Mapping[str, CheckRow] = {row.check: row for row in checks}
    spec = tally.spec
    precision = precision_of(spec)
    promised: dict[tuple[str, str, str, str], None] = {}
    held = 0
    for target in targets:
        models = [
            precision.model(operator=spec.operator, output=name, dtype=component(dtype), target=target)
            for name in spec.outputs
            for dtype in _dtypes(tally, name, target.product)
        ]
        for model in models:
            for section, basis, source in model.sources:
                if section == _SECTION:
                    promised.setdefault((model.repeatable, basis, source, model.repeatable_zh or source))
        held += any(
            model.repeatable == "always" or (model.repeatable == "deterministic" and target.deterministic is True)
            for model in models
        )
    return DeterminismPart(
        operator=spec.operator,
        promised=tuple(promised),
        held=held,
        rows=tuple(
            RepeatRow(
                operator=spec.operator,
                check=name,
                ends=rows[name].ends if name in rows else Counts(),
                findings=rows[name].findings if name in rows else (),
                compared=tally.compared[name],
                alike=tally.alike[name],
            )
            for name in REPEATS
        ),
    )


def _dtypes(tally: OperatorTally, name: str, product: str) -> list[str]:
    """The floating dtypes that a product's table gives an output."""
    dtypes = tally.spec.dtypes_of(tally.spec.parameter(name), product)
    return [dtype for dtype in dtypes if dtype in INEXACT]


_EVIDENCE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRows:
    """The rows of one operator's clauses."""

    verdicts: ClauseVerdicts
    findings: Mapping[int, str]
    """Ids of findings by number."""

    def rows(self) -> tuple[ClauseRow, ...]:
        """Every clause of the document, in its order."""
        return tuple(self.row(clause, self.verdicts.spec.operator) for clause in self.verdicts.spec.clauses)

    def row(self, clause: Clause, operator: str) -> ClauseRow:
        """One clause."""
        found = self.verdicts.of(clause, prefix="" if operator else "interface.")
        said = found.said
        return ClauseRow(
            operator=operator,
            clause=clause,
            encoding=next(
                name for name in ("constraints", "check", "interface", "example", "untestable") if getattr(clause, name)
            ),
            verdict=found.verdict,
            reason=found.reason,
            held=found.held,
            broken=found.broken,
            corners=found.corners,
            missed_corners=found.missed_corners,
            said=said,
            evidence=tuple([*said.bad, *said.good][:_EVIDENCE]),
            findings=_sum({self.findings[finding]: number} for finding, number in said.findings.items()),
        )


def interface_rows(clauses: Sequence[Clause], operators: Sequence[ClauseRows]) -> tuple[ClauseRow, ...]:
    """The clauses of the interface over all operators in scope: met where each of them meets it or leaves it open."""
    return tuple(_merged([operator.row(clause, "") for operator in operators]) for clause in clauses)


def _merged(rows: Sequence[ClauseRow]) -> ClauseRow:
    """One clause over several operators."""
    verdicts = {row.verdict: row for row in rows}
    decisive = next(verdicts[verdict] for verdict in BY_WEIGHT if verdict in verdicts)
    said = EvidenceCounts()
    for row in rows:
        said.include(row.said)
    return replace(
        decisive,
        held=sum(row.held for row in rows),
        broken=sum(row.broken for row in rows),
        said=said,
        evidence=tuple(name for row in rows for name in row.evidence)[:_EVIDENCE],
        findings=_sum(row.findings for row in rows),
    )


def with_specific(rows: Sequence[ClauseRow]) -> tuple[ClauseRow, ...]:
    """The rows, each with the findings that it is the most specific clause of.

    One finding contradicts every clause that its trials speak for. What it is about shows where the largest part of a
    clause's judged trials fails with it.
    """
    largest: dict[str, float] = {}
    for row in rows:
        for name, number in row.findings.items():
            largest[name] = max(largest.get(name, 0.0), number / row.said.judged)
    return tuple(
        replace(
            row,
            specific=tuple(name for name, number in row.findings.items() if number / row.said.judged >= largest[name]),
        )
        if row.findings
        else row
        for row in rows
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for entry in counts:
        total.update(entry)
    return dict(sorted(total.items()))
