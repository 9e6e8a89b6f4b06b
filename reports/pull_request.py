"""The precision report of a pull request: one operator or a few, in Markdown of at most a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.markdown import cell, condition_texts, plain_text, table
from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts
from aclnn_cts.reports.model.precision import PrecisionRow
from aclnn_cts.reports.sentences import chinese_message, product_text, ran_on_text, verdict_text
from aclnn_cts.reports.text import Language, capital, count_text, error_ratio_text, phrase

_ROWS, _FINDINGS, _RUNS = 12, 5, 4
"""With them a page has 40 lines, which a reviewer sees without scrolling; what is left out is counted."""


def pull_request_bytes(report: Acceptance, rows: object, language: Language) -> bytes:
    """The document in one language."""
    return printable_document("\n".join(_lines(report, language)) + "\n").encode()


def _lines(report: Acceptance, language: Language) -> Iterator[str]:
    def word(address: str) -> str:
        return phrase(address, language)

    colon = word("mark.colon")
    names = word("mark.list").join(f"`{part.operator}`" for part in report.operators[:_ROWS])
    yield from (
        f"### {word('pr.title')}{colon}{names}{_left_out(len(report.operators), 'more_operators', language)}",
        "",
    )
    yield from (
        f"**{word('run_verdict.' + report.verdict.value)}**{colon}{plain_text(verdict_text(report, language))}",
        "",
    )
    for run in report.runs[:_RUNS]:
        yield _ran(run, word, language)
    if left_out := _left_out(len(report.runs), "more_runs", language, _RUNS):
        yield f"- {left_out}"
    if ran_on := ran_on_text(report, language):
        yield f"- {word('cover.ran_on')}{colon}{plain_text(ran_on)}"
    ends = report.ends
    tried = {
        "numbers.planned": ends.cases,
        "result.passed": ends.passed,
        "result.failed": ends.unwaived,
        "result.waived": ends.waived,
        "sign.no_result": ends.cases - ends.passed - ends.failed,
    }
    counts = (f"{word(name).lower()} {count_text(number)}" for name, number in tried.items())
    tried_text = colon.join((word("pr.tried"), word("mark.comma").join(counts)))
    yield f"- {tried_text}"
    yield ""
    yield from _precision(report, word, language)
    yield from _findings(report, word, language)


def _left_out(number: int, what: str, language: Language, shown: int = _ROWS) -> str:
    return phrase(f"pr.{what}", language, number=count_text(number - shown)) if number > shown else ""


def _ran(run: RunFacts, word: Callable[[str], str], language: Language) -> str:
    """Who ran, and what makes the same calls again."""
    manifest = run.manifest
    facts = (
        f"`{manifest.adapter.replace('`', '')}`",
        f"{word('cover.product').lower()} {plain_text(product_text(run, language))}",
        f"{word('cover.profile').lower()} {manifest.profile or '—'}",
        f"{word('cover.seed').lower()} {manifest.seed}",
        f"aclnn-cts {plain_text(manifest.harness)}",
    )
    return f"- {word('cover.run')} {plain_text(run.name)}{word('mark.colon')}{word('mark.comma').join(facts)}"


def _precision(report: Acceptance, word: Callable[[str], str], language: Language) -> Iterator[str]:
    """The worst error ratio of each output, and beside it what each rule of the ecosystem says of the same values."""
    rules = sorted({name for row in report.precision for name in row.tolerances})
    heads = [capital(word(f"precision.{name}")) for name in ("output", "dtype", "trials", "elements", "worst")]
    worst = sorted(report.precision, key=_largest, reverse=True)
    if not worst:
        yield from (word("precision.empty"), "")
        return
    yield from table(
        [*heads, *rules],
        ["---", "---", *("---:" for _ in heads[2:]), *("---:" for _ in rules)],
        [
            (
                plain_text(f"{row.operator.removeprefix('aclnn')}.{row.output}"),
                plain_text(" ".join(filter(None, (row.dtype, row.mode)))),
                count_text(row.trials),
                count_text(row.elements),
                _ratio(row, language),
                *(_within(row, rule, word) for rule in rules),
            )
            for row in worst[:_ROWS]
        ],
    )
    if left_out := _left_out(len(worst), "more_rows", language):
        yield from ("", left_out)
    yield from ("", word("pr.note"), "")


def _largest(row: PrecisionRow) -> tuple[float, float]:
    return row.largest_unwaived, row.largest


def _ratio(row: PrecisionRow, language: Language) -> str:
    """The worst error ratio; beside it the larger one of failures that waivers accept."""
    unwaived, largest = error_ratio_text(row.largest_unwaived), error_ratio_text(row.largest)
    return unwaived if unwaived == largest else phrase("pr.waived", language, ratio=unwaived, waived=largest)


def _within(row: PrecisionRow, rule: str, word: Callable[[str], str]) -> str:
    """Trials within a rule, of those that it applies to."""
    found = row.tolerances.get(rule)
    if found is None:
        return "—"
    measured = found.passed + found.failed
    return f"{count_text(found.passed)}/{count_text(measured)}" if measured else word("pr.not_applicable")


def _findings(report: Acceptance, word: Callable[[str], str], language: Language) -> Iterator[str]:
    unwaived = report.unwaived_findings
    counts = phrase("numbers.findings_of", language, all=len(report.findings), unwaived=len(unwaived))
    yield f"**{word('section.findings')}**{word('mark.colon')}{counts}"
    for card in unwaived[:_FINDINGS]:
        said = chinese_message(card) if language == "zh" else card.message
        clause = word("mark.list").join(at for _, at in card.clauses[:2])
        where = f"{word('mark.open')}{cell(clause)}{word('mark.close')}" if clause else ""
        text = word("mark.semi").join((*condition_texts(card, language), cell(said, 240)))
        operator = plain_text(card.operator.removeprefix("aclnn"))
        yield f"- {operator}{word('mark.comma')}{word(f'kind.{card.kind}')}{word('mark.colon')}{text}{where}"
    if left_out := _left_out(len(unwaived), "more_findings", language, _FINDINGS):
        yield f"- {left_out}"
