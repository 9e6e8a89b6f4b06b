"""The acceptance report as one HTML page: no request to anywhere, both languages, prints on A4."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from aclnn_cts.core.faults import Severity
from aclnn_cts.core.outcome import status_name
from aclnn_cts.core.printable import number_text, printable_document
from aclnn_cts.reports.charts import (
    LEAST,
    anchors,
    check_matrix,
    families,
    history,
    ratio_charts,
    shade,
    spread_rows,
    spread_total,
    start_rows,
    unremarkable_clauses,
)
from aclnn_cts.reports.model.acceptance import Acceptance, EvidenceFile, RunFacts
from aclnn_cts.reports.model.acceptance_rows import ClauseRow
from aclnn_cts.reports.model.precision import PrecisionRow
from aclnn_cts.reports.sentences import (
    chinese_message,
    note_markup,
    outside_markup,
    product_text,
    recorded_markup,
    remark_markup,
    tolerance_markup,
    verdict_sentence,
)
from aclnn_cts.reports.text import (
    LANGUAGES,
    VERDICTS,
    Language,
    bytes_text,
    capital,
    code_marked,
    count_text,
    error_ratio_text,
    headroom_text,
    in_both_languages,
    phrase,
    seconds_text,
    short_count_text,
    spans,
    words,
)

SECTIONS = (
    "cover",
    "numbers",
    "environment",
    "traceability",
    "precision",
    "statuses",
    "coverage",
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

STYLE_ONLY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The same for a page without a script."""

_FEW = 12
"""Operators whose parts are all in the page as they are; of more, each part is packed until it is opened."""

_DETERMINISTIC = "adapter.deterministic"

_FOLDER = Path(__file__).parent / "templates"


@functools.cache
def templates() -> Environment:
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
        error_ratio=error_ratio_text,
        headroom=headroom_text,
        seconds=seconds_text,
        bytes=bytes_text,
        short=_short,
        status_name=status_name,
        parts=_parts,
        dotted=_dotted,
        moment=lambda text: text.removesuffix("+00:00").replace("T", " "),
        listed=_listed,
        capital=capital,
        short_count=short_count_text,
        last_part=lambda path: Path(path).name,
        code=lambda text: code_marked(escape(text)),
        sum_of_lengths=lambda pairs: sum(len(items) for _, items in pairs),
    )
    return environment


def render_html(report: Acceptance, *, language: Language = "en", sections: Sequence[str] = SECTIONS) -> str:
    """The page, or one of some of its `sections` alone; `language` is the one that it opens in."""
    style, script = (read_template(name) for name in ("report.css", "report.js"))
    few, rows = len(report.operators) <= _FEW, start_rows(report)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        templates()
        .get_template("report.html")
        .render(
            report=report,
            language=language,
            sections=sections,
            # Both come from this package, and neither holds a value of the report.
            style=Markup(style),  # noqa: S704 - as said
            script=Markup(script),  # noqa: S704 - as said
            policy=_POLICY.format(digest),
            t=in_both_languages,
            mark={name: in_both_languages(f"mark.{name}") for name in words("page")["mark"]},
            spans=spans,
            t_en=lambda address: phrase(address, "en"),
            t_zh=lambda address: phrase(address, "zh"),
            t_lang=lambda address: phrase(address, language),
            heat=shade,
            least=LEAST,
            chinese=chinese_message,
            tolerance=tolerance_markup,
            recorded=recorded_markup,
            note=note_markup,
            product_of=lambda run: spans(*(product_text(run, name) for name in LANGUAGES)),
            operators=[part.operator for part in report.operators],
            documents=_documents(report),
            verdicts=_verdicts(report.clauses),
            severities=_severities(report),
            sentence=verdict_sentence(report),
            verdict=report.verdict.value,
            outside=outside_markup,
            remarks=remark_markup(report),
            matrix=check_matrix(report),
            spread=spread_total(report),
            spread_rows=spread_rows(report),
            ratios=ratio_charts(report) if "precision" in sections else {},
            few=few,
            folded=(lambda content: content) if few else _packed,
            history=history(report),
            start_rows=rows,
            families=families(rows),
            operator_verdicts=list(dict.fromkeys(row.part.found.verdict.value for row in rows)),
            unremarkable=unremarkable_clauses,
            clause_note=_clause_note,
            anchors=anchors(report),
            number=report_number(report),
            kill=report.credibility.power,
            environment_rows=_environment(report),
            method=words("method"),
            life_cycle=[row for row in report.checks if row.check == "memory" or row.check.startswith("life-cycle/")],
            declared=[(run, *_declared(run)) for run in report.runs],
            tolerances=_tolerances(report.precision),
        )
    )


def html_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The page in UTF-8; it shows no single trials."""
    return printable_document(render_html(report, language=language)).encode()


def _packed(content: str) -> Markup:
    """A part of the page, compressed; its script unpacks it when the part is opened."""
    packed = base64.b64encode(gzip.compress(content.encode(), 9, mtime=0)).decode()
    return Markup('<template class="packed">{}</template>').format(packed)


def _clause_note(rows: Sequence[ClauseRow]) -> Markup:
    """How many clauses have each verdict."""
    counts = ((name, sum(row.verdict == name for row in rows)) for name in VERDICTS)
    texts = [Markup("{} {}").format(number, in_both_languages(f"verdict.{name}")) for name, number in counts if number]
    return in_both_languages("mark.list").join(texts)


def read_template(name: str) -> str:
    """A file of the templates' folder as it is."""
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
    """Clauses by operator (none: the interface), in the order of the documents."""
    found: dict[str, list[ClauseRow]] = {}
    for row in report.clauses:
        found.setdefault(row.operator, []).append(row)
    return list(found.items())


def _verdicts(rows: Sequence[ClauseRow]) -> dict[str, int]:
    return {name: sum(row.verdict == name for row in rows) for name in VERDICTS}


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


def _tolerances(rows: Sequence[PrecisionRow]) -> Mapping[str, str]:
    """Sources by tolerance, over all outputs."""
    return {name: found.source for row in rows for name, found in row.tolerances.items() if found.source}


def evidence_digest(files: Iterable[EvidenceFile]) -> str:
    """One SHA-256 over the files: of a line for each, sorted, as `sha256sum` prints them."""
    lines = sorted(f"{file.sha256}  {file.run}/{file.path}\n" for file in files if file.sha256)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def report_number(report: Acceptance) -> str:
    """A number that the evidence alone makes: `CTS-20261123-1A2B3C4D`, by the day that the runs began."""
    day = max(run.manifest.started[:10] for run in report.runs).replace("-", "")
    return f"CTS-{day}-{evidence_digest(report.evidence)[:8].upper()}"
