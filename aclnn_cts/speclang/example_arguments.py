"""Arguments of worked examples in the short form of a spec: `FLOAT [4, 2] NCL = 0..7`, and plain numbers and lists."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.yaml_file import YamlPath

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
