"""The pictures of pages: one of each width and scheme, and a word on each page that is wider than its window."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.browser import MISSING
from tools.screenshot import _Browser, _Page, _take


@pytest.mark.slow
def test_a_page_wider_than_its_window_is_named(tmp_path: Path) -> None:
    if MISSING:
        pytest.skip(MISSING)
    for name, width in (("narrow", 300), ("wide", 700)):
        (tmp_path / f"{name}.html").write_text(f'<body style="margin:0"><div style="width:{width}px">x</div>')
    browser = _Browser()
    try:
        assert list(_take(browser, _Page("narrow", tmp_path / "narrow.html"), tmp_path)) == []
        assert set(_take(browser, _Page("wide", tmp_path / "wide.html"), tmp_path)) == {
            "wide: 300 pixels wider than 400"
        }
        with pytest.raises(SystemExit, match=r"gone\.html: no such page"):
            list(_take(browser, _Page("gone", tmp_path / "gone.html"), tmp_path))
    finally:
        browser.driver.quit()
    taken = {path.stem for path in tmp_path.glob("*.png")}
    assert taken == {
        f"{name}-{width}-{scheme}"
        for name in ("narrow", "wide")
        for width in (400, 1280)
        for scheme in ("light", "dark")
    }
