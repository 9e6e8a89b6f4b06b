"""The signing edition: what two parties sign, on at most ten sheets of A4, and its PDF."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from rich.cells import cell_len

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Severity
from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.html import STYLE_ONLY, evidence_digest, read_template, report_number, templates
from aclnn_cts.reports.model.acceptance import Acceptance, EvidenceFile, OperatorPart, RunFacts
from aclnn_cts.reports.model.acceptance_rows import FindingCard, WaiverRow
from aclnn_cts.reports.sentences import chinese_message, outside_text, product_text, verdict_text
from aclnn_cts.reports.text import (
    VERDICTS,
    Language,
    bytes_text,
    capital,
    count_text,
    pair,
    percent_text,
    phrase,
    seconds_text,
)
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.scratch import scratch_folder

if TYPE_CHECKING:
    from aclnn_cts.reports.model.standards import RuleRow, StandardPart, Text

FINDINGS = 20
"""Findings that are listed at most, each whole; the others are counted."""
_OPERATORS, _WAIVERS, _RUNS, _STANDARDS = 100, 60, 8, 2
"""Lines that are listed at most, so that ten sheets hold them."""
_FINDING_COLUMNS, _WAIVER_COLUMNS = 12_000, 9_000
"""What the texts of all that are listed take at most, which a Chinese character counts twice in: two sheets each."""
_TABLE_COLUMNS = 3_000
"""What the table of a standard takes of the findings' room."""
_SHORTEST = 150
"""Columns that the shortest of them takes."""
_SUM = re.compile(r"\b[0-9a-f]{40,64}\b")
_ONE = re.compile(
    r"(?<![\d\u202f])1 ((?:different |generated |failed )?)"
    r"(call|case|combination|option|output|pair|shape|size)s\b(?! are)"
)
"""A plural of one: phrases have the plural alone."""
_SERIAL = "adapter.device_serial"
"""A fact that an adapter may give."""


def signing_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The page in UTF-8. It has no script, and asks nothing of any network."""

    def word(address: str, /, **values: object) -> str:
        return phrase(f"sign.{address}", language, **values)

    lines = [finding_lines(card, report, language) for card in report.findings[:FINDINGS]]
    tables = report.standards[:_STANDARDS]
    room = _FINDING_COLUMNS - _TABLE_COLUMNS * len(tables)
    findings = _fitting((f"{item.what}{item.when}{item.clause}" for item in lines), room)
    waivers = _fitting((_reason(row, language) for row in report.waivers[:_WAIVERS]), _WAIVER_COLUMNS)
    text = (
        templates()
        .get_template("signing.html")
        .render(
            language=language,
            w=word,
            p=lambda address: phrase(address, language),
            style=Markup(read_template("signing.css")),  # noqa: S704 - of this package
            policy=STYLE_ONLY,
            number=report_number(report),
            margins=Markup(_margins(report, language)),  # noqa: S704 - spelled as strings of CSS
            date=_completed(report),
            verdict=report.verdict.value,
            sentence=verdict_text(report, language),
            implementations=[_implementation(run, language) for run in report.runs[:_RUNS]],
            ends=report.ends,
            reasons=list(_reasons(report.ends, language)),
            clauses=[
                (name, number, percent_text(number, len(report.clauses)))
                for name in VERDICTS
                for number in (report.counted(name),)
            ],
            clause_total=len(report.clauses),
            percent=percent_text,
            operators=[_operator(report, part) for part in report.operators[:_OPERATORS]],
            interface=[sum(row.verdict == name and not row.operator for row in report.clauses) for name in VERDICTS],
            operators_left=max(len(report.operators) - _OPERATORS, 0),
            judged=_judged_share(report, language),
            standards=[_standard(part, language) for part in tables],
            standards_left=report.standards[_STANDARDS:],
            waivers=report.waivers[:waivers],
            waivers_left=report.waivers[waivers:],
            reason_of=partial(_reason, language=language),
            findings=lines[:findings],
            all_findings=report.findings,
            findings_left=_left(report.findings[findings:]),
            evidence=list(_evidence(report.evidence, language)),
            runs_left=max(len(report.runs) - _RUNS, 0),
            digest=evidence_digest(report.evidence),
        )
    )
    return printable_document(text).encode()


def _margins(report: Acceptance, language: Language) -> str:
    """What stands on every sheet beside the page's number: the report's number and its verdict."""
    verdict = phrase(f"run_verdict.{report.verdict.value}", language)
    texts = {
        "top-left": report_number(report),
        "top-right": f"{phrase('sign.verdict', language)}{phrase('mark.colon', language)}{verdict}",
    }
    return "".join(f"@{place}{{content:{_css_string(text)}}}" for place, text in texts.items())


def _css_string(text: str) -> str:
    return '"' + re.sub(r"[^\w .-]", lambda found: f"\\{ord(found[0]):x} ", text) + '"'


def _fitting(texts: Iterable[str], columns: int) -> int:
    """How many of the first ones fit together; one does, whatever its length."""
    sums = accumulate(max(cell_len(text), _SHORTEST) for text in texts)
    return sum(number == 0 or total <= columns for number, total in enumerate(sums))


def _judged_share(report: Acceptance, language: Language) -> str:
    """What was judged of what must be, as `run` prints it: the least of all operators and runs."""
    shares = [row.percent for run in report.runs for row in run.operators]
    least = min(shares, default=0)
    address = "judged_each" if len(shares) > 1 and least == 100 else "judged_least" if len(shares) > 1 else "judged_one"
    ends = report.ends
    return phrase(
        f"sign.{address}", language, share=least, judged=count_text(ends.judged), planned=count_text(ends.cases)
    )


def _standard(part: StandardPart, language: Language) -> tuple[StandardPart, list[tuple[RuleRow, str, str, str]]]:
    """A run by a vendor's standard: each rule with what it asks, what was done, and what is missing."""
    return part, [
        (row, _texts(row.asked, language), _texts(row.done, language), _texts(row.cut, language)) for row in part.rows
    ]


def _texts(found: Sequence[Text], language: Language) -> str:
    return phrase("mark.semi", language).join(_text(item, language) for item in found)


def _text(found: Text, language: Language) -> str:
    """A phrase with its values: numbers in groups, a limit as a size, and a reason in words."""
    key, values = found
    words = {
        name: bytes_text(value)
        if name == "limit"
        else phrase(f"skip.{value}", language)
        if name == "reason"
        else count_text(value)
        if isinstance(value, int)
        else value
        for name, value in values.items()
    }
    text = phrase(f"standard.{key}", language, **words)
    return _ONE.sub(r"1 \1\2", text) if language == "en" else text


def _reason(row: WaiverRow, language: Language) -> str:
    return (row.reason_zh if language == "zh" else None) or row.reason or ""


def _completed(report: Acceptance) -> str:
    """The day on which the last run ended; empty where one has not."""
    ends = [
        datetime.fromisoformat(run.manifest.started) + timedelta(seconds=run.seconds)
        for run in report.runs
        if run.seconds is not None and not run.interrupted
    ]
    return max(ends).date().isoformat() if len(ends) == len(report.runs) else ""


def _implementation(run: RunFacts, language: Language) -> dict[str, object]:
    """One run and what it was made on, with names of files and other sources and their hashes."""
    facts = {name: value for name, value, _ in run.environment}
    sums = [
        (_name_of_sum(name, facts, language), found[0])
        for name, value in facts.items()
        if name.startswith(("adapter.", "own_adapter.", "harness.sha256")) and (found := _SUM.search(value))
    ]
    return {
        "run": run,
        "product": product_text(run, language),
        "took": seconds_text(run.seconds),
        "profile": phrase(f"profile.{run.manifest.profile}", language) if run.manifest.profile else "—",
        "started": run.manifest.started.removesuffix("+00:00").replace("T", " "),
        "sums": sums,
        "serial": facts.get(_SERIAL, ""),
    }


def _name_of_sum(fact: str, facts: Mapping[str, str], language: Language) -> str:
    """What a hash in a run's environment is made of."""
    if pair(address := f"sum_of.{fact}") is not None:
        return phrase(address, language, file=Path(facts.get("own_adapter.file", "")).name)
    name = fact.partition(".")[2]
    if name.startswith("library "):
        return phrase("sign.sum_of_library", language, name=name.removeprefix("library "))
    return phrase("sign.sum_of_adapter", language, name=name)


def _reasons(ends: Counts, language: Language) -> Iterator[tuple[str, int]]:
    """Why trials were not judged: the three largest reasons, then the rest together."""
    found = [(phrase(f"skip.{name}", language), number) for name, number in ends.unjudged.items()]
    if ends.out_of_scope:
        names = outside_text(ends.outside, language)
        found.append((phrase("sign.outside", language, names=names), ends.out_of_scope))
    if ends.errors:
        found.append((phrase("sign.errors", language), ends.errors))
    found.sort(key=lambda entry: -entry[1])
    yield from found[:3]
    if rest := sum(number for _, number in found[3:]):
        yield phrase("sign.more_reasons", language), rest


def _operator(report: Acceptance, part: OperatorPart) -> tuple[OperatorPart, str, int, list[int]]:
    """An operator, its verdict (the worst of the runs), the least share judged, and its clauses by verdict."""
    rows = [row for run in report.runs for row in run.operators if row.operator == part.operator]
    verdicts = [row.found.verdict for row in rows]
    mine = [row.verdict for row in report.clauses if row.operator == part.operator]
    verdict = min(verdicts, key=list(type(report.verdict)).index).value if verdicts else "inconclusive"
    return part, verdict, min((row.percent for row in rows), default=0), [mine.count(name) for name in VERDICTS]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLines:
    """A finding in three paragraphs."""

    card: FindingCard
    what: str
    when: str
    clause: str


def finding_lines(card: FindingCard, report: Acceptance, language: Language) -> FindingLines:
    """What fails, when it does, and which clause says otherwise."""
    message = chinese_message(card) if language == "zh" else card.message
    colon, semi = phrase("mark.colon", language), phrase("mark.semi", language)
    name = card.operator.removeprefix("aclnn")
    return FindingLines(
        card=card,
        what=_one_line(f"{name}{colon}{phrase(f'kind.{card.kind}', language)}{semi}{message}"),
        when=capital(_one_line(_when(card, language))),
        clause=_one_line(_clause(card, report, language)),
    )


def _when(card: FindingCard, language: Language) -> str:
    """The condition that failures share; else the place, and how often."""
    comma = phrase("mark.comma", language)
    often = phrase("sign.in_trials", language, number=count_text(card.number), of=count_text(card.of))
    if card.shared is not None:
        return card.shared.zh if language == "zh" else card.shared.en
    place = comma.join(
        filter(
            None,
            (
                phrase("sign.constraint", language, name=f"`{card.constraint}`") if card.constraint else "",
                phrase("sign.output", language, name=f"`{card.output}`") if card.output else "",
                card.dtype,
                card.mode,
            ),
        )
    )
    return f"{place}{comma}{often}" if place else often


def _clause(card: FindingCard, report: Acceptance, language: Language) -> str:
    """The first clause that it contradicts, with its wording, and the number of further ones."""
    if not card.clauses:
        return phrase("sign.no_clause", language)
    operator, at = card.clauses[0]
    row = next((row for row in report.clauses if row.operator == operator and row.clause.at == at), None)
    wording = "" if row is None else row.clause.zh if language == "zh" else row.clause.en
    more = len(card.clauses) - 1
    tail = phrase("sign.more_clauses", language, number=more, all=more + 1) if more else ""
    head = f"{at}{phrase('mark.colon', language)}"
    tail = f"{phrase('mark.open', language)}{tail}{phrase('mark.close', language)}" if tail else ""
    return f"{head}{wording}{tail}"


def _left(cards: Sequence[FindingCard]) -> dict[str, int]:
    """How many findings are not listed, by severity."""
    return {
        "number": len(cards),
        **{name.value: sum(card.severity == name for card in cards) for name in Severity},
        "waived": sum(card.waived == card.number for card in cards),
    }


def _evidence(files: Sequence[EvidenceFile], language: Language) -> Iterator[tuple[str, str, str, str]]:
    """Run, file, size and hash: the three files of each run, and its other files together by kind."""
    for run in list(dict.fromkeys(file.run for file in files))[:_RUNS]:
        others: dict[str, list[EvidenceFile]] = {}
        for file in files:
            if file.run != run:
                continue
            if file.what in ("manifest", "summary", "records"):
                yield run, file.path, bytes_text(file.bytes), file.sha256
            elif file.sha256:
                others.setdefault(file.what, []).append(file)
        for what, found in others.items():
            words = "sign.file_of" if len(found) == 1 else "sign.files_of"
            name = phrase(words, language, number=len(found), what=phrase(f"file.{what}", language))
            yield run, name, bytes_text(sum(file.bytes for file in found)), evidence_digest(found)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 120
_ARGUMENTS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-pdf-header-footer",
)
_NODE = re.compile(rb"\(node\d{8}\)")
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:\d{14}([^)]*)\)")


def browser() -> str | None:
    """The program that prints pages; None where none is installed."""
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def pdf_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The signing edition on sheets of A4; the same runs and the same browser give the same bytes.

    Raises HarnessError where no browser is installed, or it prints nothing.
    """
    program = browser()
    if program is None:
        raise HarnessError(
            "--format pdf: needs Chromium or Chrome, which is not installed; install it, or write the signing edition "
            "as HTML (--format signing) and print that from a browser"
        )
    with scratch_folder(Path(tempfile.gettempdir())) as name:
        page, made = Path(name, "signing.html"), Path(name, "signing.pdf")
        page.write_bytes(signing_bytes(report, rows, language))
        # Chromium's own sandbox does not start for root; the page has no script and loads nothing.
        unboxed = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *_ARGUMENTS, *unboxed, f"--user-data-dir={name}/profile", f"--print-to-pdf={made}"]
        try:
            ended = subprocess.run(  # noqa: S603 - an installed browser, and a page of ours
                [*command, page.as_uri()], check=False, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"--format pdf: {program} printed nothing: {error}") from None
        if not made.is_file():
            last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise HarnessError(f"--format pdf: {program} printed nothing: {' '.join(last) or ended.returncode}")
        return _reproducible(made.read_bytes(), report)


def _reproducible(content: bytes, report: Acceptance) -> bytes:
    """The document with the moment of the last run in place of that of printing, and its nodes numbered in order.

    The browser numbers nodes as its processes come to make them.
    """
    moment = re.sub(r"\D", "", max(run.manifest.started for run in report.runs)[:19]).encode()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(_NODE.findall(content)))}
    content = _NODE.sub(lambda found: b"(node%08d)" % numbers[found[0]], content)
    return _DATES.sub(rb"/\1 (D:" + moment + rb"\2)", content)
