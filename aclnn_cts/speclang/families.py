"""Families: what the specs of alike operators have in common, put into the short form before it is expanded.

A spec wins over its family: key by key in mappings and parameters, and by name or id in lists. A family may have a
family itself.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aclnn_cts.speclang.build_context import Path
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.package import checked_file, package_folder
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import role_of
from aclnn_cts.speclang.schema import FamilyModel
from aclnn_cts.speclang.yaml_file import YamlFile, read_yaml

__all__ = ["family_names", "with_family"]

_ALTERNATIVES = (frozenset({"shape", "same_shape_as"}), frozenset({"dtype", "same_dtype_as"}))
"""Properties that say the same thing: one of the spec replaces each of the family."""
_LISTS: Mapping[str, tuple[str, ...]] = {"draws": ("name", "run"), "constraints": ("id",)}
"""Sections that are lists, and the keys that name an entry."""
_MAPPINGS = ("let", "defaults", "clauses")


@functools.cache
def family_names() -> tuple[str, ...]:
    """The families that ship."""
    return tuple(sorted(path.stem for path in (package_folder() / "families").glob("*.yaml")))


@functools.cache
def _family(name: str) -> Mapping[str, Any]:
    """The content of a family's file over that of its own family."""
    path = package_folder() / "families" / f"{name}.yaml"
    file = read_yaml(path, name=f"specs/families/{path.name}")
    model = checked_file(file, FamilyModel)
    content: dict[str, Any] = dict(file.content)
    parent = content.pop("family", None)
    if model.family is None or parent is None:
        return content
    inherited = dict(_family(model.family))
    for key in ("first", "inputs", "outputs", *_MAPPINGS):
        content[key] = {**inherited.get(key, {}), **content.get(key, {})}
    by_name = inherited.get("parameters", {})
    content["parameters"] = {
        key: {**by_name.get(key, {}), **content.get("parameters", {}).get(key, {})}
        for key in (*by_name, *content.get("parameters", {}))
    }
    for key in _LISTS:
        content[key], _ = _joined(key, inherited.get(key, []), content.get(key, []))
    return content


def with_family(file: YamlFile, name: str, problems: Problems) -> YamlFile:
    """A file in the short form with what its family says besides; each place keeps the line that it comes from."""
    if not problems.known(name, family_names(), ("family",), "family"):
        return file
    family = _family(name)
    own: Mapping[str, Any] = file.content
    content = {key: value for key, value in own.items() if key != "family"}
    origins: dict[Path, Path] = {}
    first = next((item["name"] for item in own["parameters"] if _role(item) == "input"), "")
    for key in _MAPPINGS:
        content[key] = {**family.get(key, {}), **own.get(key, {})}
        origins.update({(key, word): ("family",) for word in family.get(key, {}) if word not in own.get(key, {})})
    content["parameters"] = [_parameter(item, family, first) for item in own["parameters"]]
    for key in _LISTS:
        content[key], places = _joined(key, family.get(key, []), own.get(key, []))
        origins.update(
            ((key, number), ("family",) if place is None else (key, place)) for number, place in enumerate(places)
        )
    return replace(file, content=_named(content, first), origins=origins, source=own)


def _role(item: Mapping[str, Any]) -> str:
    return role_of(item, kind_of_type(str(item["type"])) or "tensor")


def _parameter(item: Mapping[str, Any], family: Mapping[str, Any], first: str) -> dict[str, Any]:
    """A parameter with the properties that the family gives it by its name and its role."""
    role = _role(item)
    roles = {"input": "first" if item["name"] == first else "inputs", "output": "outputs"}
    given: dict[str, Any] = {
        **(family.get(roles[role], {}) if role in roles else {}),
        **family.get("parameters", {}).get(item["name"], {}),
    }
    replaced = {key for words in _ALTERNATIVES if words & item.keys() for key in words}
    return {**{key: value for key, value in given.items() if key not in replaced}, **item}


def _joined(
    key: str, inherited: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[int | None]]:
    """The family's entries, each replaced by the spec's of its name, then the spec's others; and where each stands.

    What the spec lists directly before an entry that replaces one of the family is before it in the result too.
    """
    words = _LISTS[key]
    mine = {_name(entry, words): number for number, entry in enumerate(own)}
    taken = [mine.get(_name(entry, words)) for entry in inherited]
    made: list[Mapping[str, Any]] = []
    places: list[int | None] = []
    for entry, place in zip(inherited, taken, strict=True):
        first = place
        while first is not None and first > 0 and first - 1 not in taken:
            first -= 1
        numbers = [None] if first is None or place is None else list(range(first, place + 1))
        places += numbers
        made += [entry if number is None else own[number] for number in numbers]
    others = [number for number in range(len(own)) if number not in places]
    return [*made, *(own[number] for number in others)], [*places, *others]


def _name(entry: Mapping[str, Any], words: Sequence[str]) -> str:
    return str(next((entry[word] for word in words if word in entry), ""))


def _named(value: Any, first: str) -> Any:  # noqa: ANN401 - a YAML value
    """A value with the name of the first input in the place of `{first}`."""
    if isinstance(value, str):
        return value.replace("{first}", first)
    if isinstance(value, list):
        return [_named(item, first) for item in value]
    return {key: _named(item, first) for key, item in value.items()} if isinstance(value, dict) else value
