"""A Markdown summary for a merge request: the verdict, the numbers, and the findings that are not waived."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aclnn_cts.core.clause_verdict import ClauseVerdict
from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.said import chinese_message
from aclnn_cts.reports.sentences import products_text, ran_on_text, remark_texts, verdict_text
from aclnn_cts.reports.text import Language, capital, count_text, phrase

_FINDINGS = 20
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&@]|(?<!\w)_|_(?!\w)|^(?:#+|[-+]|\d+(?=[.)]))(?=\s)")
"""What GitHub, GitLab and Gitee would take for markup.

A line's first sign counts only where it would begin a list or a heading, an underscore only at a word's edge.
"""


def markdown_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The document in one language."""
    return printable_document("\n".join(_lines(report, language)) + "\n").encode()


def plain_text(text: str) -> str:
    """Text from outside in Markdown: nothing in it is markup, a link or a mention."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))


def cell(text: str, longest: int = 160) -> str:
    """The same, short enough for a cell of a table."""
    shown = " ".join(text.split())
    return plain_text(shown if len(shown) <= longest else shown[: longest - 1] + "…")


def _times(card: FindingCard) -> str:
    """Failures, of judged trials; of campaigns, which keep few of them, the failures that they counted."""
    if len(card.campaigns) == len(card.runs):
        return count_text(sum(finding.failures for _, finding in card.campaigns))
    return f"{count_text(card.number)} / {count_text(card.of)}"


def _observations(report: Acceptance, language: Language) -> Iterator[str]:
    """What breaks no rule and is not what the documents suggest."""
    if not report.observations:
        return

    def word(address: str) -> str:
        return phrase(address, language)

    yield f"### {word('observations.title')}"
    yield ""
    heads = ("findings.operator", "findings.what", "statuses.constraint", "observations.trials")
    yield "| " + " | ".join(map(word, heads)) + " |"
    yield "| --- | --- | --- | ---: |"
    for row in report.observations[:_FINDINGS]:
        yield (
            f"| {plain_text(row.operator)} | {plain_text(word(f'fact.{row.kind}'))} | {plain_text(row.constraint)} | "
            f"{count_text(row.number)} |"
        )
    if len(report.observations) > _FINDINGS:
        yield ""
        yield f"… +{len(report.observations) - _FINDINGS}"
    yield ""


def _lines(report: Acceptance, language: Language) -> Iterator[str]:
    def word(address: str) -> str:
        return phrase(address, language)

    yield f"## aclnn-cts: {word('run_verdict.' + report.verdict.value)}"
    yield ""
    yield plain_text(verdict_text(report, language))
    for text in remark_texts(report, language):
        yield ""
        yield f"> {plain_text(text)}"
    yield ""
    adapters = ", ".join(dict.fromkeys(f"`{run.manifest.adapter.replace('`', '')}`" for run in report.runs))
    yield (
        f"{word('cover.implementation')}{word('mark.colon')}{adapters} · "
        f"{word('cover.product')}{word('mark.colon')}{plain_text(products_text(report, language))}"
    )
    if told := ran_on_text(report, language):
        yield ""
        yield f"{word('cover.ran_on')}{word('mark.colon')}{plain_text(told)}"
    yield ""
    order = (ClauseVerdict.MET, ClauseVerdict.CONTRADICTED, ClauseVerdict.UNTESTED, ClauseVerdict.OPEN)
    yield f"| {word('numbers.clauses')} | " + " | ".join(capital(word(f"verdict.{name}")) for name in order) + " |"
    yield "| --- | " + " | ".join("---:" for _ in order) + " |"
    yield (
        f"| {count_text(sum(report.counted(name) for name in order))} | "
        + " | ".join(count_text(report.counted(name)) for name in order)
        + " |"
    )
    yield ""
    heads = (
        "numbers.planned",
        "result.passed",
        "result.failed",
        "result.waived",
        "result.error",
        "result.skipped",
        "result.out of scope",
    )
    yield f"| {word('findings.operator')} | " + " | ".join(capital(word(head)) for head in heads) + " |"
    yield "| --- | " + " | ".join("---:" for _ in heads) + " |"
    for name, ends in (
        *((part.operator, part.ends) for part in report.operators),
        (word("numbers.total"), report.ends),
    ):
        numbers = (ends.cases, ends.passed, ends.failed, ends.waived, ends.errors, ends.skipped, ends.out_of_scope)
        yield f"| {plain_text(name)} | " + " | ".join(map(count_text, numbers)) + " |"
    yield ""
    yield from _observations(report, language)
    unwaived = report.unwaived_findings
    counts = phrase("numbers.findings_of", language, all=len(report.findings), unwaived=len(unwaived))
    yield f"### {word('section.findings')}{word('mark.colon')}{counts}"
    yield ""
    if not unwaived:
        return
    columns = (
        "findings.severity",
        "findings.operator",
        "numbers.check",
        "precision.dtype",
        "precision.mode",
        "findings.what",
        "cover.trials",
        "findings.clause",
    )
    yield "|  | " + " | ".join(map(word, columns)) + " |"
    yield "| --- | " + " | ".join("---" for _ in columns) + " |"
    for card in unwaived[:_FINDINGS]:
        clauses = ", ".join(at for _, at in card.clauses[:3])
        said = chinese_message(card) if language == "zh" else card.message
        shared = () if card.shared is None else (card.shared.zh if language == "zh" else card.shared.en,)
        what = f"{word(f'kind.{card.kind}')}{word('mark.colon')}{word('mark.semi').join((*shared, said))}"
        yield (
            f"| {card.id} | {word('severity.' + card.severity)} | {plain_text(card.operator)} | "
            f"{plain_text(card.check)} | {plain_text(card.dtype) or '—'} | {plain_text(card.mode) or '—'} | "
            f"{cell(what)} | {_times(card)} | {cell(clauses)} |"
        )
    if len(unwaived) > _FINDINGS:
        yield ""
        yield f"… +{len(unwaived) - _FINDINGS}"
