"""From the short form of a spec to the full one: properties become constraints, words become clauses.

Nothing after this step knows the short form. Each place in the result keeps the place in the file that it comes from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.example_arguments import full_examples
from aclnn_cts.speclang.families import with_common
from aclnn_cts.speclang.named_expressions import with_meanings
from aclnn_cts.speclang.other_products import with_other_products
from aclnn_cts.speclang.placeholders import unrolled
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import imply
from aclnn_cts.speclang.schema import ConstraintsModel, ShortOperatorModel
from aclnn_cts.speclang.sentences import Sentences
from aclnn_cts.speclang.stock_clauses import StockClauses
from aclnn_cts.speclang.written_rules import followed, written_rule
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
