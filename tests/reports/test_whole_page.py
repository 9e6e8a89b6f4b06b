"""Both editions as a user gets them, every clause, finding and table: who can read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.reports.model.acceptance import Acceptance
from aclnn_cts.reports.signing import signing_bytes
from aclnn_cts.reports.text import LANGUAGES, Language
from tests.reports.axe import CONTRAST, SHADED, axe_violations, mark_shades
from tests.reports.browser import MISSING, SCHEMES, open_page, schemed, shown, wide

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

NAMELESS = """
const named = "a, button, th, summary, h1, h2, h3, h4, label, caption, dt, option";
return [...document.querySelectorAll(named)]
  .filter((part) => (part.localName === "option" || part.checkVisibility()) && !part.innerText.trim() && !part.text)
  .map((part) => part.outerHTML);
"""
"""What must have a name, is shown, and has no text in the language that is shown."""


WIDTHS = (360, 1280, 3840)

TOO_MUCH = """
const narrow = matchMedia("(max-width:40rem)").matches;
const unseen = narrow ? ".visually-hidden, .rows thead" : ".visually-hidden";
const seen = (part) => part.checkVisibility() && !part.closest(unseen);
const all = [...document.querySelectorAll("body *")].filter(seen);
const found = document.documentElement.scrollWidth > innerWidth ? ["page: wider than the window"] : [];
const tell = (what, part) => found.push(`${what}: ${part.localName}.${part.className}: ${part.innerText.slice(0, 40)}`);
for (const part of all) {
  const style = getComputedStyle(part);
  const own = [...part.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (own && parseFloat(style.fontSize) < 11) tell("small", part);
  const open = style.overflowX === "visible" && !["inline", "contents"].includes(style.display);
  const table = part.matches(".scroll");
  if ((open || table) && part.clientWidth && part.scrollWidth > part.clientWidth + 1) tell("wide", part);
  const lines = (part.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom))
    / parseFloat(style.lineHeight);
  if (innerWidth >= 1280 && ["figcaption", "caption"].includes(part.localName) && lines > 2.1) tell("long", part);
}
return [...new Set(found)].slice(0, 20);
"""
"""Texts under 11 px, what is wider than its place (tables too), captions of over two lines, and a page wider than the
window."""


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
    for scheme in SCHEMES:
        with schemed(opened, scheme):
            shades, texts = mark_shades(opened)
            assert 40 < shades < 200
            assert texts > 5000
            assert axe_violations(opened, context=SHADED, only=(CONTRAST,)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_everything_opened_fits_the_window_and_can_be_read(opened: Any, width: int) -> None:
    opened.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    with wide(opened, width):
        assert opened.execute_script(TOO_MUCH) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_signing_edition_fits_the_window_and_can_be_read(
    driver: Any, faulty: Acceptance, tmp_path: Path, language: Language
) -> None:
    path = tmp_path / "signing.html"
    path.write_bytes(signing_bytes(faulty, None, language))
    open_page(driver, path)
    for scheme in SCHEMES:
        with schemed(driver, scheme):
            assert axe_violations(driver) == {}
    for width in WIDTHS:
        with wide(driver, width):
            assert driver.execute_script(TOO_MUCH) == [], width
