"""The page as a person meets it: in a browser, in both languages."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.acceptance import Acceptance
from aclnn_cts.reports.html import SECTIONS, render_html
from tests.reports.browser import MISSING, OPENED, open_page

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.xdist_group("browser")]

LANGUAGES = ("en", "zh")


@pytest.fixture(scope="module")
def small(faulty: Acceptance) -> Acceptance:
    """A report of everything, with few rows of a kind: a browser that looks at each takes its time."""
    clauses = [row for row in faulty.clauses if row.in_scope]
    kinds = {(row.verdict, row.reason, row.encoding, row.certainty, bool(row.specific)): row for row in clauses}
    chosen = {id(row) for row in (*kinds.values(), *clauses[::6])}
    matrix = faulty.credibility.matrix
    assert matrix is not None
    few = {**matrix, "faults": matrix["faults"][::10], "decoys": matrix["decoys"][::10]}
    return replace(
        faulty,
        clauses=tuple(row for row in clauses if id(row) in chosen or not row.operator),
        credibility=replace(faulty.credibility, matrix=few),
    )


@pytest.fixture(scope="module")
def page(small: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(small), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(faulty_page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the run as a user gets it: every clause, finding, figure and table."""
    path = tmp_path_factory.mktemp("whole") / "report.html"
    path.write_text(faulty_page, encoding="utf-8")
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
    browser.find_element("css selector", f"button[data-language={spoken}]").click()
    return browser


def shown(driver: Any, selector: str) -> list[Any]:
    found: list[Any] = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility());", selector
    )
    return found


def language(driver: Any) -> str:
    return str(driver.execute_script("return document.documentElement.lang"))


def test_one_language_is_shown_at_a_time(opened: Any) -> None:
    chosen = language(opened)
    other = LANGUAGES[1 - LANGUAGES.index(chosen)]
    assert len(shown(opened, f".l[lang={chosen}]")) > 300
    assert shown(opened, f".l[lang={other}]") == []
    title = opened.find_element("css selector", "h1").text
    assert title == {"en": "Acceptance report", "zh": "验收报告"}[chosen]
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
    contradicted = [row for row in small.clauses if row.verdict == "contradicted"]
    assert len(shown(opened, rows)) == len(contradicted) > 0
    count = opened.find_element("css selector", "[data-filter=clauses] [data-shown]").text
    assert count == str(len(contradicted))
    field = opened.find_element("css selector", "[data-filter=clauses] input[name=text]")
    field.send_keys("params.out")
    expected = [row for row in contradicted if row.at.startswith("params.out")]
    assert 0 < len(expected) <= len(shown(opened, rows)) < len(contradicted)
    opened.find_element("css selector", "[data-filter=clauses] button[type=reset]").click()
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(shown(opened, rows)) == len(small.clauses)


def test_the_filters_of_findings_and_the_links_of_numbers(opened: Any, small: Acceptance) -> None:
    cards = "#findings article"
    assert len(shown(opened, cards)) == len(small.findings)
    opened.execute_script(
        "const form = document.querySelector('[data-filter=findings]');"
        "form.elements.waived.value = 'yes'; form.dispatchEvent(new Event('change'));"
    )
    assert shown(opened, cards) == []
    # A link to a finding that the filter hides shows it again.
    opened.execute_script("document.querySelector('#traceability a[href=\"#F1\"]').click()")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert opened.find_element("id", "F1").is_displayed()
    link = opened.find_element("css selector", "#numbers a[data-verdict=untested]")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
    link.click()
    expected = [row for row in small.clauses if row.verdict == "untested"]
    assert len(shown(opened, "#traceability tr[data-item]")) == len(expected)


def test_details_open_by_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    summary = shown(opened, "#findings details summary")[0]
    opened.execute_script("arguments[0].parentElement.open = false; arguments[0].focus()", summary)
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.execute_script("return arguments[0].parentElement.open", summary)
    button = opened.find_element("css selector", f"button[data-language={language(opened)}]")
    opened.execute_script("arguments[0].focus()", button)
    outline = opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_the_first_tab_skips_to_the_report(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    open_page(browser, page)
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.get_attribute("href").endswith("#main")
    assert first.is_displayed()


@pytest.mark.parametrize("chosen", LANGUAGES)
def test_axe_finds_nothing_on_the_whole_page_with_everything_opened(
    browser: Any,
    page: Path,
    whole: Path,
    chosen: str,
) -> None:
    open_page(browser, whole)
    browser.find_element("css selector", f"button[data-language={chosen}]").click()
    browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    assert len(shown(browser, "#findings pre")) >= 2
    assert len(shown(browser, "svg")) >= 2
    assert len(shown(browser, "#coverage table, #precision details table")) > 2
    # What a row or card holds is looked at in each. The other rules, contrast above all, take most of the time and ask
    # what it is made of: of those that are made alike, one stays on the page. Of these contrast alone asks for text.
    assert browser.execute_script(NAMELESS) == []
    assert axe_violations(browser, "document", {}, only=OF_CONTENTS) == {}
    chosen_rows = browser.execute_script(ALIKE)
    assert chosen_rows > 60
    rest = axe_violations(browser, "document", {}, **({} if chosen == LANGUAGES[0] else {"only": ("color-contrast",)}))
    assert rest == {}
    open_page(browser, page)


def test_axe_finds_what_is_wrong(browser: Any, page: Path) -> None:
    open_page(browser, page)
    browser.execute_script(
        "const first = document.querySelector('#cover p'); first.style.color = '#ddd'; first.style.background = '#fff';"
        "document.querySelector('#traceability input').parentElement.replaceWith("
        "document.querySelector('#traceability input'))"
    )
    assert axe_violations(browser, "{include: [['#cover']]}", {}, only=("color-contrast",)).keys() == {"color-contrast"}
    assert "label" in axe_violations(browser, "document", {}, only=("label",))


OF_CONTENTS = (
    "aria-allowed-attr",
    "aria-valid-attr-value",
    "button-name",
    "definition-list",
    "dlitem",
    "duplicate-id-aria",
    "empty-heading",
    "empty-table-header",
    "heading-order",
    "label",
    "link-name",
    "list",
    "listitem",
    "role-img-alt",
    "scope-attr-valid",
    "scrollable-region-focusable",
    "select-name",
    "svg-img-alt",
    "tabindex",
    "td-headers-attr",
    "th-has-data-cells",
    "valid-lang",
)
"""Rules whose answer may be another in each of two rows that are made alike."""

NAMELESS = """
const named = "a, button, th, summary, h1, h2, h3, h4, label, caption, dt, option";
return [...document.querySelectorAll(named)]
  .filter((part) => (part.localName === "option" || part.checkVisibility()) && !part.innerText.trim() && !part.text)
  .map((part) => part.outerHTML);
"""
"""What must have a name, is shown, and has no text in the language that is shown."""

ALIKE = """
const seen = new Set();
let chosen = 0;
for (const part of document.querySelectorAll("tbody tr, article, dl > *, li")) {
  const form = [part, ...part.querySelectorAll("*")].map((e) => `${e.localName}.${e.getAttribute("class")}`).join(" ");
  const key = `${part.closest("section, nav")?.id} ${form}`;
  if (seen.has(key)) part.dataset.alike = "";
  else chosen += 1;
  seen.add(key);
}
for (const part of document.querySelectorAll("[data-alike]")) part.remove();
return chosen;
"""
"""Takes away rows, cards and items that are made of the same elements and classes as one before them in a section."""


def axe_violations(
    driver: Any,
    context: str,
    rules: dict[str, dict[str, bool]],
    *,
    only: tuple[str, ...] = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"),
) -> dict[str, Any]:
    """The rules of axe-core that the page breaks, each with what breaks it first."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    # Run by the debugger, whom the page's policy does not bind.
    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    options = {"runOnly": list(only), "rules": rules, "resultTypes": ["violations"]}
    answer = driver.execute_cdp_cmd(
        "Runtime.evaluate",
        {
            "expression": f"axe.run({context}, {json.dumps(options)}).then((r) => JSON.stringify(r.violations))",
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    violations = json.loads(answer["result"]["value"])
    return {item["id"]: [node["target"] for node in item["nodes"][:3]] for item in violations}


@pytest.mark.parametrize("chosen", LANGUAGES)
def test_it_prints_on_a4_in_a_sane_number_of_sheets(browser: Any, whole: Path, chosen: str) -> None:
    open_page(browser, whole)
    browser.find_element("css selector", f"button[data-language={chosen}]").click()
    browser.execute_script(
        "window.printed = []; addEventListener('beforeprint', () => {"
        " for (const part of document.querySelectorAll('details')) window.printed.push([part.className, part.open]) })"
    )
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert printed.startswith(b"%PDF-")
    boxes = set(re.findall(rb"/MediaBox \[0 0 (\d+)[\d.]* (\d+)", printed))
    assert boxes <= {(b"594", b"841"), (b"595", b"842"), (b"594", b"842"), (b"595", b"841")}
    sheets = len(re.findall(rb"/Type /Page\b(?!s)", printed))
    # 638 clauses take some 30 sheets of them; a table that fell apart, or plots that fill a sheet each, take hundreds.
    assert 25 <= sheets <= 90, sheets
    parts = browser.execute_script("return window.printed")
    assert {name: opened for name, opened in parts if name in ("program", "numbers")} == {
        "program": False,
        "numbers": False,
    }
    assert all(opened for name, opened in parts if name not in ("program", "numbers"))
    assert browser.execute_script("return [...document.querySelectorAll('details')].every((part) => !part.open)")
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_no_plot_is_taller_than_a_sheet(browser: Any, whole: Path) -> None:
    open_page(browser, whole)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.plot svg')].map((e) => [e.viewBox.baseVal.width,"
        " e.viewBox.baseVal.height])"
    )
    assert boxes
    # 186 by 269 mm are left of A4 within the margins.
    assert all(height / width <= 269 / 186 for width, height in boxes)


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
