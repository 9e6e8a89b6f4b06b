"""What generated pages share: the note on where they come from, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["head", "table"]


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


def _cell(text: str) -> str:
    """A cell's text: what Markdown would read as its own is escaped, outside of `code`."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    parts[::2] = [part.replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)
