"""Error against magnitude: the elements that were counted so, and of how many trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aclnn_cts.reports.charts import power
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import PrecisionRow

__all__ = ["SpreadBin", "SpreadTotal", "spread_rows", "spread_total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadBin:
    """The elements of one class of magnitudes."""

    magnitude: str
    """The smallest one, as a power of two; empty for an expected zero."""
    elements: int
    largest: str
    """Upper end of the last bin of shares that holds an element."""
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
            found[row.operator].append((row, list(_bins(row, report.share_edges))))
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
