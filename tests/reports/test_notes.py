"""Notes of runs, records, comparisons and tolerances in Chinese, from their codes and values."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.core.note import Note, NoteCode
from aclnn_cts.core.verdict import (
    DISPUTE_FACT,
    Result,
    RunVerdict,
    SkipReason,
    ToleranceFigure,
    ToleranceResult,
    ToleranceVerdict,
    ToleranceWhy,
)
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from aclnn_cts.reports.markdown import markdown_bytes
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.sentences import (
    note_markup,
    note_text,
    tolerance_markup,
    tolerance_text,
    verdict_text,
)
from aclnn_cts.reports.text import words
from tests.judgement.tolerances.pairs import pair
from tests.reports.everything import everything
from tests.reports.synthetic import record, softmax_case, synthetic_run

CHINESE = re.compile("[\u4e00-\u9fff]")
OPERATOR = "aclnnSoftmaxBackward"

NOTES = {
    "waiver w, expired": (
        Note("t", NoteCode.EXPIRED, {"waiver": "w", "owner": "o@example.org", "expiry": "2026-01-02"}),
        "豁免 w 已于 2026-01-02 到期；由 o@example.org 续期或修复。",
    ),
    "held": (Note("t", NoteCode.NEVER_HELD, {"operator": OPERATOR, "id": "c"}), f"{OPERATOR}：没有用例遵守约束 c。"),
    "broken": (
        Note("t", NoteCode.NEVER_BROKEN, {"operator": OPERATOR, "id": "c"}),
        f"{OPERATOR}：没有用例违反约束 c。",
    ),
    "total": (
        Note("t", NoteCode.TOTAL, {"operator": OPERATOR, "kind": "", "planned": 3, "ended": 2}),
        f"{OPERATOR}（—）：计划 3 个用例，结束 2 个。",
    ),
    "dispute": (
        Note("t", NoteCode.DISPUTE, {"place": "out[0]", "first": "1.5", "second": ""}),
        (
            "两个参考实现对 out[0] 的结果不一致：float64 为 1.5，有理数运算为 超出 float64 范围的值；"
            "不计为失败，请报告给 aclnn-cts 的维护者。"
        ),
    ),
    "not run": (Note("why", NoteCode.NOT_RUN), "调用未能执行，用例没有结论。（why）"),
    "unfinished": (Note("t", NoteCode.UNFINISHED), "运行未正常结束。"),
    "nothing judged": (Note("t", NoteCode.NOTHING_JUDGED, {"operator": ""}), "所有算子：没有任何判定。"),
    "not offered": (
        Note("t", NoteCode.NOT_OFFERED, {"operator": OPERATOR}),
        f"{OPERATOR}：适配器声明不提供该算子，没有任何判定。",
    ),
    "unsupported": (Note("t", NoteCode.UNSUPPORTED, {"operator": OPERATOR}), f"{OPERATOR}：其文档未列出该产品。"),
    "errors": (Note("t", NoteCode.ERRORS, {"operator": OPERATOR, "n": 2}), f"{OPERATOR}：2 个用例以错误终止。"),
    "faults": (Note("t", NoteCode.FAULTS, {"operator": OPERATOR, "n": 2}), f"{OPERATOR}：2 个失败未豁免。"),
    "few judged": (
        Note(
            "t",
            NoteCode.FEW_JUDGED,
            {"operator": OPERATOR, "judged": 24, "counted": 600, "share": 4, "least": 90},
        ),
        f"{OPERATOR}：600 个用例中判定了 24 个（4%），要求至少 90%。",
    ),
    "dtype": (
        Note("t", NoteCode.DTYPE, {"operator": OPERATOR, "dtypes": "out BF16"}),
        f"{OPERATOR}：以下数据类型没有任何数值判定：out BF16。",
    ),
    "rule": (
        Note("t", NoteCode.RULE, {"operator": OPERATOR, "n": 1, "of": 7, "id": "out.null"}),
        f"{OPERATOR}：7 条列明的返回码规则中有 1 条没有判定，例如 out.null。",
    ),
    "corner": (
        Note("t", NoteCode.CORNER, {"operator": OPERATOR, "n": 2, "corner": "dim: 1"}),
        f"{OPERATOR}：有 2 个边角取值没有任何数值判定，例如 dim: 1。",
    ),
    "benchmark": (
        Note("t", NoteCode.NO_BENCHMARK, {"operator": OPERATOR, "benchmark": "torch"}),
        f"{OPERATOR}：--benchmark torch 未应答任何调用，没有输出与其比较。",
    ),
    "harness": (Note("why", NoteCode.HARNESS), "测试框架出错，用例没有结论。（why）"),
    "of an earlier version": (Note("why"), "只有英文记录。（why）"),
}


@pytest.mark.parametrize("name", NOTES)
def test_a_note_is_a_chinese_sentence(name: str) -> None:
    note, said = NOTES[name]
    assert note_text(note, "zh") == said
    assert note_text(note, "en") == note.text
    assert ('<details class="l recorded"' in note_markup(note)) == said.endswith("（why）")


def test_every_code_is_among_them() -> None:
    codes = {value for name, value in vars(NoteCode).items() if name.isupper()}
    assert codes <= {note.code for note, _ in NOTES.values()}


def test_the_verdict_names_the_waiver_that_has_expired_in_the_page_s_language(tmp_path: Path) -> None:
    report = acceptance([everything(tmp_path / "run")])
    [run] = report.runs
    ends = msgspec.structs.replace(report.ends, failed=0, waived=0)
    fails = replace(report, verdict=RunVerdict.FAILS, ends=ends, runs=(run,))
    assert "到期；由" in verdict_text(fails, "zh")
    assert "expired on" not in verdict_text(fails, "zh")
    assert "expired on" in verdict_text(fails, "en")
    assert "没有用例违反约束 never.met" in markdown_bytes(report, None, "zh").decode().replace("\\", "")


def test_a_dispute_tells_its_figures(tmp_path: Path) -> None:
    fact = {"output": "out", "index": [0, 1], "first": "1.5", "second": "2.5"}
    item = record(
        softmax_case(), result=Result.SKIPPED, kind=SkipReason.DISPUTE, message="m", facts={DISPUTE_FACT: fact}
    )
    [note] = acceptance([synthetic_run(tmp_path / "run", [item])]).credibility.dispute_notes
    assert note == Note("m", NoteCode.DISPUTE, {"place": "out[0, 1]", "first": "1.5", "second": "2.5"})


def line(*, verdict: str = ToleranceVerdict.FAIL, **fields: Any) -> ToleranceResult:
    return ToleranceResult(tolerance="r", verdict=verdict, message="m", **fields)


@pytest.mark.parametrize("why", [value for name, value in vars(ToleranceWhy).items() if name.isupper()])
def test_why_a_tolerance_has_no_figure_is_told(why: str) -> None:
    said = tolerance_text(line(why=why, verdict=ToleranceVerdict.NOT_APPLICABLE))
    assert CHINESE.search(said)
    assert "<details" not in tolerance_markup(line(why=why))


def test_what_is_recorded_in_english_alone_is_said_to_be_so() -> None:
    assert "只有英文记录" in tolerance_markup(line())
    assert "<details" in tolerance_markup(line())


def test_every_figure_that_a_tolerance_makes_and_every_reason_has_a_chinese_name() -> None:
    made: set[str] = set()
    odd = [1.0, 2.0, math.inf, 2.0**-20]
    for one in (
        pair([1.5, 2.0, 3.0, 2.0**-18], [1.0, 2.0, 3.0, 2.0**-20], [1.0, 2.5, 3.0, 0.0]),
        pair([1.5, 2.0, math.nan, 0.0], odd, [1.0, 2.0, math.inf, 0.0]),
        pair([1.5, math.inf], [1.0, 2.0], [1.0, 2.0]),
        pair([1.5, 2.0], [1.0, math.inf], [1.0, 2.0]),
        pair([1.5, 2.0], [1.0, math.nan], [1.0, math.nan]),
        pair([1.5, 2.0], [1.0, 2.0], dtype="FLOAT16"),
        pair([1.5], [1.0], dtype="DOUBLE"),
        pair([1, 2], [1, 3], dtype="INT32"),
        pair([], []),
    ):
        for tolerance in TOLERANCES.values():
            result = tolerance.measure(one)
            made |= {entry.name for entry in result.figures}
            if not result.figures:
                assert result.why in words("tolerances")["why"], (tolerance.name, result.message)
    assert len(made) > 8
    for name in made:
        assert CHINESE.search(tolerance_text(line(figures=(ToleranceFigure(name, 0.5, 0.1),))).partition(" = ")[0]), (
            name
        )
