"""The whole page of a run as a user gets it, every clause, finding, figure and table: who can read it, and on paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reports.axe import CONTRAST, SHADED, axe_violations, mark_shades
from tests.reports.browser import LANGUAGES, MISSING, open_page, shown

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.xdist_group("whole page")]

NAMELESS = """
const named = "a, button, th, summary, h1, h2, h3, h4, label, caption, dt, option";
return [...document.querySelectorAll(named)]
  .filter((part) => (part.localName === "option" || part.checkVisibility()) && !part.innerText.trim() && !part.text)
  .map((part) => part.outerHTML);
"""
"""What must have a name, is shown, and has no text in the language that is shown."""


@pytest.fixture(scope="module")
def whole(faulty_page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "report.html"
    path.write_text(faulty_page, encoding="utf-8")
    return path


@pytest.fixture(params=LANGUAGES, scope="module")
def opened(request: pytest.FixtureRequest, driver: Any, whole: Path) -> Any:
    """The page as it opens, in one language; the tests of a language follow one another."""
    open_page(driver, whole)
    driver.find_element("css selector", f"button[data-language={request.param}]").click()
    return driver


@pytest.mark.slow
def test_it_prints_on_a4_in_a_sane_number_of_sheets(opened: Any) -> None:
    opened.execute_script(
        "window.printed = []; addEventListener('beforeprint', () => {"
        " for (const part of document.querySelectorAll('details')) window.printed.push([part.className, part.open]) })"
    )
    # Tags, for who listens to a PDF, are the browser's own doing and take as long as the sheets.
    options = {"preferCSSPageSize": True, "generateTaggedPDF": False}
    printed = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", options)["data"])
    assert printed.startswith(b"%PDF-")
    boxes = set(re.findall(rb"/MediaBox \[0 0 (\d+)[\d.]* (\d+)", printed))
    assert boxes <= {(b"594", b"841"), (b"595", b"842"), (b"594", b"842"), (b"595", b"841")}
    sheets = len(re.findall(rb"/Type /Page\b(?!s)", printed))
    # 638 clauses take some 30 sheets of them; a table that fell apart, or plots that fill a sheet each, take hundreds.
    assert 25 <= sheets <= 90, sheets
    parts = opened.execute_script("return window.printed")
    assert {name: was_open for name, was_open in parts if name in ("program", "numbers")} == {
        "program": False,
        "numbers": False,
    }
    assert all(was_open for name, was_open in parts if name not in ("program", "numbers"))
    assert opened.execute_script("return [...document.querySelectorAll('details')].every((part) => !part.open)")
    assert opened.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


@pytest.fixture
def on_paper(opened: Any) -> Iterator[Any]:
    """The page as its print style shows it."""
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    yield opened
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_what_is_not_printed_says_how_much_it_is_and_where_it_is_kept(on_paper: Any) -> None:
    left_out = shown(on_paper, "details.program:not([open]), details.numbers:not([open])")
    said = [part.text for part in shown(on_paper, ".unprinted")]
    assert len(said) == len(left_out) > 3
    assert all(re.search(r"[1-9]\d*", text) for text in said)
    programs = [text for text in said if "repro/" in text]
    trials = [text for text in said if "cases/" in text]
    assert len(programs) + len(trials) == len(shown(on_paper, "details.program"))
    assert all(text.endswith(".json") for text in trials)
    assert shown(on_paper, ".in-print")
    # What the reader has opened is printed, whole and without the remark.
    first = on_paper.find_element("css selector", "details.program")
    on_paper.execute_script("arguments[0].open = true", first)
    assert first.find_element("css selector", "pre").is_displayed()
    assert not first.find_element("css selector", ".unprinted").is_displayed()
    style = "const s = getComputedStyle(arguments[0]); return [s.maxHeight, s.whiteSpace]"
    assert on_paper.execute_script(style, first.find_element("css selector", "pre")) == ["none", "pre-wrap"]
    on_paper.execute_script("arguments[0].open = false", first)


def test_a_filter_that_hides_rows_is_told_on_paper(on_paper: Any) -> None:
    assert shown(on_paper, ".filters") == []
    choose = (
        "const form = document.querySelector('[data-filter=clauses]'); form.elements.verdict.value = arguments[0];"
        "form.dispatchEvent(new Event('change'));"
    )
    on_paper.execute_script(choose, "met")
    [told] = shown(on_paper, ".filters")
    assert re.fullmatch(r"\d+ / \d+ .+", told.text.strip())
    on_paper.execute_script(choose, "")
    assert shown(on_paper, ".filters") == []


def test_no_plot_is_taller_than_a_sheet(opened: Any) -> None:
    boxes = opened.execute_script(
        "return [...document.querySelectorAll('.plot svg')].map((e) => [e.viewBox.baseVal.width,"
        " e.viewBox.baseVal.height])"
    )
    assert boxes
    # 186 by 269 mm are left of A4 within the margins.
    assert all(height / width <= 269 / 186 for width, height in boxes)


@pytest.mark.slow
def test_axe_finds_nothing_with_everything_opened(opened: Any) -> None:
    opened.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    assert len(shown(opened, "#findings pre")) >= 2
    assert len(shown(opened, "svg")) >= 2
    assert len(shown(opened, "#coverage table, #precision details table")) > 2
    assert opened.execute_script(NAMELESS) == []
    assert axe_violations(opened, without=(CONTRAST,)) == {}
    # Of each text axe looks for what lies behind it, which takes longer than all other rules together.
    shades, texts = mark_shades(opened)
    assert 40 < shades < 200
    assert texts > 5000
    assert axe_violations(opened, context=SHADED, only=(CONTRAST,)) == {}
