"""Short ways to write values: names in braces such as `{name}`, and one item in the place of a list of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_LISTS = frozenset({"products", "requires", "also", "contradicts", "faults", "rules"})
"""Keys whose values are lists; one item may stand for a list of one."""


def with_lists(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with a list wherever one item stands for it."""
    return {key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in entry.items()}


def placed(value: Any, values: Mapping[str, object]) -> Any:  # noqa: ANN401 - a YAML value
    """A value with others in the place of their names in braces, keys included; a name alone stands for the value."""
    if isinstance(value, str):
        alone = _PLACEHOLDER.fullmatch(value)
        if alone is not None and alone[1] in values:
            return values[alone[1]]
        return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), value)
    if isinstance(value, list):
        return [placed(item, values) for item in value]
    if isinstance(value, dict):
        return {
            str(placed(key, values)) if isinstance(key, str) else key: placed(item, values)
            for key, item in value.items()
        }
    return value


def placeholders(value: object) -> set[str]:
    """The names in braces anywhere in a value."""
    if isinstance(value, str):
        return set(_PLACEHOLDER.findall(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {name for item in items for name in placeholders(item)}
