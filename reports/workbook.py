"""An Excel workbook: the four sheets that the ecosystem's tools use, and the traceability table."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import xlsxwriter

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance, TrialRow
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict
from aclnn_cts.reports.sentences import product_text, verdict_facts, verdict_text
from aclnn_cts.reports.text import VERDICTS, Language, phrase

SHEETS = ("summary", "failed cases", "precision failures", "statistics", "traceability")

_MOST_ROWS = 200_000
_LONGEST = 32_000
"""Characters of a cell: Excel's limit is 32,767."""

_PRECISION = frozenset({"value", "beyond-model", "special-value", "limit-value", "tolerance"})


def workbook_bytes(report: Acceptance, rows: Callable[[], Iterable[TrialRow]], language: Language) -> bytes:
    """The file; the same runs give the same bytes."""
    target = io.BytesIO()
    book = xlsxwriter.Workbook(
        target, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    )
    started = datetime.fromisoformat(report.runs[0].manifest.started).astimezone(timezone.utc).replace(tzinfo=None)
    book.set_properties({"title": phrase("page.title", language), "author": "aclnn-cts", "created": started})
    formats = {
        "head": book.add_format({"bold": True, "bg_color": "#e4e9f0"}),
        "wrap": book.add_format({"text_wrap": True}),
    }
    failed = [row for row in rows() if row.result == "failed"]
    cards = {card.id: card for card in report.findings}
    tables: tuple[tuple[Sequence[str], Iterable[Sequence[object]], Sequence[int]], ...] = (
        (_SUMMARY, _summary(report, language), (34, 110)),
        (_FAILED, _failed(failed, cards), (16, 28, 14, 22, 24, 30, 60, 26, 10, 24, 12, 60, 20, 9, 10, 60, 60)),
        (_VALUES, _precision(failed, cards), (16, 28, 14, 24, 12, 10, 24, 14, 60, 20, 9, 10, 60, 60)),
        (_STATISTICS, _statistics(report), (34, 24, 9, 9, 9, 9, 9, 9, 60)),
        (_TRACE, _trace(report), (34, 24, 50, 50, 14, 50, 10, 10, 14, 30, 10, 10, 30, 40, 10, 10, 10)),
    )
    for name, (columns, lines, widths) in zip(SHEETS, tables, strict=True):
        sheet = book.add_worksheet(name)
        for number, width in enumerate(widths):
            sheet.set_column(number, number, width)
        _write(sheet, columns, lines, formats)
    book.close()
    return target.getvalue()


def _write(sheet: Any, columns: Sequence[str], lines: Iterable[Sequence[object]], formats: dict[str, Any]) -> None:  # noqa: ANN401 - xlsxwriter has no types
    for number, name in enumerate(columns):
        sheet.write_string(0, number, name, formats["head"])
    last = 0
    for line, cells in enumerate(lines, start=1):
        if line > _MOST_ROWS:
            sheet.write_string(line, 0, f"only the first {_MOST_ROWS} lines stand here; the CSV form holds all")
            break
        last = line
        for number, cell in enumerate(cells):
            # A string is written as one, whatever it looks like: no formula, no link, no number.
            if isinstance(cell, (int, float)) and not isinstance(cell, bool):
                sheet.write_number(line, number, cell)
            else:
                sheet.write_string(line, number, printable_document(str(cell))[:_LONGEST], formats["wrap"])
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(last, 1), len(columns) - 1)


_SUMMARY = ("what", "value")


def _summary(report: Acceptance, language: Language) -> Iterable[Sequence[object]]:
    yield from verdict_facts(report, language)
    yield phrase("cover.verdict", language), verdict_text(report, language)
    for run in report.runs:
        yield phrase("cover.run", language), run.name
        yield phrase("cover.implementation", language), run.manifest.adapter
        if run.ran_on:
            yield phrase("cover.ran_on", language), (run.ran_on_zh if language == "zh" else "") or run.ran_on
        yield phrase("cover.product", language), product_text(run, language)
        yield phrase("cover.profile", language), run.manifest.profile
        yield phrase("cover.seed", language), str(run.manifest.seed)
        yield phrase("cover.started", language), run.manifest.started
        yield phrase("cover.harness", language), run.manifest.harness
        for name, value, known in run.environment:
            said = (
                f"{phrase('mark.open', language)}{phrase(f'known.{known}', language)}{phrase('mark.close', language)}"
            )
            yield name, f"{value}{said}"
    ends = report.ends
    for key, number in (
        ("numbers.planned", ends.cases),
        ("result.passed", ends.passed),
        ("result.failed", ends.unwaived),
        ("result.waived", ends.waived),
        ("result.error", ends.errors),
        ("result.skipped", ends.skipped),
        ("result.out of scope", ends.out_of_scope),
    ):
        yield phrase(key, language), number
    for words, counted in (
        *(((f"verdict.{verdict}",), report.counted(verdict)) for verdict in VERDICTS),
        ((f"verdict.{ClauseVerdict.CONTRADICTED}", "result.waived"), report.excused),
    ):
        parts = (phrase(word, language) for word in ("numbers.clauses", *words))
        yield phrase("mark.colon", language).join(parts), counted


_OF_FINDING = ("finding", "severity", "smallest case", "replay")
"""At the end of a failure's line: the card of the report that it is on, and that card's case and command."""


def _finding(row: TrialRow, cards: Mapping[str, FindingCard]) -> Sequence[object]:
    card = cards.get(row.finding)
    if card is None:
        return row.finding, "", "", ""
    case = ", ".join(f"{name} = {value}" for name, value in card.case)
    return card.id, card.severity, case, card.replay


_FAILED = (
    "run", "operator", "product", "check", "constraint", "kind of fault", "message", "waiver", "dtype", "mode",
    "share of the bound", "arguments", "trial", *_OF_FINDING,
)  # fmt: skip


def _failed(rows: Iterable[TrialRow], cards: Mapping[str, FindingCard]) -> Iterable[Sequence[object]]:
    for row in rows:
        yield (
            row.run, row.operator, row.product, row.check, row.constraint, row.why, row.message, row.waiver,
            row.dtype, row.mode, row.error_ratio, row.case, row.trial_id, *_finding(row, cards),
        )  # fmt: skip


_VALUES = (
    "run", "operator", "output", "kind of fault", "share of the bound", "dtype", "mode", "waiver", "message", "trial",
    *_OF_FINDING,
)  # fmt: skip


def _precision(rows: Iterable[TrialRow], cards: Mapping[str, FindingCard]) -> Iterable[Sequence[object]]:
    for row in rows:
        if row.why in _PRECISION:
            yield (
                row.run, row.operator, row.output, row.why, row.error_ratio, row.dtype, row.mode, row.waiver,
                row.message, row.trial_id, *_finding(row, cards),
            )  # fmt: skip


_STATISTICS = (
    "operator", "check", "planned", "passed", "failed", "waived", "errors", "skipped", "why skipped", "out of scope",
    "not offered",
)  # fmt: skip


def _statistics(report: Acceptance) -> Iterable[Sequence[object]]:
    for row in report.checks:
        ends = row.ends
        reasons, outside = (
            ", ".join(f"{name}: {number}" for name, number in counts.items())
            for counts in (ends.unjudged, ends.outside)
        )
        yield (
            row.operator, row.check, ends.cases, ends.passed, ends.unwaived, ends.waived, ends.errors, ends.skipped,
            reasons, ends.out_of_scope, outside,
        )  # fmt: skip


_TRACE = (
    "operator", "clause", "English", "中文", "certainty", "encoded by", "kept or tried", "broken", "verdict",
    "reason", "passed", "failed", "findings", "evidence", "failed otherwise", "set aside",
    "corners", "corners judged", "waived",
)  # fmt: skip


def _trace(report: Acceptance) -> Iterable[Sequence[object]]:
    for row in report.clauses:
        clause, said = row.clause, row.said
        by = ", ".join(clause.constraints) or clause.check or clause.interface or row.encoding
        reason = "; ".join(clause.untestable or ()) or row.reason
        yield (
            row.operator or "interface", clause.at, clause.en, clause.zh, clause.certainty,
            f"{row.encoding}: {by}"
            + (f" on {', '.join(clause.products)}" if clause.products else "")
            + (f" when {clause.when_text}" if clause.when_text else "")
            + (f", contradicted only by {', '.join(clause.faults)}" if clause.faults else ""),
            row.held, row.broken, row.verdict, reason, said.passed, said.failed - said.waived,
            ", ".join(row.findings), ", ".join(row.evidence), said.otherwise, said.aside,
            row.corners, row.corners - len(row.missed_corners), said.waived,
        )  # fmt: skip


COLUMNS: Mapping[str, Sequence[str]] = dict(zip(SHEETS, (_SUMMARY, _FAILED, _VALUES, _STATISTICS, _TRACE), strict=True))
"""The names of the columns, by sheet: other programs read them, so that they are the same in every language."""
