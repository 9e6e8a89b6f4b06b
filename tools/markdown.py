"""What generated pages share: the note on where they come from, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def head(source: str) -> Iterator[str]:
    """The first lines of a page that is made from `source`."""
    yield f"<!-- Made from {source} by `make docs`; change it there. -->"
    yield ""


def table(columns: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> Iterator[str]:
    """A table, a row a line."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"


def between(page: str, start: str, end: str, text: str) -> str:
    """A page with other text in the place of what lies from one mark to the other; the marks are the text's to repeat.

    Raises ValueError where the page lacks them.
    """
    first, last = page.find(start), page.find(end)
    if not 0 <= first < last:
        raise ValueError(f"expected a line {start} and below it a line {end}")
    return page[:first] + text + page[last + len(end) :]


def _cell(text: str) -> str:
    """A cell's text: what Markdown would read as its own is escaped, outside of `code`."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    parts[::2] = [part.replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)
