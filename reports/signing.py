"""The signing edition: what two parties sign, on at most ten sheets of A4, and its PDF."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from markupsafe import Markup
from rich.cells import cell_len, set_cell_size

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.faults import Severity
from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.html import STYLE_ONLY, evidence_digest, read_template, report_number, templates
from aclnn_cts.reports.model.acceptance import Acceptance, EvidenceFile, OperatorPart, RunFacts
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.reports.sentences import chinese_message, outside_text, product_text, verdict_text
from aclnn_cts.reports.text import (
    VERDICTS,
    Language,
    bytes_text,
    capital,
    count_text,
    percent_text,
    phrase,
    seconds_text,
)
from aclnn_cts.store.counts import Counts

FINDINGS = 20
"""Findings that are listed; the others are counted."""
_OPERATORS, _WAIVERS, _RUNS = 100, 60, 8
"""Lines that are listed at most, so that ten sheets hold them."""
_LINE = 104
"""Columns of a line of a finding; a Chinese character takes two."""
_BADGES = 16
"""Of them, what its number and its badges take of the first line."""
_REASON = 150
_WORD = 16
"""Columns of a word that is left out rather than cut."""
_SUM = re.compile(r"\b[0-9a-f]{40,64}\b")
_SERIAL = "adapter.device_serial"
"""A fact that an adapter may give."""


def signing_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The page in UTF-8. It has no script, and asks nothing of any network."""

    def word(address: str, /, **values: object) -> str:
        return phrase(f"sign.{address}", language, **values)

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
            date=_completed(report),
            verdict=report.verdict.value,
            sentence=verdict_text(report, language),
            implementations=[_implementation(run, language) for run in report.runs[:_RUNS]],
            ends=report.ends,
            reasons=list(_reasons(report.ends, language)),
            clauses=[
                (name, report.counted(name), percent_text(report.counted(name), _in_scope(report))) for name in VERDICTS
            ],
            in_scope=_in_scope(report),
            percent=percent_text,
            operators=[_operator(report, part) for part in report.operators[:_OPERATORS]],
            interface=[sum(row.verdict == name and not row.operator for row in report.clauses) for name in VERDICTS],
            operators_left=max(len(report.operators) - _OPERATORS, 0),
            waivers=report.waivers[:_WAIVERS],
            waivers_left=report.waivers[_WAIVERS:],
            reason_of=lambda row: _cut((row.reason_zh if language == "zh" else None) or row.reason, _REASON),
            findings=[finding_lines(card, report, language) for card in report.findings[:FINDINGS]],
            all_findings=report.findings,
            findings_left=_left(report.findings[FINDINGS:]),
            evidence=list(_evidence(report.evidence, language)),
            runs_left=max(len(report.runs) - _RUNS, 0),
            digest=evidence_digest(report.evidence),
        )
    )
    return printable_document(text).encode()


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
        (name.partition(".")[2].removeprefix("library "), found[0])
        for name, value in facts.items()
        if name.startswith(("adapter.", "own_adapter.")) and (found := _SUM.search(value))
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


def _reasons(ends: Counts, language: Language) -> Iterator[tuple[str, int]]:
    """Why trials were not judged: the three largest reasons, then the rest together."""
    found = [(phrase(f"skip.{name}", language), number) for name, number in ends.reasons.items()]
    if ends.out_of_scope:
        names = outside_text(ends.outside, language)
        found.append((phrase("sign.outside", language, names=names), ends.out_of_scope))
    if ends.errors:
        found.append((phrase("sign.errors", language), ends.errors))
    found.sort(key=lambda entry: -entry[1])
    yield from found[:3]
    if rest := sum(number for _, number in found[3:]):
        yield phrase("sign.more_reasons", language), rest


def _in_scope(report: Acceptance) -> int:
    return sum(row.in_scope for row in report.clauses)


def _operator(report: Acceptance, part: OperatorPart) -> tuple[OperatorPart, str, list[int]]:
    """An operator, its verdict (the worst of the runs), and its clauses by verdict."""
    verdicts = [row.found.verdict for run in report.runs for row in run.operators if row.operator == part.operator]
    mine = [row.verdict for row in report.clauses if row.operator == part.operator]
    verdict = min(verdicts, key=list(type(report.verdict)).index).value if verdicts else "inconclusive"
    return part, verdict, [mine.count(name) for name in VERDICTS]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLines:
    """A finding in three lines."""

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
        what=_cut(f"{name}{colon}{phrase(f'kind.{card.kind}', language)}{semi}{message}", _LINE - _BADGES),
        when=capital(_cut(_when(card, language), _LINE)),
        clause=_cut(_clause(card, report, language), _LINE),
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
    return f"{head}{_cut(wording, _LINE - cell_len(head) - cell_len(tail))}{tail}"


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


def _cut(text: str | None, longest: int) -> str:
    """The text within so many columns, cut between words where the last is short; code that is cut is closed."""
    shown = " ".join((text or "").split())
    if cell_len(shown) <= longest:
        return shown
    cut = set_cell_size(shown, longest - 2)
    head, _, last = cut.rpartition(" ")
    cut = (head if head and cell_len(last) <= _WORD else cut).rstrip(" ,;:，；：")
    return f"{cut}`…" if cut.count("`") % 2 else f"{cut}…"


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
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-pdf-", ignore_cleanup_errors=True) as name:
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
        return _undated(made.read_bytes(), report)


def _undated(content: bytes, report: Acceptance) -> bytes:
    """The document with the moment of the last run in place of the moment of printing."""
    moment = re.sub(r"\D", "", max(run.manifest.started for run in report.runs)[:19]).encode()
    return _DATES.sub(rb"/\1 (D:" + moment + rb"\2)", content)
