"""`others` in a list by product: what holds for every product of the spec that the list does not name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath

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
