"""The whole page in Chinese: no English sentence is left on it but those of records, shown as such."""

from __future__ import annotations

from typing import Any

import pytest

from aclnn_cts.reports.html import SECTIONS, render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from tests.reports.browser import MISSING, open_page
from tests.reports.everything import RECORDED, everything, the_run_before
from tests.reports.page_text import SKIPPED, Block, english, half_width, visible_blocks

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Acceptance:
    folder = tmp_path_factory.mktemp("full")
    return acceptance([everything(folder / "run")], baseline=the_run_before(folder / "before"))


@pytest.fixture(scope="module")
def blocks(
    full: Acceptance,
    driver: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[Block]]:
    path = tmp_path_factory.mktemp("chinese") / "report.html"
    path.write_text(render_html(full), encoding="utf-8")
    found = {}
    open_page(driver, path)
    for language in ("zh", "en"):
        driver.find_element("css selector", f"button[data-language={language}]").click()
        found[language] = visible_blocks(driver)
        found[f"{language}, code too"] = visible_blocks(driver, SKIPPED.removeprefix("code, "))
    return found


def test_what_is_looked_at_is_everything(full: Acceptance, blocks: dict[str, list[Block]]) -> None:
    assert full.credibility.disputes
    assert len(full.credibility.errors) == 2
    assert full.waivers
    [own] = full.comparisons
    assert own.ends
    assert own.added
    assert own.removed
    for name in SECTIONS:
        assert len([block for block in blocks["zh"] if block.section == name]) > 5, name


def names_parts(full: Acceptance, run: str) -> bool:
    """Whether the words are the parts of the harness that differ from those that were measured."""
    power = full.credibility.power
    return power is not None and set(run.split(", ")) <= set(power.another or ())


def test_no_english_sentence_stands_on_the_chinese_page(full: Acceptance, blocks: dict[str, list[Block]]) -> None:
    left = {(block.section, run) for block in blocks["zh"] for run in english(block.text) if not names_parts(full, run)}
    assert left == set()


def test_no_english_sentence_hides_as_code(full: Acceptance, blocks: dict[str, list[Block]]) -> None:
    """Expressions of a spec have a few words in a row."""
    left = {(block.section, run) for block in blocks["zh, code too"] for run in english(block.text)}
    assert {(name, run) for name, run in left if len(run.split()) > 4 and not names_parts(full, run)} == set()


def test_chinese_has_its_own_marks(blocks: dict[str, list[Block]]) -> None:
    left = {(block.section, found) for block in blocks["zh"] for found in half_width(block.text)}
    assert left == set()


def test_no_mark_of_code_is_shown_as_it_was_written(blocks: dict[str, list[Block]]) -> None:
    shown = {(block.section, block.text) for name in ("en", "zh") for block in blocks[name] if "`" in block.text}
    assert shown == set()


def test_english_is_found_where_it_stands(blocks: dict[str, list[Block]]) -> None:
    found = [run for block in blocks["en"] for run in english(block.text)]
    assert len(found) > 300
    assert any(RECORDED in run for run in found)
    assert english("两个 one two three four 五") == ["one two three four"]
    assert english("aclnnSoftmaxBackward, FLOAT16 one two three") == []
    assert english("the call (which is wrong) did not") == ["the call (which is wrong) did not"]
