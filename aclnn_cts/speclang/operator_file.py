"""A spec file with all that it stands for: its family, lists for `others`, an entry for each of several, `let` put in.

Each place in the result keeps the place in the file that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.expression import FUNCTIONS
from aclnn_cts.speclang.expression_parser import ExpressionError, parse, substitute_names
from aclnn_cts.speclang.families import with_family_content
from aclnn_cts.speclang.placeholders import expand_entries
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import OperatorModel
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath


class _Named(msgspec.Struct):
    name: str
    type: str


class _Includable(msgspec.Struct):
    """What has to be right of a file before anything is put in; all of it is held to `OperatorModel` afterwards."""

    products: list[str]
    parameters: list[_Named]
    family: str | None = None
    first: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    let: dict[str, bool | int | float | str] = {}
    defaults: dict[str, Any] = {}
    clauses: dict[str, Any] = {}
    draws: list[dict[str, Any]] = []
    constraints: list[dict[str, Any]] = []


def read_operator(problems: Problems) -> OperatorModel | None:
    """The whole content of a spec file, which `problems.file` then has; None after a mistake of form or an include."""
    problems.file = expand_entries(problems.file)
    try:
        msgspec.convert(problems.file.content, _Includable)
    except msgspec.ValidationError:
        return problems.read(OperatorModel, problems.file.content)
    problems.file = _with_meanings(_with_other_products(with_family_content(problems.file, problems)), problems)
    operator = problems.read(OperatorModel, problems.file.content)
    return operator if not problems.messages else None


_OTHERS = "others"
_SECTIONS = ("tables", "rows", "modes", "defaults", "parameters")


def _with_other_products(file: YamlFile) -> YamlFile:
    """The file with a list for each product where `others` stands for several."""
    products = [str(name) for name in file.content["products"]]
    origins: dict[YamlPath, YamlPath] = {**file.origins}
    made = {
        key: _named(value, products, (key,), origins) if key in _SECTIONS else value
        for key, value in file.content.items()
    }
    return replace(file, content=made, origins=origins)


def _named(value: Any, products: Iterable[str], path: YamlPath, origins: dict[YamlPath, YamlPath]) -> Any:  # noqa: ANN401 - YAML
    if isinstance(value, list):
        return [_named(item, products, (*path, place), origins) for place, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if _OTHERS not in value:
        return {key: _named(item, products, (*path, key), origins) for key, item in value.items()}
    origins.update({(*path, name): (*path, _OTHERS) for name in products if name not in value})
    beside = {key: item for key, item in value.items() if key not in (*products, _OTHERS)}
    return {**beside, **{name: value.get(name, value[_OTHERS]) for name in products}}


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
_NAMED_SECTIONS = ("defaults", "parameters", "draws", "constraints")
_CONDITIONS = ("sentences", "clauses")
"""Sections whose only expressions are those of the key `when`."""


def _with_meanings(file: YamlFile, problems: Problems) -> YamlFile:
    """The file with the names of `let` replaced."""
    meanings: dict[str, str] = {}
    content: Mapping[str, Any] = file.content
    named = [*content["parameters"], *content.get("draws", [])]
    taken = {str(entry.get("name", entry.get("run"))) for entry in named}
    known = {*taken, *FUNCTIONS, *DTYPES, *FORMATS, "target", "true", "false"}
    for name, text in content.get("let", {}).items():
        if name in known:
            problems.add(("let", name), f"{quote(name)} means something else already; take another name")
            continue
        meaning = substitute_names(str(text).lower() if isinstance(text, bool) else str(text), meanings)
        try:
            parse(meaning)
        except ExpressionError as error:
            problems.add(("let", name), str(error))
            continue
        meanings[name] = meaning
    made = {
        key: _replaced(value, meanings, everywhere=key in _NAMED_SECTIONS)
        if key in (*_NAMED_SECTIONS, *_CONDITIONS)
        else value
        for key, value in content.items()
    }
    return replace(file, content=made) if meanings else file


def _replaced(value: Any, meanings: Mapping[str, str], *, everywhere: bool) -> Any:  # noqa: ANN401 - a YAML value
    if isinstance(value, str):
        return substitute_names(value, meanings) if everywhere else value
    if isinstance(value, list):
        return [_replaced(item, meanings, everywhere=everywhere) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _TEXTS else _replaced(item, meanings, everywhere=everywhere or key == "when")
            for key, item in value.items()
        }
    return value
