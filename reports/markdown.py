"""A Markdown summary for a merge request: the verdict, the numbers, and the findings that are not waived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_findings import FindingCard
from aclnn_cts.reports.said import chinese_message
from aclnn_cts.reports.sentences import products_text, ran_on_text, remark_texts, verdict_text
from aclnn_cts.reports.text import VERDICTS, Language, capital, count_text, phrase

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


def table(heads: Iterable[str], rule: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table; `rule` aligns its columns."""
    for line in (heads, rule, *rows):
        yield f"| {' | '.join(line)} |"


def _more(number: int) -> list[str]:
    """That so many lines of a table are left out."""
    return ["", f"… +{number}"] if number > 0 else []


def _lines(report: Acceptance, language: Language) -> Iterator[str]:
    def word(address: str) -> str:
        return phrase(address, language)

    adapters = ", ".join(dict.fromkeys(f"`{run.manifest.adapter.replace('`', '')}`" for run in report.runs))
    colon = word("mark.colon")
    yield from (f"## aclnn-cts: {word('run_verdict.' + report.verdict.value)}", "")
    yield plain_text(verdict_text(report, language))
    for text in remark_texts(report, language):
        yield from ("", f"> {plain_text(text)}")
    yield ""
    yield (
        f"{word('cover.implementation')}{colon}{adapters} · "
        f"{word('cover.product')}{colon}{plain_text(products_text(report, language))}"
    )
    if told := ran_on_text(report, language):
        yield from ("", f"{word('cover.ran_on')}{colon}{plain_text(told)}")
    yield ""
    numbers = [report.counted(name) for name in VERDICTS]
    yield from table(
        [word("numbers.clauses"), *(capital(word(f"verdict.{name}")) for name in VERDICTS)],
        ["---", *("---:" for _ in VERDICTS)],
        [map(count_text, (sum(numbers), *numbers))],
    )
    yield ""
    yield from _planned_and_run(report, word)
    yield ""
    yield from _observations(report, word)
    unwaived = report.unwaived_findings
    counts = phrase("numbers.findings_of", language, all=len(report.findings), unwaived=len(unwaived))
    yield from (f"### {word('section.findings')}{colon}{counts}", "")
    if unwaived:
        yield from table(
            ["", *map(word, _FINDING_HEADS)],
            ["---" for _ in ("", *_FINDING_HEADS)],
            [_finding(card, word, language) for card in unwaived[:_FINDINGS]],
        )
        yield from _more(len(unwaived) - _FINDINGS)


_ENDS = (
    "numbers.planned", "result.passed", "result.failed", "result.waived", "result.error", "result.skipped",
    "result.out of scope",
)  # fmt: skip


def _planned_and_run(report: Acceptance, word: Callable[[str], str]) -> Iterator[str]:
    parts = [*((part.operator, part.ends) for part in report.operators), (word("numbers.total"), report.ends)]
    yield from table(
        [word("findings.operator"), *(capital(word(head)) for head in _ENDS)],
        ["---", *("---:" for _ in _ENDS)],
        [
            (plain_text(name), *map(count_text, (ends.cases, ends.passed, ends.failed, ends.waived, ends.errors,
                                                 ends.skipped, ends.out_of_scope)))
            for name, ends in parts
        ],
    )  # fmt: skip


def _observations(report: Acceptance, word: Callable[[str], str]) -> Iterator[str]:
    """What breaks no rule and is not what the documents suggest."""
    if not report.observations:
        return
    yield from (f"### {word('observations.title')}", "")
    yield from table(
        map(word, ("findings.operator", "findings.what", "statuses.constraint", "observations.trials")),
        ("---", "---", "---", "---:"),
        [
            (*map(plain_text, (operator, word(f"fact.{row.kind}"), row.constraint)), count_text(row.number))
            for operator, row in report.observations[:_FINDINGS]
        ],
    )
    yield from _more(len(report.observations) - _FINDINGS)
    yield ""


_FINDING_HEADS = (
    "findings.severity", "findings.operator", "numbers.check", "precision.dtype", "precision.mode", "findings.what",
    "cover.trials", "findings.clause",
)  # fmt: skip


def _finding(card: FindingCard, word: Callable[[str], str], language: Language) -> tuple[str, ...]:
    said = chinese_message(card) if language == "zh" else card.message
    shared = () if card.shared is None else (card.shared.zh if language == "zh" else card.shared.en,)
    what = f"{word(f'kind.{card.kind}')}{word('mark.colon')}{word('mark.semi').join((*shared, said))}"
    dtype, mode = (plain_text(text) or "—" for text in (card.dtype, card.mode))
    return (
        card.id, word("severity." + card.severity), plain_text(card.operator), plain_text(card.check), dtype, mode,
        cell(what), _times(card), cell(", ".join(at for _, at in card.clauses[:3])),
    )  # fmt: skip
