"""What a command prints, from one document: JSON, or text by a view of the same fields.

A view is a sequence of parts. In a text of it `{path}` stands for a field of the document:

- `{cases:case}` counts (`2 cases`), as does `{entries:entry/entries}`. `{share:.1%}` formats a number.
- `{name|none}` gives a word where the field is missing or empty.
- `{?name}` prints nothing, and asks that the field is there; `{!name}` that it is not.
- What stands in brackets is left out where one of its fields is missing, empty or 0.

A line is left out where a field outside of brackets is missing or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rich.console import Console

from aclnn_cts.cli.output import console, count, emit, join_words, show_rows, wrap

Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextLine:
    """Running text."""

    text: str
    indent: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with a row for each item of a list, or for each `key` and `value` of an object."""

    path: str
    columns: Mapping[str, str]
    """Text of the cells by title."""
    most: int | None = None
    """Items that are shown; --json has all."""
    title: str | None = None
    """Stands above, after an empty line, where there is any item."""


@dataclass(frozen=True, slots=True)
class RepeatedView:
    """Parts that are repeated for each item of a list; fields of the item hide those of the document."""

    path: str
    parts: View
    most: int | None = None
    title: str | None = None


View: TypeAlias = "Sequence[str | TextLine | TableView | RepeatedView]"
"""A text alone is a line; an empty one is an empty line."""


_NONE: Fields = MappingProxyType({})


def show(document: Fields, view: View, words: Fields = _NONE, *, as_json: bool, errors: bool = False) -> None:
    """Print a document on standard output: as one JSON object, or as text.

    - `words`: fields of the text that the document has not, or says in codes.
    - `errors`: print text on standard error, where standard output holds something else.
    """
    if as_json:
        emit(document)
    else:
        render(console(errors=errors), view, words, document)


def render(out: Console, view: View, *scope: Fields) -> None:
    """Print the parts of a view. A field is looked up in the first mapping of the scope that has it."""
    for part in view:
        if isinstance(part, (RepeatedView, TableView)):
            _render_items(out, part, scope)
            continue
        line = TextLine(part) if isinstance(part, str) else part
        text = fill(line.text, *scope)
        if text is not None:
            wrap(out, text, indent=line.indent, style=line.style)


def _render_items(out: Console, part: RepeatedView | TableView, scope: Sequence[Fields]) -> None:
    found = list(_items(_field(part.path, scope)))
    shown = found[: part.most]
    if not found:
        return
    if part.title is not None:
        render(out, ("", part.title), *scope)
    if isinstance(part, TableView):
        rows = [tuple(fill(text, item, *scope) or "" for text in part.columns.values()) for item in shown]
        show_rows(out, tuple(part.columns), rows)
    else:
        for item in shown:
            render(out, part.parts, item, *scope)
    if len(shown) < len(found):
        wrap(out, f"and {len(found) - len(shown)} more; --json has all", indent=2)


def _items(value: object) -> Iterator[Fields]:
    if isinstance(value, Mapping):
        yield from ({"key": key, "value": item} for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        yield from (item if isinstance(item, Mapping) else {"value": item} for item in value)


_OPTIONAL = re.compile(r"\[([^\[\]]*\{[^\[\]]*)\]")
_FIELD = re.compile(r"\{([?!]?)([\w.]+)(?::([^}|]+))?(?:\|([^}]*))?\}")


def fill(text: str, *scope: Fields) -> str | None:
    """A text with its fields; None where it is to be left out."""
    filled: list[str] = []
    for place, piece in enumerate(_OPTIONAL.split(text)):
        made = _filled(piece, scope, optional=bool(place % 2))
        if made is None and not place % 2:
            return None
        filled.append(made or "")
    return "".join(filled)


def _filled(text: str, scope: Sequence[Fields], *, optional: bool) -> str | None:
    missing: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        mark, path, form, other = match.groups()
        value = _field(path, scope)
        there = bool(value) if optional or mark else value not in (None, "", (), [], {})
        if there is (mark == "!") and other is None:
            missing.append(path)
        return "" if mark else _text(value, form or "") if there else other or ""

    made = _FIELD.sub(value_of, text)
    return None if missing else made


def _field(path: str, scope: Sequence[Fields]) -> object:
    first, *rest = path.split(".")
    value: Any = next((fields[first] for fields in scope if first in fields), None)
    for name in rest:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Any, form: str) -> str:  # noqa: ANN401 - any JSON
    if form[:1].isalpha():
        singular, _, plural = form.partition("/")
        return count(value if isinstance(value, int) else len(value), singular, plural or None)
    if isinstance(value, (list, tuple)):
        return join_words([str(item) for item in value])
    return format(value, form)
