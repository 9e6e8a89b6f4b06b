"""The Chinese page in Chinese: failures as sentences from their figures, rules, faults, waivers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import Origin
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.outcome import GROWN_BYTES, BufferState, CallEnd, Outcome
from aclnn_cts.core.verdict import TOLERANCE_FACT, Deviation, Record, Result, ToleranceFigure, ToleranceResult
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.markdown import outline_bytes
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.acceptance_rows import FaultFacts, FindingCard
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.sentences import chinese_message
from aclnn_cts.reports.text import words
from aclnn_cts.selftest.kill_matrix import DecoyRow, FaultRow
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.run_directory import FINDINGS
from aclnn_cts.store.store import ResultStore
from tests.reports.synthetic import record, softmax_case, synthetic_run

CHINESE = re.compile("[\u4e00-\u9fff]")
KINDS = [fault.value for fault in Fault]
NULLPTR, INVALID = 161001, 161002


def failed(kind: str, *, outcome: Outcome | None = None, **fields: Any) -> Record:
    made = record(
        softmax_case(), result=Result.FAILED, kind=kind, message="recorded", output="out", error_ratio=2.5, **fields
    )
    return msgspec.structs.replace(made, attempts=((outcome,),)) if outcome is not None else made


def broken(status: int | None, **fields: Any) -> Record:
    case = softmax_case(null="gradOutput", origin=Origin(kind="invalid", constraint="gradOutput.null"))
    made = record(case, check="status", result=Result.FAILED, kind=Fault.STATUS, constraint="gradOutput.null", **fields)
    return msgspec.structs.replace(made, attempts=((Outcome(phase_one=status),),))


def card_of(path: Path, item: Record) -> FindingCard:
    [card] = acceptance([synthetic_run(path / "run", [item])]).findings
    return card


@pytest.mark.parametrize("is_kept", [True, False], ids=["shrink keeps its record", "a campaign keeps none"])
def test_one_record_feeds_all_of_a_card_whose_case_was_shrunk(tmp_path: Path, *, is_kept: bool) -> None:
    """Shrinking may end with a call in which another output is wrong; the first one has 0 errors there."""
    first, second = "gradBiasOut", "gradWeightOut"

    def of_output(item: Record, output: str, message: str) -> Record:
        worst = item.verdict.deviations[0]
        right = msgspec.structs.replace(worst, output=first, got=1.0, expected=1.0, error_ratio=0.0, beyond=0)
        deviations = (msgspec.structs.replace(worst, output=output),)
        return msgspec.structs.replace(
            item,
            verdict=msgspec.structs.replace(
                item.verdict, message=message, deviations=deviations if output == first else (right, *deviations)
            ),
            fingerprint=msgspec.structs.replace(item.fingerprint, output=output),
        )

    recorded = of_output(failed(Fault.VALUE), first, f"{first} is wrong")
    other = record(softmax_case(1), result=Result.FAILED, kind=Fault.VALUE, output=second, error_ratio=2.5)
    small = of_output(other, second, f"{second} is wrong")
    finding = Finding(
        key=recorded.key,
        counts=((recorded.fingerprint, 1),),
        trial=small.trial,
        message=small.verdict.message,
        shrunk=True,
        record=small if is_kept else None,
    )
    path = synthetic_run(tmp_path / "run", [recorded])
    with ResultStore(path / "results.sqlite", resume=True) as store:
        store.append((), state={FINDINGS: (finding,)})
        store.finish()
    [card] = acceptance([path]).findings
    shown, output = (small, second) if is_kept else (recorded, first)
    assert (card.record, card.output, card.message) == (shown, output, f"{output} is wrong")
    assert chinese_message(card).startswith(f"{output}[0, 1] 为 1.5，期望 1.25")
    assert "6 个元素中有 1 个错误" in chinese_message(card)


CASES: dict[str, tuple[Record, str]] = {
    "value": (
        failed(Fault.VALUE),
        "out[0, 1] 为 1.5，期望 1.25，误差界 ±1，误差为其 2.5 倍；6 个元素中有 1 个错误。",
    ),
    "model": (failed(Fault.MODEL), "计算模型（依据：假定）不能解释，但规定格式下更粗的运算可以解释。"),
    "limit": (
        failed(Fault.LIMIT_VALUE, constraint="dim.range"),
        "违反约束 dim.range 的调用成功返回，但结果错误：out[0, 1]",
    ),
    "status": (broken(0), "违反约束 gradOutput.null 的调用返回 ACLNN_SUCCESS，期望 ACLNN_ERR_PARAM_NULLPTR。"),
    "another status": (broken(INVALID), "返回 ACLNN_ERR_PARAM_INVALID，期望 ACLNN_ERR_PARAM_NULLPTR。"),
    "no status": (broken(None), "没有返回码（抛出异常）"),
    "rejected": (
        failed(Fault.REJECTED, outcome=Outcome(phase_one=INVALID)),
        "文档支持的调用返回 ACLNN_ERR_PARAM_INVALID，期望 ACLNN_SUCCESS。",
    ),
    "raised": (failed(Fault.REJECTED, outcome=Outcome(ended=CallEnd.RAISED)), "文档支持的调用被拒绝（抛出异常）"),
    "signal": (failed(Fault.CRASH, outcome=Outcome(ended=CallEnd.SIGNAL, signal=11)), "因信号 11 终止。"),
    "exit": (failed(Fault.CRASH, outcome=Outcome(ended=CallEnd.EXIT)), "进程自行退出。"),
    "hang": (failed(Fault.HANG, outcome=Outcome(ended=CallEnd.TIME_LIMIT, seconds=7.5)), "在 7.5 秒内没有返回。"),
    "unwritten": (
        failed(Fault.UNWRITTEN, outcome=Outcome(phase_one=0, buffers={"out": BufferState(unwritten=4)})),
        "out：有 4 个元素从未写入",
    ),
    "guard": (
        failed(Fault.GUARD, outcome=Outcome(phase_one=0, buffers={"out": BufferState(guard_after=3, gap=2)})),
        "之前 0 字节、之后 3 字节、视图之外的空隙 2 字节。",
    ),
    "input": (
        failed(Fault.INPUT, outcome=Outcome(phase_one=0, buffers={"out": BufferState(changed=9)})),
        "改动了该输入的 9 字节。",
    ),
    "leak": (
        failed(Fault.LEAK, outcome=Outcome(phase_one=161001, facts={GROWN_BYTES: 2_000_000})),
        "使进程内存增长 2000000 字节",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_is_told_by_its_figures(name: str, tmp_path: Path) -> None:
    item, said = CASES[name]
    assert said in chinese_message(card_of(tmp_path, item))


def test_the_call_at_fault_is_told_of_several(tmp_path: Path) -> None:
    good = Outcome(phase_one=0, phase_two=0)
    item = failed(Fault.CRASH, check="life-cycle/two-streams")
    item = msgspec.structs.replace(item, attempts=((good, Outcome(ended=CallEnd.SIGNAL, signal=6)),))
    assert chinese_message(card_of(tmp_path, item)) == "调用期间进程因信号 6 终止。共 2 次调用，第 2 次出错。"


def with_worst(card: FindingCard, **changes: object) -> FindingCard:
    [worst] = card.record.verdict.deviations
    deviations = (msgspec.structs.replace(worst, **changes),)
    verdict = msgspec.structs.replace(card.record.verdict, deviations=deviations)
    return replace(card, record=msgspec.structs.replace(card.record, verdict=verdict))


def test_special_values_and_exact_ones_have_words_of_their_own(tmp_path: Path) -> None:
    card = card_of(tmp_path, failed(Fault.SPECIAL))
    nan = with_worst(card, got="nan", error_ratio=math.inf)
    assert chinese_message(nan).startswith("out[0, 1] 为 nan，期望 1.25；")
    assert "必须精确" in chinese_message(replace(with_worst(card, bound=0.0), kind=Fault.VALUE))


def test_a_tolerance_s_figures_are_told(tmp_path: Path) -> None:
    figures = (
        ToleranceFigure(name="mere", value=0.02, limit=0.01),
        ToleranceFigure(name="mare", value="inf", limit=0.1),
    )
    tolerance = ToleranceResult(tolerance="mixed", verdict="fail", message="mean error too large", figures=figures)
    none = ToleranceResult(tolerance="dual-l0", verdict="not applicable", message="no benchmark")
    unasked = ToleranceResult(tolerance="dual-l1", verdict="fail", message="nobody asked for it")
    item = failed(Fault.TOLERANCE)
    verdict = msgspec.structs.replace(
        item.verdict,
        tolerances={"mixed": {"out": tolerance}, "dual-l0": {"out": none}, "dual-l1": {"out": unasked}},
        facts={**item.verdict.facts, TOLERANCE_FACT: "mixed"},
        deviations=(Deviation(output="out", elements=6),),
    )
    report = acceptance([synthetic_run(tmp_path / "run", [msgspec.structs.replace(item, verdict=verdict)])])
    [card] = report.findings
    assert chinese_message(card) == (
        "out 在推导的误差界之内，但不满足所要求的精度标准 mixed：mere = 0.02，要求 <= 0.01、mare = inf，要求 <= 0.1。"
    )
    page = render_html(report)
    assert "mere = 0.02，要求 &lt;= 0.01、mare = inf，要求 &lt;= 0.1" in page
    assert "不适用" in page


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_sentence_whatever_is_recorded(kind: str, faulty: Acceptance) -> None:
    card = faulty.findings[0]
    verdict = msgspec.structs.replace(card.record.verdict, kind=kind, deviations=(), tolerances={})
    bare = replace(card, kind=kind, record=msgspec.structs.replace(card.record, verdict=verdict), fault=FaultFacts())
    for card in (bare, replace(bare, fault=FaultFacts(call=1, calls=1))):
        assert CHINESE.search(chinese_message(card))
        assert "{" not in chinese_message(card)


def test_the_recorded_message_stands_behind_a_summary_of_the_chinese_page(faulty: Acceptance, faulty_page: str) -> None:
    cards = re.findall(r"<article.*?</article>", faulty_page, re.DOTALL)
    assert len(cards) == len(faulty.findings)
    for card, text in zip(faulty.findings, cards, strict=True):
        assert f'<p class="message l" lang="zh">{chinese_message(card)[:10]}' in text.replace("&#39;", "'")
        assert '<details class="l recorded" lang="zh"><summary>记录的原文' in text
    outline = outline_bytes(faulty, None, "zh").decode().replace("\\", "")
    assert all(chinese_message(card)[:20] in outline for card in faulty.findings)


def test_every_sentence_is_chinese() -> None:
    assert all(CHINESE.search(text) for name, text in words("said").items() if name != "figure")


@pytest.mark.parametrize("operator", load_specs())
def test_every_rule_describes_itself_in_both_languages(operator: str) -> None:
    spec = load_specs()[operator]
    for item in spec.constraints:
        for product in spec.products:
            english, chinese = item.rule.describe(product)
            assert not CHINESE.search(english), item.id
            # An expression is the same in both.
            assert CHINESE.search(chinese) or chinese == english, item.id
            codes = set(re.findall(r"[A-Za-z_]\w*\[|\b[A-Z][A-Z0-9]+\b|\d{3,}", english))
            assert all(code in chinese for code in codes), (english, chinese)


def test_the_page_has_rules_faults_and_decoys_in_chinese(faulty: Acceptance, faulty_page: str) -> None:
    for row in faulty.constraints:
        assert CHINESE.search(row.rule_zh) or row.rule_zh == row.rule
    power = faulty.credibility.power
    assert power is not None
    kill = power.matrix

    rows: tuple[FaultRow | DecoyRow, ...] = (*kill.faults, *kill.decoys)
    for measured in rows:
        assert CHINESE.search(measured.sentence_zh), measured.id
    for fault in kill.faults:
        assert not fault.equivalent or CHINESE.search(fault.equivalent_zh)
    section = faulty_page.partition('<section id="credibility"')[2].partition("</section>")[0]
    equivalent = sum(bool(fault.equivalent) for fault in kill.faults)
    assert section.count('<small><span class="l" lang="en">') >= len(kill.faults) + len(kill.decoys) + equivalent


def test_shipped_waivers_say_their_reason_in_both_languages(tmp_path: Path) -> None:
    waivers = read_waivers(shipped_waivers())
    assert waivers
    assert all(CHINESE.search(waiver.reason_zh) for waiver in waivers)
    item = failed(Fault.VALUE, waiver=waivers[0].id)
    report = acceptance([synthetic_run(tmp_path / "run", [item])])
    assert report.waivers[0].reason_zh == waivers[0].reason_zh
    page = render_html(report)
    assert waivers[0].reason_zh in page
    assert waivers[0].reason.replace("'", "&#39;") in page
