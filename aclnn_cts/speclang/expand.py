"""From the short form of a spec to the full one: properties, `others`, `let` and examples are written out.

Nothing after this step knows the short form. Each place in the result keeps the place in the file that it comes from.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.expression import FUNCTIONS
from aclnn_cts.speclang.expression_parser import ExpressionError, parse, substituted
from aclnn_cts.speclang.families import with_common
from aclnn_cts.speclang.placeholders import unrolled
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import followed, imply, written_rule
from aclnn_cts.speclang.schema import ConstraintsModel, ShortOperatorModel
from aclnn_cts.speclang.stock_clauses import Sentences, StockClauses
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath

_MOST_ITEMS = 16
"""Items of a bool array that are drawn one by one."""
_SHORT = frozenset({"family", "let", "defaults", "sentences"})
"""Keys that the full form does not have."""


def is_short(content: object) -> bool:
    """Whether a file is in the short form: its clauses are sorted by section, or left to be implied."""
    return isinstance(content, dict) and "operator" in content and not isinstance(content.get("clauses"), list)


def expand(file: YamlFile, problems: Problems) -> YamlFile | None:
    """The file in the full form; None where the short form is not kept."""
    try:
        problems.file = file = unrolled(file)
        ShortOperatorModel.model_validate(file.content)
        problems.file = file = with_other_products(with_common(file, problems))
        model = ShortOperatorModel.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, ShortOperatorModel)
        return None
    names = [item.name for item in model.parameters] + [str(item.name or item.run) for item in model.draws]
    content = _with_draws(with_meanings(file.content, names, problems), names)
    parameters: list[dict[str, Any]] = [_with_recipes(item) for item in content["parameters"]]
    if model.rows is not None:
        content["rows"] = _rows(content["rows"], names)
    kinds = [kind_of_type(item.type) or "tensor" for item in model.parameters]
    written = [written_rule(entry, names, content.get("rows", {})) for entry in content.get("constraints", [])]
    drawn, implied = imply(
        parameters, kinds, content.get("defaults", {}), [str(entry.get("id")) for entry in written], problems
    )
    places: list[YamlPath] = [
        *implied.origins,
        *(file.written(("constraints", number)) for number in range(len(written))),
    ]
    origins: dict[YamlPath, YamlPath] = {**file.origins}
    origins.update((("constraints", number), place) for number, place in enumerate(places))
    full: dict[str, Any] = {key: value for key, value in content.items() if key not in _SHORT}
    if model.modes is not None:
        full["modes"] = _modes(content["modes"])
    full["document"] = {"title": model.operator, **content["document"]}
    problems.file = expanded = replace(file, content=full, origins=origins, source=file.source or file.content)
    chained = followed(written, implied.constraints, problems)
    constraints = [*implied.constraints, *chained]
    full.update(parameters=drawn, constraints=constraints)
    try:
        ConstraintsModel.model_validate({"constraints": constraints})
    except ValidationError as error:
        problems.validation(error, ConstraintsModel)
    if problems.messages:
        return None
    stock = StockClauses(
        problems=problems,
        content=content,
        parameters=drawn,
        kinds=dict(zip([item.name for item in model.parameters], kinds, strict=True)),
        constraints=constraints,
        sentences=Sentences(model.products, model.tables),
    )
    clauses = list(stock.clauses(content.get("clauses", {})))
    origins.update({("clauses", number): place for number, (_, place) in enumerate(clauses)})
    full["clauses"] = [clause for clause, _ in clauses]
    if model.examples:
        full["examples"] = full_examples(content["examples"], stock.kinds, problems)
    return None if problems.messages else expanded


def _with_draws(content: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The content with a draw for each text with words, and for each item of a bool array of a known length."""
    parameters: list[dict[str, Any]] = []
    draws: list[dict[str, Any]] = []
    for item in content["parameters"]:
        kind, name = kind_of_type(item["type"]), item["name"]
        words, length = _given(item.get("words")), _given(item.get("length"))
        if kind == "string" and name not in names[len(content["parameters"]) :] and isinstance(words, list):
            draws.append({"name": name, "one_of": [f'"{word}"' for word in words]})
        elif kind == "bool_array" and "items" not in item and isinstance(length, int):
            places = [f"{name}_{place}" for place in range(min(length, _MOST_ITEMS))]
            draws.extend({"name": place, "one_of": [True, False]} for place in places)
            item = {**item, "items": f"[{', '.join(places)}]"}  # noqa: PLW2901
        parameters.append(item)
    return {**content, "parameters": parameters, "draws": [*draws, *content.get("draws", [])]}


def _rows(rows: Mapping[str, Sequence[Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Rows of dtypes: of a list in a row, each dtype makes a row; of a list of parameters, each has that column."""
    columns = [[column] if isinstance(column, str) else column for column in rows.get("parameters", [])]
    order = [(name, place) for place, column in enumerate(columns) for name in column]
    if any(len(column) > 1 for column in columns):
        order.sort(key=lambda pair: names.index(pair[0]) if pair[0] in names else len(names))
    made: dict[str, list[Any]] = {"parameters": [name for name, _ in order]} if "parameters" in rows else {}
    for product in rows.keys() - {"parameters"}:
        made[product] = [row for entry in rows[product] for row in _every_row(entry, [place for _, place in order])]
    return {key: made[key] for key in rows}


def _every_row(entry: str | Sequence[str | Sequence[str]], order: Sequence[int]) -> Iterator[str | list[str]]:
    """The rows of one entry, in the order of the prototype; what has another length is left to the build."""
    choices = [[item] if isinstance(item, str) else item for item in entry]
    for row in [] if isinstance(entry, str) else itertools.product(*choices):
        yield [row[place] for place in order] if len(row) == len(set(order)) else list(row)
    if isinstance(entry, str):
        yield entry


def _with_recipes(item: dict[str, Any]) -> dict[str, Any]:
    """A parameter whose data are recipes with all of their keys: one that is a word has those of `with`."""
    data = item.get("data", {})
    shared = data.get("with", {})
    made = {
        kind: [{"recipe": entry, **shared} if isinstance(entry, str) else entry for entry in entries]
        for kind, entries in data.items()
        if kind != "with"
    }
    return {**item, "data": made} if made else item


def _modes(modes: Mapping[str, Any]) -> dict[str, Any]:
    """The table of operands with a dtype for every mode, where one is written for all."""
    operand = {
        product: {dtype: row if isinstance(row, list) else [row] * len(modes["names"]) for dtype, row in rows.items()}
        for product, rows in modes["operand"].items()
    }
    return {**modes, "operand": operand}


def _given(value: object) -> object:
    """The value of a property that may be a mapping."""
    return value.get("is") if isinstance(value, dict) else value


_OTHERS = "others"
_SECTIONS = ("tables", "rows", "defaults", "parameters")


def with_other_products(file: YamlFile) -> YamlFile:
    """The file with a list for each product where `others` stands for several."""
    products = [str(name) for name in file.content["products"]]
    origins: dict[YamlPath, YamlPath] = {**file.origins}
    made = {
        key: _named(value, products, (key,), origins) if key in _SECTIONS else value
        for key, value in file.content.items()
    }
    return replace(file, content=made, origins=origins, source=file.source or file.content)


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
        key: _replaced(value, meanings, everywhere=key in _NAMED_SECTIONS)
        if key in (*_NAMED_SECTIONS, *_CONDITIONS)
        else value
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


_TENSOR = re.compile(r"([A-Z][A-Z0-9_]*) \[((?:[0-9]{1,12}(?:, ?[0-9]{1,12})*)?)\](?: ([A-Z][A-Z0-9_]*))?(?: = (.+))?")
_RANGE = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_MOST = 65536
"""Values that an example writes out."""


def full_examples(examples: list[dict[str, Any]], kinds: Mapping[str, str], problems: Problems) -> list[dict[str, Any]]:
    """The examples as the full form has them; the first one is called `document`, and is clause `example.1`."""
    return [
        {
            "name": "document",
            "at": "example.1",
            **example,
            "arguments": {
                name: _argument(value, kinds.get(name), ("examples", number, "arguments", name), problems)
                for name, value in example.get("arguments", {}).items()
            },
        }
        for number, example in enumerate(examples)
    ]


def _argument(value: object, kind: str | None, path: YamlPath, problems: Problems) -> object:
    """One argument as a case file writes it; a mapping is taken as it is."""
    if kind is None or value is None or isinstance(value, dict):
        return value
    if kind == "tensor_list" and isinstance(value, list):
        items = [_tensor(item, (*path, place), problems) for place, item in enumerate(value)]
        return {kind: [item.get("tensor", {}) for item in items]}
    return _tensor(value, path, problems) if kind == "tensor" else {kind: value}


def _tensor(text: object, path: YamlPath, problems: Problems) -> dict[str, Any]:
    found = _TENSOR.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        problems.add(
            path, f"{shown(text)}; expected a tensor such as `FLOAT [4, 2] = 0..7`, or as a case file writes it"
        )
        return {}
    dtype, sizes, form, data = found.groups()
    shape = [int(size) for size in sizes.split(",") if size]
    made: dict[str, Any] = {"shape": shape, "dtype": dtype, "format": form or "ND"}
    if data is not None:
        values = _values(data, math.prod(shape), path, problems)
        made["data"] = {"values": values}
    return {"tensor": made}


def _values(text: str, count: int, path: YamlPath, problems: Problems) -> list[int | float]:
    """`LOW..HIGH`, one number for all elements, or the numbers themselves."""
    bounds = _RANGE.fullmatch(text)
    words = [word.strip() for word in text.split(",")]
    values: list[int | float]
    if bounds is not None and int(bounds[2]) - int(bounds[1]) < _MOST:
        values = list(range(int(bounds[1]), int(bounds[2]) + 1))
    elif all(_NUMBER.fullmatch(word) for word in words) and count <= _MOST:
        values = [float(word) if "." in word else int(word) for word in words]
        values = values * count if len(values) == 1 else values
    else:
        problems.add(path, f"{shown(text)}; expected LOW..HIGH, a number, or numbers with commas between them")
        return []
    problems.add_if(len(values) != count, path, f"{len(values)} values; the shape has {count}")
    return values
