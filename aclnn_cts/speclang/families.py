"""What parameters have in common, put into a spec: by role, and by family.

A family holds what the specs of alike operators share. A spec wins over its family: key by key in mappings and
parameters, and by name or id in lists. A family may have a family itself.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.package import checked_file, package_folder
from aclnn_cts.speclang.placeholders import expand_entries, fill_placeholders
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import PROPERTIES, merge_property, role_of
from aclnn_cts.speclang.schema import FamilyModel
from aclnn_cts.speclang.yaml_file import YamlFile, YamlPath, read_yaml

_ALTERNATIVES = (
    frozenset({"shape", "same_shape_as"}),
    frozenset({"dtype", "same_dtype_as", "promotes_with", "casts_from"}),
)
"""Properties that say the same thing: one of the spec replaces each of the family."""
_LISTS: Mapping[str, tuple[str, ...]] = {"draws": ("name", "run"), "constraints": ("id",)}
"""Sections that are lists, and the keys that name an entry."""
_MAPPINGS = ("let", "defaults", "clauses")
_ROLES = ("first", "inputs", "outputs")


@functools.cache
def family_names() -> tuple[str, ...]:
    """The families that ship."""
    return tuple(sorted(path.stem for path in (package_folder() / "families").glob("*.yaml")))


@functools.cache
def family_content(name: str) -> Mapping[str, Any]:
    """The content of a family's file over that of its own family."""
    path = package_folder() / "families" / f"{name}.yaml"
    file = expand_entries(read_yaml(path, name=f"specs/families/{path.name}"))
    checked_file(file, FamilyModel)
    content: dict[str, Any] = dict(file.content)
    parent = content.pop("family", None)
    if parent is None:
        return content
    inherited = dict(family_content(parent))
    for key in (*_ROLES, *_MAPPINGS):
        content[key] = {**inherited.get(key, {}), **content.get(key, {})}
    by_name = inherited.get("parameters", {})
    content["parameters"] = {
        key: {**by_name.get(key, {}), **content.get("parameters", {}).get(key, {})}
        for key in (*by_name, *content.get("parameters", {}))
    }
    content.setdefault("elementwise", inherited.get("elementwise"))
    content.setdefault("large_calls", inherited.get("large_calls", []))
    for key in _LISTS:
        content[key], _ = _joined(key, inherited.get(key, []), content.get(key, []))
    return content


def with_family_content(file: YamlFile, problems: Problems) -> YamlFile:
    """A file with what its family and its own roles say; each place keeps the line it comes from."""
    own: Mapping[str, Any] = file.content
    name = own.get("family")
    if name is None and not any(key in own for key in _ROLES):
        return file
    if name is not None and not problems.known(name, family_names(), ("family",), "family"):
        return file
    family = family_content(name) if name is not None else {}
    roles = {key: {**family.get(key, {}), **own.get(key, {})} for key in _ROLES}
    content = {key: value for key, value in own.items() if key not in ("family", *_ROLES)}
    origins: dict[YamlPath, YamlPath] = {}
    names = {
        word: next((item["name"] for item in own["parameters"] if _role(item) == role), "")
        for word, role in (("first", "input"), ("output", "output"))
    }
    for key in _MAPPINGS:
        content[key] = {**family.get(key, {}), **own.get(key, {})}
        origins.update({(key, word): ("family",) for word in family.get(key, {}) if word not in own.get(key, {})})
    content["elementwise"] = own.get("elementwise", family.get("elementwise"))
    content["large_calls"] = own.get("large_calls", family.get("large_calls", []))
    origins.update({("large_calls",): ("family",)} if "large_calls" not in own else {})
    content["parameters"] = [
        _parameter(item, roles, family.get("parameters", {}), names["first"]) for item in own["parameters"]
    ]
    for key in _LISTS:
        content[key], places = _joined(key, family.get(key, []), own.get(key, []))
        origins.update(
            ((key, number), ("family",) if place is None else (key, place)) for number, place in enumerate(places)
        )
        if key == "constraints":
            inherited = {entry.get("id") for entry, place in zip(content[key], places, strict=True) if place is None}
            _check_properties(own["parameters"], inherited, problems)
    return replace(file, content=fill_placeholders(content, names), origins=origins)


def _check_properties(parameters: Sequence[Mapping[str, Any]], inherited: Container[Any], problems: Problems) -> None:
    """A mistake for each property of the spec whose rule gives way to one of the family: the id is the same."""
    for number, item in enumerate(parameters):
        for key in (key for key in item if key in PROPERTIES and item[key] != "none"):
            rule = f"{item['name']}.{PROPERTIES[key].suffix}"
            problems.add_if(
                rule in inherited,
                ("parameters", number, key),
                f"{rule} is a rule of the family, which holds in place of this {key}; write it under `constraints`",
            )


def _role(item: Mapping[str, Any]) -> str:
    return role_of(item["type"], item.get("role"), kind_of_type(item["type"]) or "tensor")


def _parameter(
    item: Mapping[str, Any],
    roles: Mapping[str, Mapping[str, Any]],
    by_name: Mapping[str, Mapping[str, Any]],
    first: str,
) -> dict[str, Any]:
    """A parameter with the properties that it has by its name and its role."""
    of_inputs = "first" if item["name"] == first else "inputs"
    # An attribute with this role is a mistake, which properties of tensors would hide.
    of_both = "outputs" if "Tensor" in str(item["type"]) else ""
    role = {"input": of_inputs, "output": "outputs", "inout": of_both}.get(_role(item), "")
    given: dict[str, Any] = {**roles.get(role, {}), **by_name.get(item["name"], {})}
    given = fill_placeholders(given, {key: str(item[key]) for key in ("name", "like") if key in item})
    replaced = {key for words in _ALTERNATIVES if words & item.keys() for key in words - item.keys()}
    kept = {key: value for key, value in given.items() if key not in replaced}
    own = {key: merge_property(key, kept[key], value) if key in kept else value for key, value in item.items()}
    return {**kept, **own}


def _joined(
    key: str, inherited: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[int | None]]:
    """The family's entries, each replaced by the spec's of its name, then the spec's others; and where each stands.

    What the spec lists directly before an entry that replaces one of the family is before it in the result too. One of
    the kind `none` takes that of the family away.
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
    kept = [(entry, place) for entry, place in zip(made, places, strict=True) if entry.get("kind") != "none"]
    kept += [(own[number], number) for number in others]
    return [entry for entry, _ in kept], [place for _, place in kept]


def _name(entry: Mapping[str, Any], words: Sequence[str]) -> str:
    return str(next((entry[word] for word in words if word in entry), ""))
