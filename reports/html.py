"""The acceptance report as one HTML page: no request to anywhere, both languages, prints on A4."""

from __future__ import annotations

import base64
import functools
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from aclnn_cts.core.clause_verdict import ClauseVerdict
from aclnn_cts.core.faults import Severity
from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.figures import precision_figure
from aclnn_cts.reports.heat import coverage_figure
from aclnn_cts.reports.matrix import kill_matrix_view, promise_matrix
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts
from aclnn_cts.reports.model.acceptance_rows import ClauseRow, CoverageMap, PrecisionRow
from aclnn_cts.reports.notes import because_text, note_markup, recorded, ruler_markup, ruler_source
from aclnn_cts.reports.numbers import bytes_text, count_text, number_text, seconds_text, share_text
from aclnn_cts.reports.said import chinese_message
from aclnn_cts.reports.sentences import insufficiencies, outside, product_text, remarks, verdict_sentence
from aclnn_cts.reports.spread import spread_rows, spread_total
from aclnn_cts.reports.text import LANGUAGES, Language, both, phrase, spans, words

__all__ = ["SECTIONS", "html_bytes", "render_html"]

SECTIONS = (
    "cover",
    "numbers",
    "environment",
    "traceability",
    "precision",
    "statuses",
    "coverage",
    "laws",
    "memory",
    "determinism",
    "findings",
    "waivers",
    "comparison",
    "credibility",
    "method",
    "evidence",
)

_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; "
    "form-action 'none'"
)
"""What the browser may do with the page: nothing from anywhere, and no script but ours."""

_DETERMINISTIC = "adapter.deterministic"

_FOLDER = Path(__file__).parent / "templates"


@functools.cache
def _templates() -> Environment:
    """The templates, compiled once."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=count_text,
        number=number_text,
        share=share_text,
        seconds=seconds_text,
        bytes=bytes_text,
        short=_short,
        parts=_parts,
        dotted=_dotted,
        moment=lambda text: text.removesuffix("+00:00").replace("T", " "),
        listed=_listed,
        last_part=lambda path: Path(path).name,
        sum_of_lengths=lambda pairs: sum(len(items) for _, items in pairs),
    )
    return environment


def render_html(report: Acceptance, *, language: Language = "en", sections: Sequence[str] = SECTIONS) -> str:
    """The page, or one of some of its `sections` alone; `language` is the one that it opens in."""
    style, script = (_read(name) for name in ("report.css", "report.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _templates()
        .get_template("report.html")
        .render(
            report=report,
            language=language,
            sections=sections,
            # Both come from this package, and neither holds a value of the report.
            style=Markup(style),  # noqa: S704 - as said
            script=Markup(script),  # noqa: S704 - as said
            policy=_POLICY.format(digest),
            t=both,
            mark={name: both(f"mark.{name}") for name in words("page")["mark"]},
            spans=spans,
            t_en=lambda address: phrase(address, "en"),
            t_zh=lambda address: phrase(address, "zh"),
            t_lang=lambda address: phrase(address, language),
            heat=_heat,
            chinese=chinese_message,
            ruler=ruler_markup,
            recorded=recorded,
            ruler_source=ruler_source,
            because=because_text,
            note=note_markup,
            product_of=lambda run: spans(*(product_text(run, name) for name in LANGUAGES)),
            by_ruler=lambda row: {ruler.ruler: ruler for ruler in row.rulers},
            operators=[part.operator for part in report.operators],
            documents=_documents(report),
            verdicts=_verdicts(report.clauses),
            severities=_severities(report),
            sentence=verdict_sentence(report),
            verdict=report.verdict.value,
            insufficiencies=insufficiencies(report),
            outside=outside,
            remarks=remarks(report),
            matrix=promise_matrix(report),
            spread=spread_total(report),
            spread_rows=spread_rows(report),
            figures=_figures(report) if "precision" in sections else {},
            coverage_figures=_maps(report) if "coverage" in sections else {},
            kill=kill_matrix_view(report.credibility.matrix),
            environment_rows=_environment(report),
            method=words("method"),
            life_cycle=[
                row for row in report.promises if row.promise == "memory" or row.promise.startswith("life-cycle/")
            ],
            declared=[(run, *_declared(run)) for run in report.runs],
            law_rows=_laws(report),
            rulers=_rulers(report.precision),
        )
    )


def html_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The page in UTF-8; it shows no single trials."""
    return printable_document(render_html(report, language=language)).encode()


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _short(name: str) -> str:
    """An operator's name without the prefix that all have."""
    return name.removeprefix("aclnn")


def _parts(name: str) -> Markup:
    """A name that a line may end in, before each of its words."""
    return Markup("<wbr>").join(re.findall(r"[A-Z]?[^A-Z]+|[A-Z]", name))


def _dotted(name: str) -> Markup:
    """A name that a line may end in, behind each of its dots."""
    return Markup(".<wbr>").join(name.split("."))


def _listed(value: object) -> str:
    """A value of a manifest as text."""
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _documents(report: Acceptance) -> list[tuple[str, list[ClauseRow]]]:
    """Clauses by operator (none: the interface), in the order of the documents, those in the runs' scope first."""
    found: dict[str, list[ClauseRow]] = {}
    for row in report.clauses:
        found.setdefault(row.operator, []).append(row)
    return sorted(found.items(), key=lambda entry: not entry[1][0].in_scope)


def _verdicts(rows: Sequence[ClauseRow]) -> dict[str, int]:
    names = (ClauseVerdict.MET, ClauseVerdict.CONTRADICTED, ClauseVerdict.UNTESTED, ClauseVerdict.OPEN)
    return {name: sum(row.verdict == name and row.in_scope for row in rows) for name in names}


def _severities(report: Acceptance) -> list[tuple[str, int, int]]:
    """Severity, findings, and those of them that are not waived."""
    return [
        (
            name,
            sum(card.severity == name for card in report.findings),
            sum(card.severity == name and card.waived < card.number for card in report.findings),
        )
        for name in Severity
    ]


def _figures(report: Acceptance) -> dict[str, Markup]:
    by_operator: dict[str, list[PrecisionRow]] = {}
    for row in report.precision:
        by_operator.setdefault(row.operator, []).append(row)
    return {
        operator: precision_figure(operator, rows, report.share_edges, report.magnitude_step)
        for operator, rows in by_operator.items()
    }


def _maps(report: Acceptance) -> dict[str, Markup]:
    by_operator: dict[str, list[CoverageMap]] = {}
    for entry in report.coverage:
        by_operator.setdefault(entry.operator, []).append(entry)
    return {operator: coverage_figure(operator, maps) for operator, maps in by_operator.items()}


def _environment(report: Acceptance) -> list[tuple[str, list[tuple[str | Markup, str]]]]:
    """Facts by name, each with value and source in every run; one column where all runs agree."""
    names = dict.fromkeys(name for run in report.runs for name, _, _ in run.environment)
    rows = []
    for name in names:
        cells: list[tuple[str | Markup, str]] = []
        for run in report.runs:
            value, how = next(((value, how) for key, value, how in run.environment if key == name), ("", "unknown"))
            cells.append((spans(value, run.environment_zh.get(name, value)), how))
        rows.append((name, cells))
    return rows


def _declared(run: RunFacts) -> tuple[str, str]:
    """What the implementation says of its determinism, and how that is known."""
    known = (("unknown" if not value else how, value) for name, value, how in run.environment if name == _DETERMINISTIC)
    how, value = next(known, ("unknown", ""))
    return ("" if how == "unknown" else value), how


def _laws(report: Acceptance) -> list[dict[str, Any]]:
    wording = {(operator, promise): (en, zh) for operator, promise, en, zh in report.laws}
    return [
        {"row": row, "wording": wording.get((row.operator, row.promise), (row.promise, row.promise))}
        for row in report.promises
        if row.promise.startswith("law/")
    ]


def _heat(number: int, most: int) -> int:
    """The shade of a cell, from 0 (never reached) to 4, by orders of magnitude below the largest."""
    if not number:
        return 0
    return max(1, 4 - int(math.log(most / number, 4)))


def _rulers(rows: Sequence[PrecisionRow]) -> Mapping[str, str]:
    """Sources by ruler, over all outputs."""
    return {ruler.ruler: ruler.source for row in rows for ruler in row.rulers if ruler.source}
