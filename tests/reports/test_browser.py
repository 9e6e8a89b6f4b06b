"""The page as a person meets it: in a browser, in both languages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aclnn_cts.reports.html import SECTIONS, render_html
from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.text import LANGUAGES, phrase
from tests.reports.axe import CONTRAST, SHADED, axe_violations, mark_shades
from tests.reports.browser import MISSING, OPENED, open_page, shown, wide

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def small(faulty: Acceptance) -> Acceptance:
    """A report of everything, with few rows of a kind: a browser that looks at each takes its time."""
    clauses = faulty.clauses
    kinds = {(row.verdict, row.reason, row.encoding, row.clause.certainty, bool(row.specific)): row for row in clauses}
    chosen = {id(row) for row in (*kinds.values(), *clauses[::6])}
    power = faulty.credibility.power
    assert power is not None
    matrix = power.matrix
    few = msgspec.structs.replace(matrix, faults=matrix.faults[::10], decoys=matrix.decoys[::10])
    return replace(
        faulty,
        clauses=tuple(row for row in clauses if id(row) in chosen or not row.operator),
        credibility=replace(faulty.credibility, power=replace(power, matrix=few)),
    )


@pytest.fixture(scope="module")
def page(small: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(small), encoding="utf-8")
    return path


@pytest.fixture
def browser(driver: Any, page: Path) -> Any:
    if driver.current_url.partition("#")[0] != page.resolve().as_uri():
        open_page(driver, page)
    return driver


@pytest.fixture(params=LANGUAGES, scope="module")
def spoken(request: pytest.FixtureRequest) -> str:
    """The language; a module's, so that tests of one follow one another and the page is laid out anew but once."""
    return str(request.param)


@pytest.fixture
def opened(spoken: str, browser: Any) -> Any:
    """The page in one language, as it opens otherwise."""
    browser.execute_script("for (const form of document.forms) form.reset(); location.hash = '';")
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    browser.find_element("css selector", f"button[data-language={spoken}]").click()
    return browser


def language(driver: Any) -> str:
    return str(driver.execute_script("return document.documentElement.lang"))


def test_one_language_is_shown_at_a_time(opened: Any) -> None:
    chosen = language(opened)
    other = LANGUAGES[1 - LANGUAGES.index(chosen)]
    assert len(shown(opened, f".l[lang={chosen}]")) > 200
    assert shown(opened, f".l[lang={other}]") == []
    title = opened.find_element("css selector", "h1").text
    assert title == {"en": "Explorer", "zh": "明细报告"}[chosen]
    pressed = shown(opened, "button[aria-pressed=true]")
    assert [button.get_attribute("data-language") for button in pressed] == [chosen]
    options = opened.execute_script(
        "return [...document.querySelector('[data-filter=clauses] select[name=verdict]').options].map((o) => o.text)"
    )
    assert options[1] == {"en": "met", "zh": "满足"}[chosen]


def test_the_navigation_leads_to_every_section(opened: Any) -> None:
    for name in SECTIONS:
        opened.find_element("css selector", f'nav a[href="#{name}"]').click()
        top = opened.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().top", name)
        bottom = opened.execute_script(
            "return document.documentElement.scrollHeight - window.innerHeight - window.scrollY"
        )
        assert -2 <= top < 120 or bottom < 2, (name, top, bottom)


def test_the_filters_show_what_they_say(opened: Any, small: Acceptance) -> None:
    rows = "#traceability tr[data-item]"
    opened.execute_script(
        "const form = document.querySelector('[data-filter=clauses]');"
        "form.elements.verdict.value = 'contradicted';"
        "form.dispatchEvent(new Event('change'));"
    )
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    contradicted = [row for row in small.clauses if row.verdict == "contradicted"]
    assert len(shown(opened, rows)) == len(contradicted) > 0
    count = opened.find_element("css selector", "[data-filter=clauses] [data-shown]").text
    assert count == str(len(contradicted))
    field = opened.find_element("css selector", "[data-filter=clauses] input[name=text]")
    field.send_keys("params.out")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    expected = [row for row in contradicted if row.clause.at.startswith("params.out")]
    assert 0 < len(expected) <= len(shown(opened, rows)) < len(contradicted)
    opened.find_element("css selector", "[data-filter=clauses] button[type=reset]").click()
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(opened.find_elements("css selector", f"{rows}:not([hidden])")) == len(small.clauses)
    assert shown(opened, rows) == []


def test_the_filters_of_findings_and_the_links_of_numbers(opened: Any, small: Acceptance) -> None:
    cards = "#findings article"
    assert len(shown(opened, cards)) == len(small.findings)
    opened.execute_script(
        "const form = document.querySelector('[data-filter=findings]');"
        "form.elements.waived.value = 'yes'; form.dispatchEvent(new Event('change'));"
    )
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert shown(opened, cards) == []
    # A link to a finding that the filter hides shows it again.
    opened.execute_script("document.querySelector('#traceability a[href=\"#F1\"]').click()")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert opened.find_element("id", "F1").is_displayed()
    link = opened.find_element("css selector", "#numbers a[data-verdict=untested]")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
    link.click()
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    expected = [row for row in small.clauses if row.verdict == "untested"]
    assert len(shown(opened, "#traceability tr[data-item]")) == len(expected)


def test_details_open_by_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - only where a browser is

    summary = shown(opened, "#findings details summary")[0]
    opened.execute_script("arguments[0].parentElement.open = false; arguments[0].focus()", summary)
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.execute_script("return arguments[0].parentElement.open", summary)
    button = opened.find_element("css selector", f"button[data-language={language(opened)}]")
    opened.execute_script("arguments[0].focus()", button)
    outline = opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_the_first_tab_skips_to_the_report(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415 - only where a browser is

    open_page(browser, page)
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.get_attribute("href").endswith("#main")
    assert first.is_displayed()


def test_axe_finds_what_is_wrong_in_one_row_of_many(browser: Any, page: Path) -> None:
    """Held against what `test_whole_page.py` holds the whole page to."""
    open_page(browser, page)
    browser.execute_script(
        "for (const part of document.querySelectorAll('#traceability details')) part.open = true;"
        "const rows = document.querySelectorAll('#traceability tbody tr');"
        "const cell = rows[Math.floor(rows.length / 2)].querySelector('td');"
        "cell.style.color = '#ddd';"
        "cell.append(document.createElement('button'), document.createElement('input'));"
        "cell.append(Object.assign(document.createElement('ul'), {innerHTML: '<p>x</p>'}));"
    )
    assert axe_violations(browser, only=("button-name", "label", "list")).keys() == {"button-name", "label", "list"}
    shades, texts = mark_shades(browser)
    assert shades < texts / 10
    assert axe_violations(browser, context=SHADED, only=(CONTRAST,)).keys() == {CONTRAST}


_TOO_WIDE = """
return [...document.querySelectorAll(arguments[0])].filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.textContent.trim().slice(0, 60));
"""


def test_tables_of_five_operators_fit_a_common_window(driver: Any, five: Acceptance, tmp_path: Path) -> None:
    path = tmp_path / "five.html"
    sections = ["numbers", "environment", "statuses", "precision", "coverage"]
    path.write_text(render_html(five, sections=sections), encoding="utf-8")
    driver.set_window_size(1280, 1000)
    open_page(driver, path)
    driver.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    for spoken in LANGUAGES:
        driver.find_element("css selector", f"button[data-language={spoken}]").click()
        assert (
            driver.execute_script(_TOO_WIDE, ".scroll:has(> .matrix, > .tolerances, > .ratio), .statuses thead th")
            == []
        )
    names = "const t = document.querySelector('.environment'); return t.rows[0].cells[0].offsetWidth / t.offsetWidth"
    assert driver.execute_script(names) > 0.2


CELLS = """
const language = document.documentElement.lang;
const name = (cell) => [...cell.childNodes].filter((part) => part.lang !== (language === "en" ? "zh" : "en"))
  .map((part) => part.textContent).join("").trim().toLowerCase();
return [...document.querySelectorAll("table.rows")].map((table) => [
  [...table.tHead.rows[0].cells].slice(-1).map(name),
  [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => [...row.cells].at(-1))
    .filter((cell) => cell.colSpan === 1).map((cell) => cell.dataset[language].toLowerCase()),
]);
"""
"""Of each table, the name of the last column, and what the last cells of its rows are named."""


def test_a_narrow_window_names_each_cell_after_its_column(opened: Any, spoken: str) -> None:
    opened.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    with wide(opened, 360):
        opened.execute_async_script("setTimeout(arguments[0], 100)")
        found = opened.execute_script(CELLS)
        assert len(found) > 10
        assert [set(cells) for _, cells in found if cells] == [set(name) for name, cells in found if cells]
        told = "return getComputedStyle(document.querySelector('#evidence tbody td'), '::before').content"
        assert phrase("cover.run", spoken) in opened.execute_script(told)  # type: ignore[arg-type]  # a str


def test_no_request_and_no_error(browser: Any, page: Path) -> None:
    """Of all that the tests before this one did, and of a fresh start."""
    open_page(browser, page)
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"].partition("#")[0])
    assert asked
    assert set(asked) <= {*OPENED, "data:,"}
    assert browser.get_log("browser") == []
