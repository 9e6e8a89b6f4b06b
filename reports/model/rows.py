"""Rows of the report's tables, from what was collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from aclnn_cts.checks.registry import CHECKS
from aclnn_cts.clauses.counted import Said
from aclnn_cts.core.statuses import ANY_ERROR, SUCCESS
from aclnn_cts.core.target import Target
from aclnn_cts.generate.regimes import Regime
from aclnn_cts.reports.model.acceptance import OperatorPart
from aclnn_cts.reports.model.acceptance_rows import (
    CampaignCoverage,
    CheckRow,
    ConstraintRow,
    CoverageMap,
    ObservationRow,
)
from aclnn_cts.reports.model.collect import OperatorTally, coverage_order
from aclnn_cts.reports.model.possible import possible_cells
from aclnn_cts.reports.model.precision import plain
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.dedup import Member

__all__ = [
    "campaign_rows",
    "check_rows",
    "constraint_rows",
    "coverage_maps",
    "observation_rows",
    "operator_part",
    "regime_maps",
]

_MAPS = ("rank", "size", "contents", "layout")


def operator_part(spec: Spec, summary: Summary) -> OperatorPart:
    """One operator in scope."""
    return OperatorPart(
        operator=spec.operator,
        stem=spec.stem,
        document=spec.document,
        document_edition=spec.edition,
        document_sha256=spec.document_sha256,
        spec_sha256=spec.sha256,
        outputs=spec.outputs,
        ends=summary.operator(spec.operator).total,
    )


def check_rows(tally: OperatorTally, summary: Summary, ids: Mapping[Member, str]) -> Iterator[CheckRow]:
    """The checks of an operator in the order of a run; `ids` are those of findings."""
    order = {name: number for number, name in enumerate(CHECKS)}
    laws = summary.operator(tally.spec.operator).laws
    names = sorted({*tally.checks, *laws}, key=lambda name: (order.get(name, len(order)), name))
    mine = {member: entry for member, entry in ids.items() if member.stored.operator == tally.spec.operator}
    for name in names:
        ends = tally.checks.get(name, Counts())
        yield CheckRow(
            operator=tally.spec.operator,
            check=name,
            ends=ends,
            findings=tuple(dict.fromkeys(entry for member, entry in mine.items() if member.check == name)),
            withheld=laws[name].withheld if name in laws else 0,
            worst=plain(tally.worst.get(name, 0.0)),
            facts=dict(sorted(tally.facts.get(name, {}).items())),
        )


def constraint_rows(
    tally: OperatorTally, summary: Summary, products: frozenset[str], ids: Mapping[Member, str]
) -> Iterator[ConstraintRow]:
    """The constraints of an operator in the order of its spec."""
    spec = tally.spec
    product = min(products & set(spec.products), default=spec.products[0])
    for item in spec.constraints:
        side = summary.operator(spec.operator).constraint(item.id)
        said = tally.speakers.by_constraint.get(item.id, Said())
        when = item.when_text
        yield ConstraintRow(
            operator=spec.operator,
            id=item.id,
            rule=item.rule.describe(product) + (f" (when {when})" if when is not None else ""),
            rule_zh=item.rule.describe_zh(product) + (f"（当 {when} 时）" if when is not None else ""),
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
            findings=tuple(dict.fromkeys(ids[member] for member in said.findings)),
        )


def observation_rows(summary: Summary) -> Iterator[ObservationRow]:
    """What all operators did beside what their documents suggest."""
    seen = [(name, item) for name, operator in summary.operators.items() for item in operator.observed.values()]
    for name, item in sorted(seen, key=lambda entry: -entry[1].number):
        yield ObservationRow(
            operator=name, kind=item.kind, constraint=item.constraint, number=item.number, trial=item.trial
        )


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


def coverage_maps(tally: OperatorTally, targets: Iterable[Target]) -> Iterator[CoverageMap]:
    """What judged valid calls of an operator covered, of what calls on these targets can."""
    if not tally.maps:
        return
    possible = possible_cells(tally.spec, targets)
    for kind in _MAPS:
        counts = tally.maps.get(kind)
        if not counts:
            continue
        can = possible[kind]
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
