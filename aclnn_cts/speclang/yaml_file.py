"""Reading YAML from outside: data alone, bounded, with the line of every path.

YAML 1.2's core schema and nothing more: `no` is a string, there are no timestamps, and anchors, aliases and tags are
errors, so that a file can neither run code nor multiply itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outside import YAML_BYTES, YAML_DEPTH, YAML_ITEMS, read_outside
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote

YamlPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands in a file."""
_Event: TypeAlias = Any
"""PyYAML's events carry no types."""

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,39})\Z")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]{1,3})?|[0-9]+[eE][-+]?[0-9]{1,3})\Z")
_NUMBERISH = re.compile(r"[-+]?[0-9][0-9_]*\Z|[-+]?0[xob][0-9a-fA-F_]+\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NON_FINITE = {".inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(UsageError):
    """A YAML file that is not what is asked for; the message opens with file:line."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A parsed file: its name for messages, its values, and where each stands."""

    name: str
    text: str
    content: Any
    lines: Mapping[YamlPath, int]
    origins: Mapping[YamlPath, YamlPath] = field(default_factory=dict)
    """Of content with includes: the path in the file from which the value at a path comes."""

    def written(self, path: Sequence[str | int]) -> YamlPath:
        """The path in the file of a path in the content: another one where something was included."""
        place = tuple(path)
        for end in range(len(place), 0, -1):
            if (origin := self.origins.get(place[:end])) is not None:
                return (*origin, *place[end:])
        return place

    def line(self, path: Sequence[str | int]) -> int:
        """The line of a path, or of the nearest thing around it that stands in the file."""
        place = self.written(path)
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def location_of(self, path: Sequence[str | int]) -> str:
        """`file:line` of a path."""
        return f"{self.name}:{self.line(path)}"


def read_yaml(path: Path, *, name: str | None = None) -> YamlFile:
    """Read a file; every failure is a YamlError that names it."""
    where = name or str(path)
    raw = read_outside(path, limit=YAML_BYTES, expected="a YAML file", error=YamlError, name=where)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(f"{where}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return parse_yaml(text, name=where)


def parse_yaml(text: str, *, name: str) -> YamlFile:
    """Parse one YAML document into dicts, lists, strings, numbers, booleans and None, with the line of each path."""
    builder = _Builder(name, yaml.parse(text, Loader=_Loader))
    try:
        content = builder.document()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = printable(str(error.problem or error.context), ECHO_LIMIT)
        raise YamlError(f"{name}:{line}: not valid YAML: {reason}") from None
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise YamlError(f"{name}:1: not valid YAML: {printable(str(error), ECHO_LIMIT)}") from None
    return YamlFile(name=name, text=text, content=content, lines=builder.lines)


class _Builder:
    """Builds values from the parser's events, and notes the line of each."""

    def __init__(self, name: str, events: Iterator[_Event]) -> None:
        self.name = name
        self.lines: dict[YamlPath, int] = {}
        self._events = events

    def document(self) -> object:
        """The content of the one document; None where there is none."""
        contents: list[object] = []
        for event in self._events:
            if type(event) is yaml.DocumentStartEvent:
                if contents:
                    self._fail(event, "a second document; expected one document in a file")
                contents.append(self._node(next(self._events), ()))
        return contents[0] if contents else None

    def _node(self, event: _Event, path: YamlPath) -> object:
        self._refuse_extras(event)
        kind = type(event)
        if kind is not yaml.ScalarEvent and len(path) >= YAML_DEPTH:
            self._fail(event, f"nested deeper than {YAML_DEPTH} levels; flatten it")
        if len(self.lines) >= YAML_ITEMS:
            self._fail(event, f"more than {YAML_ITEMS} values; split the file")
        self.lines[path] = event.start_mark.line + 1
        if kind is yaml.ScalarEvent:
            return self._value(event)
        if kind is yaml.SequenceStartEvent:
            items: list[object] = []
            while type(item := next(self._events)) is not yaml.SequenceEndEvent:
                items.append(self._node(item, (*path, len(items))))
            return items
        entries: dict[str, object] = {}
        while type(key := next(self._events)) is not yaml.MappingEndEvent:
            self._refuse_extras(key)
            if type(key) is not yaml.ScalarEvent:
                self._fail(key, "a key that is a list or a mapping; expected a plain key")
            if key.value in entries:
                self._fail(key, f"key {quote(key.value)} stands twice; keep one")
            entries[key.value] = self._node(next(self._events), (*path, key.value))
        return entries

    def _fail(self, event: _Event, message: str) -> NoReturn:
        raise YamlError(f"{self.name}:{event.start_mark.line + 1}: {message}")

    def _refuse_extras(self, event: _Event) -> None:
        """Aliases, anchors and tags."""
        if event.anchor is not None:
            sort = "alias *" if type(event) is yaml.AliasEvent else "anchor &"
            name = printable(event.anchor, ECHO_LIMIT)
            self._fail(event, f"{sort}{name}; anchors and aliases are refused, write the value out")
        if event.tag is not None:
            self._fail(event, f"tag {printable(event.tag, ECHO_LIMIT)}; tags are refused, write plain values")

    def _value(self, event: _Event) -> object:
        text: str = event.value
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            number = float(text)
            if not math.isfinite(number):
                self._fail(event, f"{quote(text[:40])} is larger than any double; write .inf where infinity is meant")
            return number
        if text in _NON_FINITE:
            return _NON_FINITE[text]
        if _NUMBERISH.match(text):
            self._fail(
                event, f"{quote(text[:40])} is no decimal number that is taken here; quote it or write it in decimal"
            )
        return text
