"""The site, opened as a file: pages link to each other, and search needs no network."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT
from tests.reports.browser import MISSING, chromium

SECONDS = 20


@pytest.fixture(scope="module", name="site")
def build_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="the site's packages are not installed: `make site`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_no_page_asks_a_network_for_anything(site: Path) -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert [name for name, text in texts.items() if "unpkg.com" in text or 'src="http' in text] == []
    assert len(texts) > 60


@pytest.mark.slow
def test_search_finds_a_page(site: Path) -> None:
    if MISSING:
        pytest.skip(MISSING)
    with chromium() as driver:
        driver.get((site / "tutorials" / "first-bug.html").as_uri())
        driver.execute_script("document.querySelector('label.md-header__button[for=__search]').click()")
        found: list[str] = []
        end = time.monotonic() + SECONDS
        while "Waivers" not in found and time.monotonic() < end:
            field = driver.find_element("css selector", "input.md-search__input")
            field.clear()
            field.send_keys("waiver")
            time.sleep(0.5)
            found = [item.text for item in driver.find_elements("css selector", ".md-search-result__item h1")]
        assert "Waivers" in found
