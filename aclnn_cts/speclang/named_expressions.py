"""`let` of the short form: names for expressions, put in wherever an expression of the spec reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.expression import FUNCTIONS
from aclnn_cts.speclang.expression_parser import ExpressionError, parse, substituted
from aclnn_cts.speclang.problems import Problems

_TEXTS = frozenset(
    {
        "id",
        "kind",
        "strength",
        "status",
        "products",
        "requires",
        "also",
        "follows",
        "group",
        "unsafe",
        "name",
        "type",
        "role",
    }
    | {
        "null",
        "dtypes",
        "same_dtype_as",
        "promotes_with",
        "casts_from",
        "formats",
        "same_format_as",
        "layouts",
        "dtype",
        "format",
        "recipe",
    }
    | {"run", "words"}
)
"""Keys whose values are no expressions."""
_SECTIONS = ("defaults", "parameters", "draws", "constraints")
_CONDITIONS = ("sentences", "clauses")
"""Sections whose only expressions are those of the key `when`."""


def with_meanings(content: Mapping[str, Any], taken: Collection[str], problems: Problems) -> dict[str, Any]:
    """The content with the names of `let` replaced; `taken` are names that mean something else."""
    meanings: dict[str, str] = {}
    known = {*taken, *FUNCTIONS, *DTYPES, *FORMATS, "target", "true", "false"}
    for name, text in content.get("let", {}).items():
        if name in known:
            problems.add(("let", name), f"{shown(name)} means something else already; take another name")
            continue
        meaning = substituted(str(text).lower() if isinstance(text, bool) else str(text), meanings)
        try:
            parse(meaning)
        except ExpressionError as error:
            problems.add(("let", name), str(error))
            continue
        meanings[name] = meaning
    if not meanings:
        return dict(content)
    return {
        key: _replaced(value, meanings, everywhere=key in _SECTIONS) if key in (*_SECTIONS, *_CONDITIONS) else value
        for key, value in content.items()
    }


def _replaced(value: Any, meanings: Mapping[str, str], *, everywhere: bool) -> Any:  # noqa: ANN401 - a YAML value
    if isinstance(value, str):
        return substituted(value, meanings) if everywhere else value
    if isinstance(value, list):
        return [_replaced(item, meanings, everywhere=everywhere) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _TEXTS else _replaced(item, meanings, everywhere=everywhere or key == "when")
            for key, item in value.items()
        }
    return value
