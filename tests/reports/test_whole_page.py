"""The whole explorer of a run as a user gets it, every clause, finding and table: who can read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.reports.axe import CONTRAST, SHADED, axe_violations, mark_shades
from tests.reports.browser import LANGUAGES, MISSING, open_page, shown

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

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
def test_axe_finds_nothing_with_everything_opened(opened: Any) -> None:
    opened.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    assert len(shown(opened, "#findings pre")) >= 2
    assert len(shown(opened, ".ratio, .heat")) >= 2
    assert len(shown(opened, "#coverage table, #precision details table")) > 2
    assert opened.execute_script(NAMELESS) == []
    assert axe_violations(opened, without=(CONTRAST,)) == {}
    # Of each text axe looks for what lies behind it, which takes longer than all other rules together.
    shades, texts = mark_shades(opened)
    assert 40 < shades < 200
    assert texts > 5000
    assert axe_violations(opened, context=SHADED, only=(CONTRAST,)) == {}
