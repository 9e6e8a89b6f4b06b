"""The worked examples of a spec: tensors and values in short, as arguments of a case."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.core.case_json import argument_from_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.speclang.model import Example
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ExampleModel
from aclnn_cts.speclang.yaml_file import YamlPath

_TENSOR = re.compile(r"([A-Z][A-Z0-9_]*) \[((?:[0-9]{1,12}(?:, ?[0-9]{1,12})*)?)\](?: ([A-Z][A-Z0-9_]*))?(?: = (.+))?")
_RANGE = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_MOST = 65536
"""Values that an example writes out."""


def build_examples(
    models: Sequence[ExampleModel], problems: Problems, kinds: Mapping[str, str], products: Sequence[str]
) -> tuple[Example, ...]:
    """The examples, with an argument for each parameter of `kinds`."""
    return tuple(
        _example(entry, ("examples", number), problems, kinds, products) for number, entry in enumerate(models)
    )


def _example(
    entry: ExampleModel, path: YamlPath, problems: Problems, kinds: Mapping[str, str], products: Sequence[str]
) -> Example:
    if entry.product is not None:
        problems.known(entry.product, products, (*path, "product"), "product")
    arguments: dict[str, Any] = {}
    for name, kind in kinds.items():
        place = (*path, "arguments", name)
        if name not in entry.arguments:
            problems.add(place[:-1], f"argument {quote(name)} is missing; an example gives them all")
            continue
        where = problems.file.location_of(place)
        try:
            content = _argument(entry.arguments[name], kind, where)
            arguments[name] = argument_from_json(content, where=where, path=name)
        except UsageError as error:
            problems.messages[str(error)] = None
    for name in entry.arguments:
        problems.known(name, kinds, (*path, "arguments", name), "parameter")
    return Example(name=entry.name, at=entry.at, product=entry.product, arguments=arguments)


def _argument(value: object, kind: str, where: str) -> object:
    """One argument as a case file writes it; a mapping is taken as it is. UsageError for a text that is no tensor."""
    if value is None or isinstance(value, dict):
        return value
    if kind == "tensor_list" and isinstance(value, list):
        return {kind: [_tensor(item, where) for item in value]}
    return {kind: _tensor(value, where) if kind == "tensor" else value}


def _tensor(text: object, where: str) -> dict[str, Any]:
    found = _TENSOR.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise UsageError(
            f"{where}: {quote(text)}; expected a tensor such as `FLOAT [4, 2] = 0..7`, or as a case file writes it"
        )
    dtype, sizes, form, data = found.groups()
    shape = [int(size) for size in sizes.split(",") if size]
    made: dict[str, Any] = {"shape": shape, "dtype": dtype, "format": form or "ND"}
    return made if data is None else {**made, "data": {"values": _values(data, math.prod(shape), where)}}


def _values(text: str, count: int, where: str) -> list[int | float]:
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
        raise UsageError(f"{where}: {quote(text)}; expected LOW..HIGH, a number, or numbers with commas between them")
    if len(values) != count:
        raise UsageError(f"{where}: {len(values)} values; the shape has {count}")
    return values
