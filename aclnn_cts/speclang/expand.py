"""From the short form of a spec to the full one: properties become constraints, words become clauses.

Nothing after this step knows the short form. Each place in the result keeps the place in the file that it comes from.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aclnn_cts.speclang.build_context import Path
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.example_arguments import full_examples
from aclnn_cts.speclang.families import with_family
from aclnn_cts.speclang.named_expressions import with_meanings
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import imply, promised
from aclnn_cts.speclang.schema import ConstraintsModel, ShortOperatorModel
from aclnn_cts.speclang.sentences import Sentences
from aclnn_cts.speclang.stock_clauses import StockClauses
from aclnn_cts.speclang.yaml_file import YamlFile

__all__ = ["expand", "is_short"]

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
        model = ShortOperatorModel.model_validate(file.content)
        if model.family is not None:
            file = with_family(file, model.family, problems)
            problems = Problems(file, problems.messages)
            model = ShortOperatorModel.model_validate(file.content)
    except ValidationError as error:
        problems.validation(error, ShortOperatorModel)
        return None
    names = [item.name for item in model.parameters] + [str(item.name or item.run) for item in model.draws]
    content = _with_draws(with_meanings(file.content, names, problems), names)
    parameters: list[dict[str, Any]] = content["parameters"]
    kinds = [kind_of_type(item.type) or "tensor" for item in model.parameters]
    written: list[dict[str, Any]] = content.get("constraints", [])
    drawn, implied = imply(
        parameters, kinds, content.get("defaults", {}), [str(entry.get("id")) for entry in written], problems
    )
    constraints = [*implied.constraints, *(_constraint(entry, names) for entry in written)]
    places: list[Path] = [*implied.origins, *(file.written(("constraints", number)) for number in range(len(written)))]
    origins: dict[Path, Path] = {**file.origins}
    origins.update((("constraints", number), place) for number, place in enumerate(places))
    if model.rows is not None:
        content["rows"] = {key: list(_rows(rows)) for key, rows in model.rows.items()}
    full: dict[str, Any] = {key: value for key, value in content.items() if key not in _SHORT}
    full.update(parameters=drawn, constraints=constraints)
    expanded = replace(file, content=full, origins=origins, source=file.source or file.content)
    try:
        ConstraintsModel.model_validate({"constraints": constraints})
    except ValidationError as error:
        Problems(expanded, problems.messages).validation(error, ConstraintsModel)
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


def _rows(rows: Sequence[str | Sequence[str | Sequence[str]]]) -> Iterator[str | list[str]]:
    """Rows of dtypes, and names as they are: of a list in a row, each dtype makes a row of its own."""
    for row in rows:
        if isinstance(row, str):
            yield row
        else:
            yield from map(list, itertools.product(*([item] if isinstance(item, str) else item for item in row)))


def _given(value: object) -> object:
    """The value of a property that may be a mapping."""
    return value.get("is") if isinstance(value, dict) else value


def _constraint(entry: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A written rule with what follows from the rest of it."""
    made = {**entry, "strength": entry.get("strength", promised(entry, "limit"))}
    if "kind" not in made and {"that", "axis"} & made.keys():
        made["kind"] = "holds" if "that" in made else "size"
    owner = str(made.get("id")).partition(".")[0]
    if made.get("kind") not in ("holds", "mode", "dtype_rows") and owner in names:
        made.setdefault("of", owner)
    return made
