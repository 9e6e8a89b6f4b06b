"""The constraints of a spec as entries: those that properties imply, and those that are written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aclnn_cts.core.case import POINTERS
from aclnn_cts.core.outcome import ANY_ERROR, STATUSES
from aclnn_cts.core.printable import alternatives_text, quote
from aclnn_cts.speclang.kinds_dtype import PROMOTE
from aclnn_cts.speclang.placeholders import expand_lists
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.schema import ConstraintModel, ParameterModel
from aclnn_cts.speclang.yaml_file import YamlPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property: the constraint that it makes, and the parameters that may have it."""

    kind: str
    suffix: str
    """What follows the parameter's name in the id."""
    value: str | None = None
    """The key of the constraint that takes the property's value; None where the property is a yes or no."""
    of: tuple[str, ...] = ("tensor", "tensor_list")
    strength: str = "limit"
    """Where it names no code."""


PROPERTIES: Mapping[str, Property] = {
    "null": Property(kind="present", suffix="null", of=POINTERS, strength="open"),
    "dtypes": Property(kind="dtype", suffix="dtype", value="in", of=("tensor", "tensor_list", "scalar")),
    "same_dtype_as": Property(
        kind="same_dtype", suffix="same_dtype", value="as", of=("tensor", "tensor_list", "scalar")
    ),
    "promotes_with": Property(kind="promotion", suffix="promotion", value="as", of=("tensor",)),
    "casts_from": Property(kind="cast", suffix="cast", value="as", of=("tensor",)),
    "formats": Property(kind="format", suffix="format", value="in"),
    "same_format_as": Property(kind="same_format", suffix="same_format", value="as"),
    "rank": Property(kind="rank", suffix="rank", value="in"),
    "layouts": Property(kind="layout", suffix="layout", value="in"),
    "length": Property(
        kind="length", suffix="length", value="is", of=("int_array", "bool_array", "float_array", "tensor_list")
    ),
    "broadcasts_with": Property(kind="broadcast", suffix="broadcast", value="as", of=("tensor",)),
    "same_shape_as": Property(kind="shape", suffix="shape", value="is"),
    "dims": Property(kind="dims", suffix="dims", value="in", of=("tensor", "tensor_list", "int_array")),
    "range": Property(kind="range", suffix="range", value="in", of=("int", "double")),
    "words": Property(kind="word", suffix="word", value="in", of=("string",)),
    "strided": Property(kind="contiguous", suffix="contiguous", strength="open"),
    "empty": Property(kind="not_empty", suffix="not_empty", strength="open"),
}
"""In the order in which their constraints are made: each property for all parameters, then the next."""

_KEYS = frozenset(
    {item.encode_name for item in msgspec.structs.fields(ConstraintModel)} - {"of", "as", "in", "that", "kind"}
)
"""What a property in the form of a mapping may say: its value as `is`, and keys of a constraint."""
_NAMING = ("same_dtype_as", "promotes_with", "casts_from", "same_format_as", "same_shape_as", "broadcasts_with")
"""Properties that compare with another parameter."""
_RELATIONS = ("same_dtype", "promotion", "cast")
"""Kinds of rule on the dtypes of several parameters: what breaks a list of dtypes may break them too."""
_STRENGTHS = ("limit", "open", "accuracy")
_NONE = "none"
_ALWAYS = "true"
"""The condition of a rule that holds in every call, where the property would give it another."""


@dataclass(slots=True)
class ImpliedConstraints:
    """The constraints of one file so far, and where each comes from."""

    constraints: list[dict[str, Any]] = field(default_factory=list)
    origins: list[YamlPath] = field(default_factory=list)
    grouped: set[str] = field(default_factory=set)
    """Ids of those whose group is written, or written to be none."""

    def of(self, name: str, key: str) -> list[dict[str, Any]]:
        """The constraints that a property of a parameter made."""
        kind = PROPERTIES[key].kind
        return [item for item in self.constraints if item["of"] == name and item["kind"] == kind]


def strength_of_entry(entry: Mapping[str, Any], otherwise: str) -> str:
    """The strength of a constraint that states none: listed where it names a code."""
    status = entry.get("status")
    if status is None:
        return otherwise
    return "limit" if status in (ANY_ERROR, [ANY_ERROR]) else "listed"


def imply_constraints(
    parameters: Sequence[ParameterModel],
    kinds: Mapping[str, str],
    defaults: Mapping[str, Any],
    written: Iterable[str],
    problems: Problems,
) -> tuple[list[ParameterModel], ImpliedConstraints]:
    """The parameters as valid calls draw them, and the constraints of their properties but those that are `written`."""
    for key in defaults:
        problems.known(key, PROPERTIES, ("defaults", key), "property")
    replaced = frozenset(written)
    implied = ImpliedConstraints()
    drawn: list[ParameterModel] = []
    tiers: list[dict[str, list[dict[str, Any]]]] = []
    for number, item in enumerate(parameters):
        kind = kinds[item.name]
        found = {}
        for key, entry in PROPERTIES.items():
            path = ("parameters", number, key)
            if kind in entry.of:
                found[key] = _tiers(key, item, defaults, path, problems)
            elif key in _properties(item):
                problems.add(
                    path, f"{item.name} is of kind {kind}; {key} is a property of {alternatives_text(entry.of)}"
                )
        tiers.append(found)
        drawn.append(_parameter(item, kind, found))
    for key in PROPERTIES:
        for number, item in enumerate(parameters):
            made = _made(item, key, tiers[number].get(key, ()), ("parameters", number, key), implied, problems)
            for where, constraint in made:
                if constraint["id"] not in replaced:
                    implied.constraints.append(constraint)
                    implied.origins.append(where)
    _group_what_breaks_together(implied)
    return drawn, implied


def _properties(item: ParameterModel) -> dict[str, Any]:
    """The properties that are written for a parameter."""
    return {key: value for key in PROPERTIES if (value := getattr(item, key)) is not msgspec.UNSET}


def _made(
    item: ParameterModel,
    key: str,
    tiers: Sequence[Mapping[str, Any]],
    path: YamlPath,
    implied: ImpliedConstraints,
    problems: Problems,
) -> Iterator[tuple[YamlPath, dict[str, Any]]]:
    """The constraints of one property of one parameter, and where each is written."""
    earlier: list[str] = []
    own = getattr(item, key)
    is_list = isinstance(own, list) and any(isinstance(entry, dict) for entry in own)
    # The condition under which an output is computed, or an input may not be left out.
    needed = f"not ({item.optional})" if isinstance(item.optional, str) else item.present
    for place, tier in enumerate(tiers):
        where = (*path, place) if is_list else path
        made = _constraint(item.name, PROPERTIES[key], tier, earlier, implied, where, problems)
        if key == "null" and needed is not None and made.setdefault("when", needed) == _ALWAYS:
            del made["when"]
        earlier.append(made["id"])
        if "group" in tier:
            implied.grouped.add(made["id"])
        yield where, made


def _group_what_breaks_together(implied: ImpliedConstraints) -> None:
    """Groups where none is written: lists of dtypes that have to be equal, and tensors that a size empties together."""
    free = [item for item in implied.constraints if item["id"] not in implied.grouped]
    followed = {
        item["of"]: next(iter(_named(item["as"])), "") if PROMOTE in str(item["as"]) else item["as"]
        for item in free
        if item["kind"] in _RELATIONS and item["strength"] == "listed"
    }
    roots: dict[str, list[dict[str, Any]]] = {}
    for item in free:
        if item["kind"] in ("dtype", *_RELATIONS) and item["strength"] == "listed":
            roots.setdefault(_root(str(item["of"]), followed), []).append(item)
    groups = [members for members in roots.values() if len({item["of"] for item in members}) > 1]
    together = [(members, "dtype" if len(groups) == 1 else f"{members[0]['of']}.dtype") for members in groups]
    together.append(([item for item in free if item["kind"] == "not_empty"], "empty"))
    for members, name in together:
        checks = {(item["strength"], str(item.get("status"))) for item in members}
        if len(members) > 1 and len(checks) == 1:
            for item in members:
                item["group"] = name


def _root(name: str, followed: Mapping[str, Any]) -> str:
    """The parameter at whose dtype a chain of equalities ends."""
    seen = {name}
    while (after := str(followed.get(name, name))) not in seen:
        seen.add(after)
        name = after
    return name


def _tiers(
    key: str, item: ParameterModel, defaults: Mapping[str, Any], path: YamlPath, problems: Problems
) -> list[dict[str, Any]]:
    """What a property says, from the widest to the narrowest: the parameter's words over the defaults of the file."""
    written = _properties(item)
    common = _entries(key, defaults[key], ("defaults", key), problems) if key in defaults else []
    if key in written:
        own = _entries(key, written[key], path, problems)
    elif (key == "empty" and "same_shape_as" in written) or (key == "null" and item.optional is True):
        return []
    elif PROPERTIES[key].value is None or any("is" in entry for entry in common):
        own = [{}]
    elif key == "formats" and "same_format_as" not in written:
        own = [{"is": ["ND"]}]
    else:
        return []
    merged = [_merged(common[0] if common else {}, own[0]), *own[1:]]
    if "is" not in own[0] and len(own) == 1:
        merged.extend(common[1:])
    return [] if any(_NONE in entry for entry in merged) else merged


def merge_property(key: str, common: Any, own: Any) -> Any:  # noqa: ANN401 - YAML values
    """A parameter's property over that of its role: of a mapping without a value, the other holds the rest."""
    if key in PROPERTIES and own != _NONE and (_is_rest(common) or _is_rest(own)):
        common_entry, own_entry = _whole(key, common), _whole(key, own)
        if common_entry is not None and own_entry is not None:
            return _merged(common_entry, own_entry)
    return own


def _is_rest(value: object) -> bool:
    """Whether a property says what its rule promises, and leaves its value to another place."""
    return isinstance(value, dict) and "is" not in value and bool(_KEYS & set(value))


def _whole(key: str, value: object) -> dict[str, Any] | None:
    """A property as one mapping; None for several tiers, and for a word."""
    if isinstance(value, dict) and ("is" in value or _is_rest(value)):
        return value
    tiers = isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
    return None if tiers or PROPERTIES[key].value is None else {"is": value}


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter's entry over the default's; an outcome of its own replaces the whole default."""
    check = ("strength", "status", "group", _NONE) if {"strength", "status", _NONE} & set(own) else ()
    return {**{key: value for key, value in common.items() if key not in check}, **own}


def _entries(key: str, value: object, path: YamlPath, problems: Problems) -> list[dict[str, Any]]:
    """A property as mappings: it is written as a value, a mapping, a list of mappings, or a word for a check."""
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return [_entry(key, entry, (*path, number), problems) for number, entry in enumerate(value)]
    return [_entry(key, value, path, problems)]


def _entry(key: str, value: object, path: YamlPath, problems: Problems) -> dict[str, Any]:
    if isinstance(value, dict) and (_KEYS & set(value) or key not in ("dtypes", "layouts")):
        keys = {*_KEYS, "in"} if key == "promotes_with" else _KEYS
        for name in value:
            problems.known(name, sorted(keys), (*path, name), "key")
        return {**value, "is": _value(key, value["is"], path, problems)} if "is" in value else dict(value)
    is_check = isinstance(value, str) and (value in STATUSES or value in (*_STRENGTHS, _NONE, ANY_ERROR))
    if PROPERTIES[key].value is None or path[0] == "defaults":
        if is_check:
            return _check(str(value))
        if isinstance(value, bool) and key in ("strided", "empty"):
            return {_NONE: True} if value else {"strength": "limit"}
        if PROPERTIES[key].value is None:
            problems.add(path, f"{key}: {quote(value)}; expected {_expected(key)}")
            return {_NONE: True}
    return {_NONE: True} if value == _NONE else {"is": _value(key, value, path, problems)}


def _expected(key: str) -> str:
    words = f"a status, {', '.join(_STRENGTHS)}, {_NONE}, or a mapping with keys of a constraint"
    return words if key == "null" else f"true, false, {words}"


def _check(word: str) -> dict[str, Any]:
    if word == _NONE:
        return {_NONE: True}
    return {"strength": word} if word in _STRENGTHS else {"status": word}


def _value(key: str, value: object, path: YamlPath, problems: Problems) -> object:
    if key == "rank" and isinstance(value, int) and not isinstance(value, bool):
        return [value, value]
    if key in _NAMING and not isinstance(value, str):
        problems.add(path, f"{key}: {quote(value)}; expected the name of an earlier parameter")
        return ""
    return value


def _constraint(
    name: str,
    entry: Property,
    tier: Mapping[str, Any],
    earlier: Sequence[str],
    implied: ImpliedConstraints,
    path: YamlPath,
    problems: Problems,
) -> dict[str, Any]:
    """One tier as the entry of a constraint."""
    rest = expand_lists({key: value for key, value in tier.items() if key not in ("id", "is", "strength", _NONE)})
    made: dict[str, Any] = {"id": f"{name}.{tier.get('id', entry.suffix)}", "kind": entry.kind, "of": name}
    if entry.value is not None:
        problems.add_if("is" not in tier, path, f"{name}: no value; add `is`")
        value = tier.get("is", "")
        key = "in" if entry.kind == "length" and isinstance(value, list) else entry.value
        made[key] = f"[*{value}]" if entry.kind == "shape" else value
    made["strength"] = tier.get("strength") or strength_of_entry(tier, entry.strength if not earlier else "limit")
    if "requires" not in rest:
        relates = entry.kind.startswith("same_") or entry.kind in _RELATIONS
        others = _named(tier.get("is")) if relates else []
        listed = [item["id"] for key in ("formats", "rank") for item in implied.of(name, key)]
        needed = [
            *earlier,
            *(listed if entry.kind == "layout" else ()),
            *dict.fromkeys(
                item for other in others for item in _compared(name, other, made, implied, rest.get("group"))
            ),
        ]
        if needed:
            made["requires"] = needed
    return {**made, **{key: value for key, value in rest.items() if value is not None}}


def _compared(
    name: str, other: str, made: Mapping[str, Any], implied: ImpliedConstraints, group: object = None
) -> list[str]:
    """What an equality says nothing without: that both sides are in their lists. In one group, it promises the same."""
    if made["strength"] == "listed" and made["kind"] in _RELATIONS:
        return []
    keys = ("dtypes", "same_dtype_as") if made["kind"] in _RELATIONS else ("formats",)
    first, *more = keys
    found = [*implied.of(other, first), *implied.of(name, first)]
    for key in more:
        found.extend(implied.of(other, key))
    return [item["id"] for item in found if group is None or item.get("group") != group]


def _named(value: object) -> list[str]:
    """The parameters that a property names: one, several with `or` between them, or those of `promote(a, b)`."""
    return [name for name in re.findall(r"[A-Za-z_]\w*", str(value)) if name not in ("or", "promote")]


def role_of(c_type: str, role: str | None, kind: str) -> str:
    """The role of a parameter: the one that is written, else by its C type."""
    if kind not in ("tensor", "tensor_list"):
        return role or "attribute"
    return role or ("input" if "const" in c_type.split() else "output")


def _parameter(item: ParameterModel, kind: str, tiers: Mapping[str, Sequence[Mapping[str, Any]]]) -> ParameterModel:
    """The parameter with what valid calls draw from in the place of its properties: the narrowest tier of each."""
    drawn = {key: found[-1].get("is") for key, found in tiers.items() if found}
    made: dict[str, Any] = dict.fromkeys(PROPERTIES)
    made.update(role=role_of(item.type, item.role, kind), strided=item.strided is True)
    if kind == "scalar":
        made["dtypes"] = drawn.get("dtypes")
    if kind not in ("tensor", "tensor_list"):
        return msgspec.structs.replace(item, **made)
    if kind == "tensor_list":
        made["length"] = drawn.get("length")
    if "same_shape_as" in drawn and item.shape is None:
        made["shape"] = f"[*{drawn['same_shape_as']}]"
    for key, single, same in (("dtypes", "dtype", "same_dtype_as"), ("formats", "format", "same_format_as")):
        # What some products ask for ties no dtype on the others. Rows of dtypes keep it there; none do so for formats.
        found = tiers.get(same, ())
        tied = [tier.get("is") for tier in found if key == "formats" or not tier.get("products")]
        written, follows = getattr(item, single), str(tied[-1] if tied else PROMOTE)
        if not follows.startswith(PROMOTE) and written is None:
            made[single] = f"as {follows}"
        elif not str(written or "").startswith("as "):
            made[key] = drawn.get(key)
    made["layouts"] = drawn.get("layouts")
    return msgspec.structs.replace(item, **made)


_READ = re.compile(r"\bdim\((\w+),")


def written_rule(entry: Mapping[str, Any], names: Collection[str], columns: Sequence[str]) -> dict[str, Any]:
    """A written rule with its kind, its parameter and its strength, which may follow from the rest of it.

    Rows of dtypes require the list of each of their `columns`, a size the rank of each tensor whose `dim` it reads.
    """
    made = {**expand_lists(entry), "strength": entry.get("strength", strength_of_entry(entry, "limit"))}
    if "kind" not in made and {"that", "axis"} & made.keys():
        made["kind"] = "holds" if "that" in made else "size"
    owner = str(made.get("id")).partition(".")[0]
    if made.get("kind") not in ("holds", "mode", "dtype_rows") and owner in names:
        made.setdefault("of", owner)
    if made.get("kind") == "dtype_rows":
        made.setdefault("requires", [f"{name}.dtype" for name in columns])
    if made.get("kind") == "size" and (read := dict.fromkeys(_READ.findall(str(made.get("is"))))):
        made.setdefault("requires", [f"{name}.rank" for name in read])
    return made


def order_rules(
    rules: Sequence[tuple[dict[str, Any], YamlPath]], implied: Sequence[Mapping[str, Any]], problems: Problems
) -> list[dict[str, Any]]:
    """Rules that say which rule they follow, with that one and what it requires before what they require."""
    known: dict[str, Mapping[str, Any]] = {str(rule["id"]): rule for rule in implied}
    made = []
    for rule, path in rules:
        whole = {key: value for key, value in rule.items() if key != "follows"}
        if "follows" in rule:
            before = known.get(str(rule["follows"]))
            if before is None:
                problems.add((*path, "follows"), f"{quote(rule['follows'])} is no rule above this one")
            else:
                required = [*before.get("requires", ()), before["id"], *rule.get("requires", ())]
                whole["requires"] = list(dict.fromkeys(required))
        known[str(whole.get("id"))] = whole
        made.append(whole)
    return made
