"""Chinese texts of ours, wherever they are kept: marks of their own width, and numbers as in the English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts import reports
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
from aclnn_cts.reports.text import words
from aclnn_cts.selftest.fault_catalogue import read_catalogue
from aclnn_cts.speclang.load import load_specs
from tests.reports.page_text import half_width

HAN = re.compile("[\u4e00-\u9fff]")
WORDS = ("method", "page", "tolerances", "said", "terms")


def leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, f"{path}.{key}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from leaves(entry, f"{path}.{number}")
    elif isinstance(value, str):
        yield path, value


def in_words() -> Iterator[tuple[str, str]]:
    for name in WORDS:
        yield from leaves(dict(words(name)), name)


def in_specs() -> Iterator[tuple[str, str]]:
    specs = load_specs()
    for spec in specs.values():
        for clause in (*spec.clauses, *specs.interface_clauses):
            yield f"{spec.stem} {clause.at}", clause.zh
            yield f"{spec.stem} {clause.at} untestable", (clause.untestable or ("", ""))[1]
        for item in spec.constraints:
            for product in spec.products:
                yield f"{spec.stem} {item.id}", item.rule.describe(product).zh


def in_catalogue() -> Iterator[tuple[str, str]]:
    catalogue = read_catalogue(load_specs())
    for fault in catalogue.faults.values():
        yield fault.id, fault.sentence_zh
        yield f"{fault.id} equivalent", fault.equivalent_zh
    for decoy in catalogue.decoys.values():
        yield decoy.id, decoy.sentence_zh


def in_waivers() -> Iterator[tuple[str, str]]:
    for waiver in read_waivers(shipped_waivers()):
        yield waiver.id, waiver.reason_zh


def in_torch() -> Iterator[tuple[str, str]]:
    pytest.importorskip("torch", reason="torch is not installed")
    session = load(parse_adapter_word("torch")).open(Target(product=DEFAULT_PRODUCT), {})
    yield from session.capabilities.environment_zh.items()
    session.close()


@pytest.mark.parametrize("source", [in_words, in_specs, in_catalogue, in_waivers, in_torch])
def test_no_latin_mark_stands_beside_chinese(source: Any) -> None:
    texts = [(where, text) for where, text in source() if HAN.search(text)]
    assert len(texts) >= 2
    assert {where: half_width(re.sub("`[^`]*`", "x", text)) for where, text in texts if half_width(text)} == {}


@pytest.mark.parametrize(
    "text",
    ["一,二", "一, two", "one, 二", "一:", "一(two)", "(一)", "为 0,rstd 就", "x)二"],
)
def test_a_latin_mark_is_found(text: str) -> None:
    assert half_width(text)


@pytest.mark.parametrize(
    "text", ["一，(T, B, Ci) 二", "gradInput[t,b,i] 按 x[k,i]", "one, two (three)", "按 f(x, y) 一"]
)
def test_marks_of_latin_words_are_their_own(text: str) -> None:
    assert half_width(text) == []


SAID = r"\{\{ (?:m\.)?(?:t|spans|note|tolerance)\((?:[^{}]|\{[^{}]*\})*\) \}\}"
LATIN_MARKS = (
    re.compile(rf"{SAID}(?:</\w+>)*(?:[:;,] |: ?<| \()"),
    re.compile(rf'{SAID}(?:(?!\{{% (?:end)?for)[^\n])*?\{{\{{ ", " if not loop\.last \}}\}}'),
)
"""A Latin mark behind what is said in both languages: at once, or between the entries of a list of such."""


def test_templates_part_what_is_said_in_both_languages_by_marks_of_both() -> None:
    found = {
        (path.name, hit.group()[-60:])
        for path in (Path(reports.__file__).parent / "templates").glob("*.html")
        for pattern in LATIN_MARKS
        for hit in pattern.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "text",
    ['{{ t("a.b") }}: {{ x }}', '<b>{{ t("a." ~ b) }}</b> (', '{{ t("a.b") }} x {{ n }}{{ ", " if not loop.last }}'],
)
def test_a_latin_mark_in_a_template_is_found(text: str) -> None:
    assert any(pattern.search(text) for pattern in LATIN_MARKS)
