"""What commands print: text for a person through rich, or JSON alone, one object a line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aclnn_cts.core.printable import printable_document, printable_json, printable_lines

DEFAULT_WIDTH = 80
NARROWEST = 40
LONGEST_LINE = 120
"""Running text wider than this is hard to read, however wide the terminal is."""


def emit(document: Mapping[str, Any]) -> None:
    """One JSON object as one line of standard output."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write(printable_json(text) + "\n")


def note(text: str) -> None:
    """A line for a person on standard error, after what stands on standard output so far."""
    sys.stdout.flush()
    click.echo(printable_lines(text), err=True)


def begin(what: str) -> None:
    """Say on a terminal what begins, before the imports of a command and what it reads, which take their time."""
    if sys.stderr.isatty():
        note(f"{what} ...")


def console(*, errors: bool = False) -> Console:
    """Standard output for a person: colours on a terminal alone (never with NO_COLOR), plain text elsewhere.

    `errors`: standard error instead, where JSON has standard output for itself.
    """
    stream = sys.stderr if errors else sys.stdout
    terminal = stream.isatty()
    width = _columns() or (None if terminal else DEFAULT_WIDTH)
    return OutsideConsole(
        file=stream,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=None if terminal else False,
    )


class OutsideConsole(Console):
    """Shows hidden characters of what it prints, and lets a closed pipe be an error like any other."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError again: rich itself ends the process with exit code 1."""
        raise  # noqa: PLE0704 - rich calls this where it handles the exception

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """As `Console.print`, of printable text."""
        super().print(*map(printable_item, objects), **options)


def printable_item(item: Any) -> Any:  # noqa: ANN401 - whatever rich can print
    """Text without hidden characters; anything else as it is."""
    if isinstance(item, str):
        return item if item.isprintable() else printable_document(item)
    if isinstance(item, Text) and not item.plain.isprintable() and item.plain != printable_document(item.plain):
        return Text(printable_document(item.plain), style=item.style)
    return item


class _OutsideTable(Table):
    def add_row(self, *cells: Any, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """As `Table.add_row`, of printable cells."""
        super().add_row(*map(printable_item, cells), **options)


def _columns() -> int | None:
    """The width that COLUMNS asks for, where it asks for one."""
    text = os.environ.get("COLUMNS", "")
    return max(int(text), NARROWEST) if text.isascii() and text.isdigit() and len(text) < 5 else None


def table(*columns: str, right: Collection[str] = ()) -> Table:
    """A table with no line but the one under its header, and none where no terminal shows it.

    `right`: columns whose cells stand at the right, as numbers do.
    """
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    made = _OutsideTable(box=style, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", collapse_padding=True)
    made.show_edge = False
    for column in columns:
        made.add_column(column, overflow="fold", justify="right" if column in right else "left")
    return made


def show_rows(
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()
) -> None:
    """Print a table of these rows."""
    made = table(*columns, right=right)
    for row in rows:
        made.add_row(*row)
    show_table(out, made)


def show_table(out: Console, made: Table) -> None:
    """Print a table; on anything but a terminal without the blanks that pad its lines."""
    if out.is_terminal:
        out.print(made)
        return
    with out.capture() as capture:
        out.print(made)
    out.file.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def wrap(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print running text within the width, every line indented."""
    width = min(out.width, LONGEST_LINE) - indent
    for line in Text(printable_document(text), style=style).wrap(out, width, overflow="fold", no_wrap=False):
        line.rstrip()
        out.print(Text(" " * indent) + line, soft_wrap=True)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def join_words(words: Sequence[str], nothing: str = "none") -> str:
    """Words with commas, or a word for none."""
    return ", ".join(words) or nothing


def span(seconds: float) -> str:
    """`1:02:03`."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
