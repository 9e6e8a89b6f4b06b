"""How many words the pages have, section by section of the site: `python -m tools.words`.

Running text is what somebody wrote and somebody reads from left to right: no generated pages and blocks, no code, no
rows of tables.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from tools.markdown import table

ROOT = Path(__file__).resolve().parent.parent
_ELSEWHERE = "In no section"


def written_pages() -> list[Path]:
    """The pages that are not generated as a whole."""
    pages = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    return [page for page in pages if not page.read_text(encoding="utf-8").startswith("<!-- Made from")]


def written_text(page: Path) -> str:
    """A page without generated blocks and code."""
    text = re.sub(r"<!-- ([\w-]+): made from.*?<!-- \1: end -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def running_text(page: Path) -> str:
    """The written text without rows of tables."""
    return re.sub(r"^ *\|.*", "", written_text(page), flags=re.MULTILINE)


def sections() -> Mapping[str, list[Path]]:
    """The written pages of each section of the site's navigation."""
    navigation = re.search(r"^nav:.*", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    entries = yaml.safe_load(navigation[0])["nav"] if navigation else []
    named = {
        name: {ROOT / "docs" / page for page in _pages(inner)} for entry in entries for name, inner in entry.items()
    }
    found: dict[str, list[Path]] = {name: [] for name in named}
    for page in written_pages():
        section = next((name for name, pages in named.items() if page in pages), _ELSEWHERE)
        found.setdefault(section, []).append(page)
    return found


def _pages(entry: object) -> Iterator[str]:
    """The pages of an entry of the navigation, of entries in it too."""
    if isinstance(entry, str):
        yield entry
    for inner in entry if isinstance(entry, list) else ():
        for below in inner.values():
            yield from _pages(below)


def _row(name: str, pages: list[Path]) -> tuple[str, ...]:
    counts = (sum(len(text(page).split()) for page in pages) for text in (running_text, written_text))
    return (name, *(f"{count:,}" for count in (len(pages), *counts)))


def main() -> int:
    """Print a table."""
    found = sections()
    rows = [_row(name, pages) for name, pages in found.items()]
    rows.append(_row("All", written_pages()))
    print("\n".join(table(("section", "pages", "words of running text", "words, tables included"), rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
