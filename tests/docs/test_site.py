"""The site, opened as a file: pages link to each other, and search needs no network."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT
from tests.reports.browser import MISSING, chromium

SECONDS = 40
LOOKS = 8
"""At the results, before a word is typed again."""


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
def test_a_page_says_its_language(site: Path) -> None:
    for path in site.rglob("*.html"):
        language = "zh" if path.relative_to(site).parts[0] == "zh" else "en"
        assert f'<html lang="{language}"' in path.read_text(encoding="utf-8"), path


@pytest.mark.slow
def test_tutorials_and_faq_link_to_the_other_language(site: Path) -> None:
    for path in (site / "zh").rglob("*.html"):
        name = path.relative_to(site / "zh")
        english, above = site / name, "../" * len(name.parts)
        assert f'<a href="{above}{name}">English</a>' in path.read_text(encoding="utf-8"), path
        assert f'zh/{name}">中文</a>' in english.read_text(encoding="utf-8"), english


@pytest.mark.slow
def test_colours_follow_the_system(site: Path) -> None:
    if MISSING:
        pytest.skip(MISSING)
    with chromium() as driver:
        for scheme, name in (("light", "default"), ("dark", "slate"), ("light", "default")):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            driver.get((site / "bounds.html").as_uri())
            assert driver.find_element("css selector", "body").get_attribute("data-md-color-scheme") == name


@pytest.mark.slow
@pytest.mark.parametrize(("word", "title"), [("waiver", "Waivers"), ("缺陷", "第一个缺陷"), ("门禁", "CI 门禁")])
def test_search_finds_a_page(site: Path, word: str, title: str) -> None:
    if MISSING:
        pytest.skip(MISSING)
    if not word.isascii() and find_spec("jieba") is None:  # importing it warns
        pytest.skip("jieba is not installed: `make site`")
    with chromium() as driver:
        driver.get((site / "tutorials" / "first-bug.html").as_uri())
        driver.execute_script("document.querySelector('label.md-header__button[for=__search]').click()")
        found: list[str] = []
        end = time.monotonic() + SECONDS
        for waiting in itertools.count():
            if title in found or time.monotonic() > end:
                break
            if waiting % LOOKS == 0:  # what is typed before the index is there may be lost
                field = driver.find_element("css selector", "input.md-search__input")
                field.clear()
                field.send_keys(word)
            time.sleep(0.5)
            headings = driver.find_elements("css selector", ".md-search-result__item h1")
            found = [heading.text.replace("\u200b", "") for heading in headings]
        assert title in found
