"""The pages that are written by hand are few enough words to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.words import ROOT, main, running_text, sections, written_pages

MOST_WORDS = 25_000
"""Of the running text of all pages."""
MOST_WORDS_OF_A_PAGE = 1_800
"""The file as it is: tables, code and generated blocks included."""


def test_running_text_leaves_out_blocks_code_and_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Two words.\n\n| a | b |\n| - | - |\n\n```sh\nls\n```\n\n"
        "<!-- x: made from y -->\nz\n<!-- x: end -->\n\n- One.\n\n  ```text\n  no\n  ```\n"
    )
    assert running_text(page).split() == ["Two", "words.", "-", "One."]


def test_the_running_text_of_all_pages_is_short() -> None:
    assert sum(len(running_text(page).split()) for page in written_pages()) <= MOST_WORDS


@pytest.mark.parametrize("page", written_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_short_enough_to_read(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS_OF_A_PAGE


def test_each_written_page_is_counted_in_one_section(capsys: pytest.CaptureFixture[str]) -> None:
    found = sections()
    assert sorted(page for pages in found.values() for page in pages) == sorted(written_pages())
    assert ROOT / "docs" / "tutorials" / "first-bug.md" in found["Tutorials"]
    assert main() == 0
    total = sum(len(running_text(page).split()) for page in written_pages())
    assert f"| All | {len(written_pages())} | {total:,} |" in capsys.readouterr().out
