"""The explorer of sixty operators in a browser: start page, parts on demand, search, links, widths, dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.authoring.catalogue import FAMILIES, family_of
from aclnn_cts.reports.charts import anchors, families, start_rows
from aclnn_cts.reports.html import render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.model.build import acceptance
from aclnn_cts.reports.text import LANGUAGES, words
from tests.reports.axe import CONTRAST, SHADED, axe_violations, mark_shades
from tests.reports.browser import MISSING, SCHEMES, open_page, schemed, shown, wide
from tests.reports.many import many

OPERATORS, RECORDS = 60, 100_000
LIMIT = 10 * 2**20
WIDTHS = (360, 1280, 3840)


@pytest.fixture(scope="module")
def sixty(five: Acceptance, faulty: Acceptance) -> Acceptance:
    """Sixty operators, those of softmax with findings."""
    return many(_together(five, faulty), OPERATORS, RECORDS)


def _together(five: Acceptance, faulty: Acceptance) -> Acceptance:
    return replace(five, findings=faulty.findings, precision=faulty.precision, coverage=faulty.coverage)


@pytest.fixture(scope="module")
def page(sixty: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sixty") / "report.html"
    path.write_text(render_html(sixty), encoding="utf-8")
    return path


def test_ten_mebibytes_hold_it(page: Path, sixty: Acceptance) -> None:
    assert sixty.ends.cases >= RECORDS
    assert len(sixty.clauses) > 7_000
    assert page.stat().st_size < LIMIT


def test_operators_are_in_families_that_have_a_name_in_both_languages(sixty: Acceptance) -> None:
    found = families(start_rows(sixty))
    assert {name for name, _ in found} >= {"activation", "convolution", "normalisation", "pooling"}
    assert all(family_of(row.part.operator) == name for name, rows in found for row in rows)
    assert sum(len(rows) for _, rows in found) == OPERATORS
    assert set(words("terms")["family"]) == {*FAMILIES, "other"}


def test_a_row_of_the_start_page_counts_failures_of_its_run_alone(faulty_run: Path, five_run: Path) -> None:
    rows = start_rows(acceptance([faulty_run, five_run]))
    wrong, right = (row for row in rows if row.part.operator == "aclnnSoftmaxBackward")
    assert (wrong.run.name, right.run.name) == (faulty_run.name, five_run.name)
    assert wrong.part.ends.unwaived > 0 < wrong.findings
    assert (right.part.ends.unwaived, right.findings) == (0, 0)


def test_no_two_cards_have_the_same_anchor(sixty: Acceptance) -> None:
    names = [name for found in anchors(sixty).values() for name in found]
    assert len(names) == len(set(names)) >= len(sixty.findings)


def test_anchors_stay_when_findings_change_their_order(sixty: Acceptance) -> None:
    turned = replace(
        sixty, findings=tuple(replace(card, id=f"F{at}") for at, card in enumerate(sixty.findings[::-1], start=1))
    )
    before, after = anchors(sixty), anchors(turned)
    assert [before[card.id] for card in sixty.findings] == [after[card.id] for card in turned.findings[::-1]]


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
class TestInABrowser:
    @pytest.fixture
    def opened(self, driver: Any, page: Path) -> Iterator[Any]:
        driver.set_window_size(1280, 1000)
        driver.get("about:blank")
        open_page(driver, page)
        yield driver
        driver.set_window_size(1280, 1000)

    @staticmethod
    def wait(driver: Any, milliseconds: int = 400) -> None:
        driver.execute_async_script(f"setTimeout(arguments[0], {milliseconds})")

    def test_a_part_is_unpacked_when_it_is_opened(self, opened: Any, sixty: Acceptance) -> None:
        name = sixty.operators[3].operator
        assert shown(opened, f"#trace-{name} tr[data-item]") == []
        link = opened.find_element("css selector", f'.start a[href="#trace-{name}"]')
        opened.execute_script("arguments[0].click()", link)
        self.wait(opened)
        rows = [row for row in sixty.clauses if row.operator == name]
        assert len(opened.find_elements("css selector", f"#trace-{name} tr[data-item]")) == len(rows)
        assert 0 < len(shown(opened, f"#trace-{name} tr[data-item]")) < len(rows)

    @pytest.mark.slow
    def test_links_lead_to_clauses_findings_and_cases_in_closed_parts(
        self, driver: Any, page: Path, sixty: Acceptance
    ) -> None:
        clause = next(row for row in sixty.clauses if row.operator == sixty.operators[7].operator)
        card = sixty.findings[-1]
        for anchor in (f"clause-{clause.operator}-{clause.clause.at}", card.id, *anchors(sixty)[card.id]):
            driver.get("about:blank")
            driver.get(f"{page.resolve().as_uri()}#{anchor}")
            self.wait(driver)
            top = driver.execute_script(
                "return document.getElementById(arguments[0]).getBoundingClientRect().top", anchor
            )
            assert -5 <= top <= 1000, anchor

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["clause", "finding", "case"])
    def test_a_link_is_followed_by_keyboard(self, opened: Any, kind: str) -> None:
        from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - only where a browser is

        for _ in range(2):  # what is unpacked has parts too
            opened.execute_script("for (const part of document.querySelectorAll('#F1 details')) part.open = true")
            self.wait(opened)
        link = opened.find_element("css selector", f"#F1 a[href^='#{kind}-']")
        anchor = link.get_attribute("href").partition("#")[2]
        opened.execute_script("arguments[0].focus()", link)
        opened.switch_to.active_element.send_keys(Keys.ENTER)
        self.wait(opened, 1000)
        assert opened.execute_script("return decodeURIComponent(location.hash.slice(1))") == anchor
        top = opened.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().top", anchor)
        assert -5 <= top <= 1000

    @pytest.mark.slow
    def test_the_search_finds_clauses_in_closed_parts(self, opened: Any, sixty: Acceptance) -> None:
        field = opened.find_element("css selector", "[data-filter=clauses] input[name=text]")
        opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", field)
        field.send_keys("params.out")
        self.wait(opened, 3000)
        expected = [row for row in sixty.clauses if "params.out" in row.clause.at]
        found = opened.find_elements("css selector", "#traceability tr[data-item]:not([hidden])")
        assert len(found) >= len(expected) > OPERATORS

    def test_the_start_page_filters_operators(self, opened: Any) -> None:
        field = opened.find_element("css selector", "[data-filter=operators] input[name=text]")
        field.send_keys("Number17B")
        self.wait(opened)
        assert len(shown(opened, ".start tr[data-item]")) == 1

    def test_a_part_opens_by_keyboard(self, opened: Any) -> None:
        from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - only where a browser is

        summary = opened.find_element("css selector", "#traceability .fold summary")
        opened.execute_script("arguments[0].focus()", summary)
        summary.send_keys(Keys.ENTER)
        self.wait(opened)
        assert shown(opened, "#traceability .fold[open] table")

    @pytest.mark.parametrize("width", WIDTHS)
    def test_no_width_needs_a_horizontal_scroll_bar(self, opened: Any, width: int) -> None:
        with wide(opened, width):
            for language in LANGUAGES:
                opened.execute_script(f"document.querySelector('button[data-language={language}]').click()")
                too_wide = opened.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
                assert too_wide <= 0

    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.slow
    def test_axe_finds_nothing(self, opened: Any, sixty: Acceptance, scheme: str) -> None:
        """With the parts of one operator, and one card, open."""
        with schemed(opened, scheme):
            name = sixty.operators[3].operator
            opened.execute_script(
                "for (const part of document.querySelectorAll(`[id$='-${arguments[0]}'], #F1 .more, .quiet`))"
                " part.open = true;",
                name,
            )
            self.wait(opened, 1000)
            mark_shades(opened)
            assert axe_violations(opened, context=SHADED, only=(CONTRAST,)) == {}
            assert axe_violations(opened, context=f"'#trace-{name}'") == {}
            assert axe_violations(opened, context="'#cover'") == {}
