"""Tables and pictures of the page: operators by family, operators by check, error ratios, history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from aclnn_cts.authoring.catalogue import family_of
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts, VerdictRow
from aclnn_cts.reports.model.acceptance_rows import CheckRow, ClauseRow
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict
from aclnn_cts.reports.model.precision import PrecisionRow
from aclnn_cts.reports.text import VERDICTS, count_text, in_both_languages

LEAST = 30
"""Values of a row at least: fewer show no distribution."""
_STEP = 4
"""Binades of a column."""
_SHADES = 4
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def power(exponent: int, base: int = 2) -> str:
    """A power as text: `2\u207b\u2074`; 1 where the exponent is 0."""
    return "1" if exponent == 0 else f"{base}{str(exponent).translate(_SUPERSCRIPTS)}"


def shade(number: int, most: int) -> int:
    """The shade of a cell, from 0 (nothing) to 4, by powers of four below the largest."""
    return max(1, _SHADES - int(math.log(most / number, 4))) if number else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioChart:
    """Error by bound of one operator's outputs: how many elements lie in each range."""

    heads: tuple[str, ...]
    rows: tuple[tuple[PrecisionRow, tuple[tuple[int, int, bool], ...]], ...]
    """An output in one dtype and mode, with number, shade and whether the range is beyond the bound."""
    left_out: int
    """Rows with fewer than `LEAST` values."""
    note: Markup


def ratio_charts(report: Acceptance) -> dict[str, RatioChart]:
    """By operator; those whose values were judged."""
    found: dict[str, list[PrecisionRow]] = {}
    for row in report.precision:
        found.setdefault(row.operator, []).append(row)
    ranges = list(_ranges(report.error_ratio_edges))
    return {name: _chart(rows, ranges) for name, rows in found.items()}


def _ranges(edges: Sequence[int]) -> Iterator[tuple[str, range, bool]]:
    """Label, bins and whether they are beyond the bound; bin n ends at 2^edges[n], the last has no end."""
    yield f"\u2264 {power(edges[0])}", range(1), False
    ends = list(range(edges[0] + _STEP, edges[-1] + 1, _STEP))
    first = 1
    for end in ends:
        last = list(edges).index(end) + 1
        yield f"\u2264 {power(end)}", range(first, last), end > 0
        first = last
    yield f"> {power(ends[-1])}", range(first, len(edges) + 1), True


def _chart(rows: Sequence[PrecisionRow], ranges: Sequence[tuple[str, range, bool]]) -> RatioChart:
    shown = [row for row in rows if sum(row.histogram) >= LEAST]
    counts = [[sum(row.histogram[place] for place in bins) for _, bins, _ in ranges] for row in shown]
    most = max((number for line in counts for number in line), default=1)
    beyond = sum(row.beyond for row in rows)
    return RatioChart(
        heads=tuple(label for label, _, _ in ranges),
        rows=tuple(
            (row, tuple((number, shade(number, most), over) for number, (_, _, over) in zip(line, ranges, strict=True)))
            for row, line in zip(shown, counts, strict=True)
        ),
        left_out=len(rows) - len(shown),
        note=in_both_languages(
            "precision.counted", elements=count_text(sum(row.elements for row in rows)), beyond=count_text(beyond)
        ),
    )


def history(report: Acceptance) -> list[tuple[RunFacts, list[tuple[str, int, str]]]]:
    """The runs by their beginning, each with its planned trials by their end and that part in percent; of several."""
    if len(report.runs) < 2:
        return []
    made = []
    for run in sorted(report.runs, key=lambda run: run.manifest.started):
        ends = run.ends
        parts = (
            ("passed", ends.passed),
            ("failed", ends.unwaived),
            ("waived", ends.waived),
            ("left", ends.cases - ends.passed - ends.failed),
        )
        made.append((run, [(name, number, f"{100 * number / max(ends.cases, 1):.2f}") for name, number in parts]))
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadBin:
    """The elements of one class of magnitudes."""

    magnitude: str
    """The smallest one, as a power of two; empty for an expected zero."""
    elements: int
    largest: str
    """Upper end of the last bin of error ratios that holds an element."""
    beyond: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadTotal:
    """What the counts by magnitude were made of."""

    elements: int
    all: int
    """Elements of every trial, those that were not counted so among them."""
    passed: int
    failed: int


def spread_total(report: Acceptance) -> SpreadTotal:
    """Over all outputs."""
    return SpreadTotal(
        elements=sum(sum(entry.counts) for row in report.precision for entry in row.spread),
        all=sum(row.elements for row in report.precision),
        passed=sum(row.spread_trials[0] for row in report.precision),
        failed=sum(row.spread_trials[1] for row in report.precision),
    )


def spread_rows(report: Acceptance) -> dict[str, list[tuple[PrecisionRow, list[SpreadBin]]]]:
    """By operator, each output that was counted so with its classes."""
    found: dict[str, list[tuple[PrecisionRow, list[SpreadBin]]]] = {part.operator: [] for part in report.operators}
    for row in report.precision:
        if row.spread:
            found[row.operator].append((row, list(_bins(row, report.error_ratio_edges))))
    return found


def _bins(row: PrecisionRow, edges: Sequence[int]) -> list[SpreadBin]:
    within = list(edges).index(0) + 1
    made = []
    for entry in row.spread:
        last = max(place for place, count in enumerate(entry.counts) if count)
        made.append(
            SpreadBin(
                magnitude="" if entry.exponent is None else power(entry.exponent),
                elements=sum(entry.counts),
                largest=power(edges[last]) if last < len(edges) else f"> {power(edges[-1])}",
                beyond=sum(entry.counts[within:]),
            )
        )
    return made


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


def unremarkable_clauses(rows: Sequence[ClauseRow]) -> frozenset[str]:
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


def check_matrix(report: Acceptance) -> list[tuple[str, list[CheckRow | None]]]:
    """By check, its row in each operator; None where the operator has none."""
    rows = {(row.operator, row.check): row for row in report.checks}
    return [
        (check, [rows.get((part.operator, check)) for part in report.operators])
        for check in dict.fromkeys(row.check for row in report.checks)
    ]
