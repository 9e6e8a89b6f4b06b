"""What a draft shares with other specs: its family, and what family and defaults say already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aclnn_cts.authoring.catalogue import family_of
from aclnn_cts.authoring.model import Document
from aclnn_cts.core.outcome import STATUSES
from aclnn_cts.speclang.build_parameters import kind_of_type
from aclnn_cts.speclang.families import family_content, family_names

Content = dict[str, Any]
_PLAIN = "public"
EXAMPLE_WITHOUT_CALL = ("reference", "header", "setup", "tensors", "success", "workspace", "synchronise", "release")
"""The sentences on an example whose call is not written out."""
_DOUBTED = ("same_dtype_as", "same_shape_as", "broadcasts_with")
"""Relations that a family may give to parameters whose documents do not."""
_REPLACE = (
    frozenset({"shape", "same_shape_as"}),
    frozenset({"same_dtype_as", "promotes_with", "casts_from"}),
)
_SHAPES = ("shape", "items", "same_shape_as", "broadcasts_with")


def usual_family(document: Document, parameters: Sequence[Mapping[str, Any]]) -> str:
    """The family of the operator's name whose parameters the document has; else one by how the shapes are alike.

    Where all shapes equal the first, the operator is elementwise; the second may broadcast instead.
    """
    names = {item.name for item in document.parameters}
    for name in family_names():
        named = set(family_content(name).get("parameters", {}))
        if named and named <= names and name.endswith(family_of(document.operator)):
            return name
    tensors = [item for item in parameters if kind_of_type(item["type"]) == "tensor"]
    if len(tensors) > 1 and "broadcasts_with" in tensors[1]:
        return "elementwise_broadcast"
    return "elementwise" if tensors and all("same_shape_as" in item for item in tensors[1:]) else _PLAIN


def without_family_content(content: Content) -> Content:
    """A draft without what its family says of the same parameters, and with what all tensors have in its defaults."""
    usual = family_content(content["family"])
    named: Mapping[str, Mapping[str, Any]] = usual.get("parameters", {})
    drawn = {draw.get("name") or draw.get("run") for draw in usual.get("draws", [])}
    content = dict(content)
    defaults = {**usual.get("defaults", {}), **content["defaults"]}
    codes = {key: value for key, value in defaults.items() if isinstance(value, str) and key != "null"}
    first = next((item["name"] for item in content["parameters"] if _role(item) == "input"), "")
    required = {name for rule in usual.get("constraints", []) for name in rule.get("requires", [])}
    kept = []
    for entry in content["parameters"]:
        own = dict(named.get(entry["name"], {}))
        role: Mapping[str, Any] = usual.get(_section(entry, first), {})
        coded = {key: _coded(value, codes[key]) if key in codes else value for key, value in entry.items()}
        if f"{entry['name']}.dims" in required and "dims" not in own:
            coded["dims"] = {"is": [0, None], "strength": "open"}
        kept.append(_without(coded, {**role, **own}, first, shaped=bool(set(_SHAPES) & own.keys())))
    used = {
        word
        for entry in kept
        for key in ("shape", "items")
        for word in str(entry.get(key, "")).strip("[]*").split(", *")
    }
    content["parameters"] = kept
    content["draws"] = [
        draw for draw in content["draws"] if "run" not in draw or (draw["run"] in used and draw["run"] not in drawn)
    ]
    content["defaults"] = {
        key: value for key, value in content["defaults"].items() if usual.get("defaults", {}).get(key) != value
    }
    content["clauses"] = _with_rules(content["clauses"], usual, kept)
    return _folded(content)


def _with_rules(clauses: Content, usual: Mapping[str, Any], parameters: Sequence[Content]) -> Content:
    """Clauses with a sentence for each rule of a family, and for its code."""
    made = {**clauses}
    for rule in usual.get("constraints", []):
        name = rule["id"].partition(".")[0]
        en, zh = _rule_words(rule, name)
        if rule.get("strength") == "open":
            en, zh = f"Whether {en} is not said.", f"文档未说明是否要求{zh}。"
        elif "status" in rule:
            code = STATUSES[rule["status"]]
            said = {
                "say": rule["id"],
                "en": f"A call without it gives {code}: {en}.",
                "zh": f"不满足{zh}时返回 {code}。",
            }
            made["returns"] = [*made.get("returns", ["implied"]), said]
        if rule.get("strength") != "open":
            en, zh = f"It holds that {en}.", f"要求{zh}。"
        section = f"params.{name}"
        made[section] = [*made.get(section, ["implied"]), {"say": rule["id"], "en": en, "zh": zh}]
    for entry in parameters:
        dims = {**usual.get("parameters", {}).get(entry["name"], {}), **entry}.get("dims")
        if isinstance(dims, dict) and dims.get("strength") == "open":
            section, name = f"params.{entry['name']}", entry["name"]
            said = {
                "say": "dims",
                "en": f"Which sizes {name} may have is not said.",
                "zh": f"未说明 {name} 各项的取值范围。",
            }
            made[section] = [*made.get(section, ["implied"]), said]
    return made


def _rule_words(rule: Mapping[str, Any], name: str) -> tuple[str, str]:
    """What a rule demands, in both languages."""
    if "that" in rule:
        return str(rule["that"]), f" {rule['that']} "
    if "axis" in rule:
        return (
            f"dimension {rule['axis']} of {name} is {rule['is']}",
            f" {name} 的第 {rule['axis']} 维等于 {rule['is']} ",
        )
    if "in" in rule:
        low, high = rule["in"]
        return f"elements of {name} lie from {low} to {high}", f" {name} 的元素取值在 {low} 到 {high} 之间"
    return f"{name} is shaped {rule['is']}", f" {name} 的 shape 为 {rule['is']} "


def _without(entry: Content, said: Mapping[str, Any], first: str, *, shaped: bool) -> Content:
    """A parameter without the properties that its family gives it; those of a shape go together."""
    made = dict(entry)
    for key, value in said.items():
        plain = first if value == "{first}" else value
        is_said = shaped and _value(made.get(key)) == _value(plain)
        if key in made and (made[key] == plain or is_said or (shaped and key in _SHAPES)):
            del made[key]
        elif key == "strided" and key not in made and kind_of_type(entry["type"]) == "tensor":
            made[key] = False
        elif key in _DOUBTED and not (shaped and key in _SHAPES) and not _alternatives(key) & entry.keys():
            # The family says more than the document.
            made[key] = "none"
    if shaped:
        made = {key: value for key, value in made.items() if key not in _SHAPES}
    return made


def _value(given: object) -> object:
    """The value of a property without its code."""
    return given["is"] if isinstance(given, dict) and "is" in given else given


def _alternatives(key: str) -> frozenset[str]:
    """A property and those that replace it."""
    return next((group for group in _REPLACE if key in group), frozenset({key}))


def _coded(value: object, code: str) -> object:
    """A property's value beside defaults that give it a code: that code is left out, and a lack of one is said."""
    if isinstance(value, dict):
        return value["is"] if value == {"is": value.get("is"), "status": code} else value
    return {"is": value, "strength": "limit"}


def _section(entry: Mapping[str, Any], first: str) -> str:
    if entry["name"] == first:
        return "first"
    return {"input": "inputs", "output": "outputs"}.get(_role(entry), "")


def _role(entry: Mapping[str, Any]) -> str:
    by_type = {"const aclTensor *": "input", "aclTensor *": "output"}
    return str(entry.get("role") or by_type.get(entry["type"], "attribute"))


def _folded(content: Content) -> Content:
    """Properties that all tensors have with one value, as defaults."""
    tensors = [item for item in content["parameters"] if kind_of_type(item["type"]) == "tensor"]
    for key in ("dtypes", "rank"):
        values = [item.get(key) for item in tensors]
        if len(tensors) < 2 or values[0] is None or any(value != values[0] for value in values):
            continue
        given = content["defaults"].get(key, {})
        value = values[0] if isinstance(values[0], (dict, list)) and not _is_plain(values[0]) else {"is": values[0]}
        if isinstance(value, dict):
            content["defaults"] = {**content["defaults"], key: {**value, **given}}
        else:
            content["defaults"] = {**content["defaults"], key: value}
        for item in tensors:
            del item[key]
    return content


def _is_plain(value: object) -> bool:
    """Whether a value is a list of words or numbers."""
    return isinstance(value, list) and not any(isinstance(item, dict) for item in value)
