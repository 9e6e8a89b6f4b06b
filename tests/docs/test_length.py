"""The pages that are written by hand are few enough words to read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not page.read_text(encoding="utf-8").startswith("<!-- Made from")
]
MOST_WORDS = 25_000
"""Of the running text of all pages."""
MOST_WORDS_OF_A_PAGE = 1_800
"""Tables included."""


def written_text(page: Path) -> str:
    """A page without generated blocks and code."""
    text = re.sub(r"<!-- ([\w-]+): made from.*?<!-- \1: end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def running_text(page: Path) -> str:
    """The written text without rows of tables."""
    return re.sub(r"^ *\|.*", "", written_text(page), flags=re.MULTILINE)


def test_running_text_leaves_out_blocks_code_and_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Two words.\n\n| a | b |\n| - | - |\n\n```sh\nls\n```\n\n"
        "<!-- x: made from y -->\nz\n<!-- x: end -->\n\n- One.\n\n  ```text\n  no\n  ```\n"
    )
    assert running_text(page).split() == ["Two", "words.", "-", "One."]


def test_the_running_text_of_all_pages_is_short() -> None:
    assert sum(len(running_text(page).split()) for page in PAGES) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_short_enough_to_read(page: Path) -> None:
    assert len(written_text(page).split()) <= MOST_WORDS_OF_A_PAGE
