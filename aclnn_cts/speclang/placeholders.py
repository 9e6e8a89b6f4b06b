"""Short ways to write: names in braces, an item in the place of a list of one, one entry for several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_LISTS = frozenset({"products", "requires", "also", "contradicts", "faults", "rules"})
"""Keys whose values are lists; one item may stand for a list of one."""
_MOST = 64
"""Values for which one entry is repeated, and one more."""


def expand_lists(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with a list wherever one item stands for it."""
    return {key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in entry.items()}


def fill_placeholders(value: Any, values: Mapping[str, object]) -> Any:  # noqa: ANN401 - a YAML value
    """A value with others in the place of their names in braces, keys included; a name alone stands for the value."""
    if isinstance(value, str):
        alone = _PLACEHOLDER.fullmatch(value)
        if alone is not None and alone[1] in values:
            return values[alone[1]]
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), value)
    if isinstance(value, list):
        return [fill_placeholders(item, values) for item in value]
    if isinstance(value, dict):
        return {
            str(fill_placeholders(key, values)) if isinstance(key, str) else key: fill_placeholders(item, values)
            for key, item in value.items()
        }
    return value


def placeholders(value: object) -> set[str]:
    """The names in braces anywhere in a value."""
    if isinstance(value, str):
        return set(_PLACEHOLDER.findall(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {name for item in items for name in placeholders(item)}


def expand_entries(file: YamlFile) -> YamlFile:
    """The file with one entry for each rule of `for` and `rules`, and for each name of parameters and draws."""
    sections: Mapping[str, Callable[[Any, YamlPath], Iterator[tuple[Any, YamlPath]]]]
    sections = {"constraints": _rules, "parameters": _named, "draws": _named}
    for section, expand in sections.items():
        entries = file.content.get(section) if isinstance(file.content, dict) else None
        if not isinstance(entries, list):
            continue
        made = [found for number, entry in enumerate(entries) for found in expand(entry, (section, number))]
        expanded = [entry for entry, _ in made]
        if expanded == entries:
            continue
        lines = {place: line for place, line in file.lines.items() if place[:1] != (section,)}
        for number, (_, path) in enumerate(made):
            for place, line in file.lines.items():
                if place[: len(path)] == path:
                    new: YamlPath = (section, number, *place[len(path) :])
                    lines[new] = line
        file = replace(file, content={**file.content, section: expanded}, lines=lines)
    return file


def _named(entry: Any, path: YamlPath) -> Iterator[tuple[Any, YamlPath]]:  # noqa: ANN401 - a YAML value
    """The entry with each of its names, where it has several."""
    for key in ("name", "run"):
        names = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(names, list) and 0 < len(names) < _MOST:
            yield from (({**entry, key: name}, path) for name in names)
            return
    yield entry, path


def _is_repeated(entry: object) -> bool:
    """Whether an entry is of this form; any other is left to the schema."""
    if not isinstance(entry, dict) or entry.keys() != {"for", "rules"}:
        return False
    columns, rules = entry["for"], entry["rules"]
    if not isinstance(columns, dict) or not isinstance(rules, list):
        return False
    lists = [values for values in columns.values() if isinstance(values, list)]
    lengths = {len(values) for values in lists}
    is_table = len(lists) == len(columns) and len(lengths) == 1 and lengths <= set(range(1, _MOST))
    return is_table and all(isinstance(rule, dict) for rule in rules)


def _rules(entry: Any, path: YamlPath) -> Iterator[tuple[Any, YamlPath]]:  # noqa: ANN401 - a YAML value
    """The rules of one entry, and where each is written."""
    if not _is_repeated(entry):
        yield entry, path
        return
    columns = entry["for"]
    for values in zip(*columns.values(), strict=True):
        for place, rule in enumerate(entry["rules"]):
            yield fill_placeholders(rule, dict(zip(columns, values, strict=True))), (*path, "rules", place)
