"""Two documents in Markdown: a summary for a merge request, and the community's test report in Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from aclnn_cts.core.printable import printable_document
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import ClauseRow, FindingCard
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict
from aclnn_cts.reports.sentences import (
    chinese_message,
    outside_text,
    product_text,
    products_text,
    ran_on_text,
    remark_texts,
    verdict_text,
)
from aclnn_cts.reports.text import VERDICTS, Language, capital, count_text, phrase, seconds_text
from aclnn_cts.store.counts import Counts

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


def condition_texts(card: FindingCard, language: Language) -> Iterator[str]:
    """The condition that a finding's failures share, as code, where there is one."""
    if card.shared is not None:
        before, code, after = (card.shared.zh if language == "zh" else card.shared.en).split("`", 2)
        shown = " ".join(code.split()).replace("|", "\\|")
        yield f"{plain_text(before)}`{shown}`{' ' if after.startswith(' ') else ''}{plain_text(after)}"


def _times(card: FindingCard) -> str:
    """Failures, of judged trials; of campaigns, which keep few of them, the failures that they counted."""
    if len(card.campaigns) == len(card.runs):
        return count_text(sum(finding.failures for _, finding in card.campaigns))
    return f"{count_text(card.number)} / {count_text(card.of)}"


def table(heads: Iterable[str], rule: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table; `rule` aligns its columns."""
    for line in (heads, rule, *rows):
        yield f"| {' | '.join(line)} |"


def _more(number: int, language: Language, what: str = "more_rows") -> list[str]:
    """That so many lines of a table are left out."""
    return ["", phrase(f"pr.{what}", language, number=count_text(number))] if number > 0 else []


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
        [(count_text(sum(numbers)), *(_clauses(report, name, language) for name in VERDICTS))],
    )
    yield ""
    yield from _planned_and_run(report, word)
    yield ""
    yield from _observations(report, word, language)
    yield from _openness(report, word, language)
    unwaived = report.unwaived_findings
    counts = phrase("numbers.findings_of", language, all=len(report.findings), unwaived=len(unwaived))
    yield from (f"### {word('section.findings')}{colon}{counts}", "")
    if unwaived:
        yield from table(
            ["", *(capital(word(head)) for head in _FINDING_HEADS)],
            ["---" for _ in ("", *_FINDING_HEADS)],
            [_finding(card, word, language) for card in unwaived[:_FINDINGS]],
        )
        yield from _more(len(unwaived) - _FINDINGS, language, "more_findings")


def _clauses(report: Acceptance, verdict: str, language: Language) -> str:
    number = count_text(report.counted(verdict))
    if verdict != ClauseVerdict.CONTRADICTED or not report.excused:
        return number
    return f"{number} ({phrase('numbers.waived', language, number=count_text(report.excused))})"


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
            (plain_text(name), *map(count_text, (ends.cases, ends.passed, ends.unwaived, ends.waived, ends.errors,
                                                 ends.skipped, ends.out_of_scope)))
            for name, ends in parts
        ],
    )  # fmt: skip


def _openness(report: Acceptance, word: Callable[[str], str], language: Language) -> Iterator[str]:
    """How much of the values could not be judged."""
    if not report.openness:
        return
    heads = ("findings.operator", "precision.dtype", "numbers.check", *(f"openness.{name}" for name in _OPEN_HEADS))
    yield from (f"### {word('openness.title')}", "")
    yield from table(
        (capital(word(head)) for head in heads),
        ("---", "---", "---", "---:", "---:", "---:", "---"),
        [
            (
                *map(plain_text, row[:3]),
                f"{row.open.share:.1%}",
                *(
                    phrase("openness.part", language, number=number, all=of)
                    for number, of in ((row.open.open_calls, row.open.calls), (row.open.open, row.open.elements))
                ),
                word(f"open_reason.{row.open.usual_reason}") if row.open.usual_reason else "",
            )
            for row in report.openness[:_FINDINGS]
        ],
    )
    yield from _more(len(report.openness) - _FINDINGS, language)
    yield ""


_OPEN_HEADS = ("share", "calls", "elements", "why")


def _observations(report: Acceptance, word: Callable[[str], str], language: Language) -> Iterator[str]:
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
    yield from _more(len(report.observations) - _FINDINGS, language)
    yield ""


_FINDING_HEADS = (
    "findings.severity", "findings.operator", "numbers.check", "precision.dtype", "precision.mode", "findings.what",
    "cover.trials", "findings.clause",
)  # fmt: skip


def _finding(card: FindingCard, word: Callable[[str], str], language: Language) -> tuple[str, ...]:
    said = chinese_message(card) if language == "zh" else card.message
    what = word("mark.semi").join((*condition_texts(card, language), cell(said)))
    kind = f"{word(f'kind.{card.kind}')}{word('mark.colon')}"
    dtype, mode = (plain_text(text) or "—" for text in (card.dtype, card.mode))
    return (
        card.id, word("severity." + card.severity), plain_text(card.operator), plain_text(card.check), dtype, mode,
        f"{kind}{what}", _times(card), cell(", ".join(at for _, at in card.clauses[:3])),
    )  # fmt: skip


CHAPTERS = ("概述", "版本测试信息", "测试结论", "特性质量评估", "DFX", "测试执行评估", "遗留问题", "附件")

_RELIABILITY = ("memory", "life-cycle/")
_LISTED_FINDINGS = 200


def outline_bytes(report: Acceptance, rows: object, language: str) -> bytes:
    """The document; it is in Chinese whatever the language, as its outline is."""
    parts = (_overview, _version, _conclusion, _features, _dfx, _execution, _left, _attachments)
    lines = ["# aclnn 算子符合性测试报告", ""]
    for number, (title, part) in enumerate(zip(CHAPTERS, parts, strict=True), start=1):
        lines += [f"## {number} {title}", "", *part(report), ""]
    return printable_document("\n".join(lines)).encode()


def _table(heads: tuple[str, ...], lines: list[tuple[object, ...]]) -> Iterator[str]:
    return table(heads, ["---" for _ in heads], [[cell(str(item), 400) or "—" for item in line] for line in lines])


def _overview(report: Acceptance) -> Iterator[str]:
    operators = "、".join(f"`{part.operator}`" for part in report.operators)
    yield f"本报告依据算子文档，逐条检验 {len(report.operators)} 个算子的实现：{operators}。"
    yield f"文档的每条陈述为一个条款，范围内共 {len(report.clauses)} 条；结论由运行记录统计得出，不再判定。"


def _version(report: Acceptance) -> Iterator[str]:
    heads = ("运行", "实现", "运行于", "产品", "档位", "种子", "开始时间（UTC）", "用时", "测试框架版本")
    yield from _table(
        heads,
        [
            (
                run.name,
                run.manifest.adapter,
                run.ran_on_zh or run.ran_on,
                product_text(run, "zh"),
                run.manifest.profile or "—",
                run.manifest.seed,
                run.manifest.started,
                seconds_text(run.seconds),
                run.manifest.harness,
            )
            for run in report.runs
        ],
    )
    for run in report.runs:
        yield from ("", f"### 环境：{plain_text(run.name)}", "")
        yield from _table(
            ("项目", "取值", "来源"),
            [
                (name, run.environment_zh.get(name, value) or "未知", phrase(f"known.{known}", "zh"))
                for name, value, known in run.environment
            ],
        )


def _conclusion(report: Acceptance) -> Iterator[str]:
    yield plain_text(verdict_text(report, "zh"))
    for text in remark_texts(report, "zh"):
        yield from ("", f"- {plain_text(text)}")


def _features(report: Acceptance) -> Iterator[str]:
    rows: list[tuple[object, ...]] = []
    for part in report.operators:
        mine = [row for row in report.clauses if row.operator == part.operator]
        findings = sum(card.operator == part.operator for card in report.findings)
        rows.append((part.operator, *_by_verdict(mine), findings))
    rows.append(("两段式接口", *_by_verdict([row for row in report.clauses if not row.operator]), "—"))
    verdicts = [phrase(f"verdict.{name}", "zh") for name in VERDICTS]
    yield from _table(("特性（算子）", "条款", *verdicts, "问题"), rows)
    yield from ("", "### 精度", "")
    yield from _table(
        ("算子", "输出", "数据类型", "模式", "用例", "元素", "超界元素", "最大误差/误差界"),
        [
            (row.operator, row.output, row.dtype, row.mode or "—", row.trials, row.elements, row.beyond,
             row.worst if isinstance(row.worst, str) else f"{row.worst:.3g}")
            for row in report.precision
        ],
    )  # fmt: skip


def _by_verdict(clauses: Sequence[ClauseRow]) -> list[int]:
    """All of them, then those of each verdict."""
    return [len(clauses), *(sum(row.verdict == name for row in clauses) for name in VERDICTS)]


def _dfx(report: Acceptance) -> Iterator[str]:
    yield from ("### 可靠性（内存与生命周期）", "")
    yield from _table(
        ("算子", "检查项", "计划", "通过", "失败", "豁免", "无结论", "范围外"),
        [
            (row.operator, phrase(f"check.{row.check}", "zh"), row.ends.cases, row.ends.passed, row.ends.failed,
             row.ends.waived, row.ends.skipped + row.ends.errors, row.ends.out_of_scope)
            for row in report.checks
            if row.check.startswith(_RELIABILITY)
        ],
    )  # fmt: skip
    for title in ("性能", "安全性", "可维护性", "兼容性"):
        yield from ("", f"### {title}", "", "未测试：本工具不对此作出结论。")


def _execution(report: Acceptance) -> Iterator[str]:
    names = [*((part.operator, part.ends) for part in report.operators), ("合计", report.ends)]
    yield from _table(
        ("算子", "计划", "通过", "失败", "其中豁免", "错误", "跳过", "范围外", "原因"),
        [
            (name, ends.cases, ends.passed, ends.failed, ends.waived, ends.errors, ends.skipped,
             ends.out_of_scope, _why(ends))
            for name, ends in names
        ],
    )  # fmt: skip


def _why(ends: Counts) -> str:
    """Why trials were not judged."""
    reasons = [f"{phrase(f'skip.{reason}', 'zh')} {number}" for reason, number in ends.unjudged.items()]
    return "；".join([*reasons, *(f"{outside_text([name], 'zh')} {number}" for name, number in ends.outside.items())])


def _left(report: Acceptance) -> Iterator[str]:
    if not report.findings:
        yield "无。"
        return
    yield from _table(
        ("编号", "严重程度", "算子", "现象", "失败用例", "豁免", "条款", "重放"),
        [
            (card.id, phrase(f"severity.{card.severity}", "zh"), card.operator,
             f"{phrase(f'kind.{card.kind}', 'zh')}：{chinese_message(card)}",
             f"{card.number}/{card.of}", "、".join(card.waivers) or "—", "、".join(at for _, at in card.clauses[:3]),
             card.replay)
            for card in report.findings[:_LISTED_FINDINGS]
        ],
    )  # fmt: skip
    if len(report.findings) > _LISTED_FINDINGS:
        yield from ("", f"其余 {len(report.findings) - _LISTED_FINDINGS} 项见 HTML 报告。")


def _attachments(report: Acceptance) -> Iterator[str]:
    yield from _table(
        ("运行", "文件", "说明", "SHA-256"),
        [
            (file.run, file.path, phrase(f"file.{file.what}", "zh"), file.sha256 or "—")
            for file in report.evidence
            if file.what != "failure"
        ],
    )
