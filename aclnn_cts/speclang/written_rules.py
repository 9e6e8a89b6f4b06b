"""Written rules of the short form: what follows from the rest of a rule, one entry for several rules, and chains."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.build_context import Path
from aclnn_cts.speclang.placeholders import placed, with_lists
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import promised
from aclnn_cts.speclang.yaml_file import Path_, YamlFile

_READ = re.compile(r"\bdim\((\w+),")
_MOST = 64
"""Values for which one entry is repeated, and one more."""


def unrolled(file: YamlFile) -> YamlFile:
    """The file with the rules that `for` and `rules` write once in the place of that entry, one for each value."""
    entries = file.content.get("constraints") if isinstance(file.content, dict) else None
    if not isinstance(entries, list) or not any(map(_is_repeated, entries)):
        return file
    made = [found for number, entry in enumerate(entries) for found in _rules(entry, ("constraints", number))]
    lines = {place: line for place, line in file.lines.items() if place[:1] != ("constraints",)}
    for number, (_, path) in enumerate(made):
        for place, line in file.lines.items():
            if place[: len(path)] == path:
                new: Path_ = ("constraints", number, *place[len(path) :])
                lines[new] = line
    return replace(file, content={**file.content, "constraints": [rule for rule, _ in made]}, lines=lines)


def _is_repeated(entry: object) -> bool:
    """Whether an entry is of this form; any other is left to the schema."""
    if not isinstance(entry, dict) or entry.keys() != {"for", "rules"}:
        return False
    columns, rules = entry["for"], entry["rules"]
    if not isinstance(columns, dict) or not isinstance(rules, list):
        return False
    lists = [values for values in columns.values() if isinstance(values, list)]
    lengths = {len(values) for values in lists}
    is_table = len(lists) == len(columns) and len(lengths) == 1 and lengths <= set(range(1, _MOST))
    return is_table and all(isinstance(rule, dict) for rule in rules)


def _rules(entry: Any, path: Path) -> Iterator[tuple[Any, Path]]:  # noqa: ANN401 - a YAML value
    """The rules of one entry, and where each is written."""
    if not _is_repeated(entry):
        yield entry, path
        return
    columns = entry["for"]
    for values in zip(*columns.values(), strict=True):
        for place, rule in enumerate(entry["rules"]):
            yield placed(rule, dict(zip(columns, values, strict=True))), (*path, "rules", place)


def written_rule(entry: Mapping[str, Any], names: Collection[str], rows: Mapping[str, Any]) -> dict[str, Any]:
    """A written rule with its kind, its parameter and its strength, which may follow from the rest of it.

    Rows of dtypes require the list of each of their parameters, a size the number of dimensions of what it is read of.
    """
    made = {**with_lists(entry), "strength": entry.get("strength", promised(entry, "limit"))}
    if "kind" not in made and {"that", "axis"} & made.keys():
        made["kind"] = "holds" if "that" in made else "size"
    owner = str(made.get("id")).partition(".")[0]
    if made.get("kind") not in ("holds", "mode", "dtype_rows") and owner in names:
        made.setdefault("of", owner)
    if made.get("kind") == "dtype_rows":
        made.setdefault("requires", [f"{name}.dtype" for name in rows.get("parameters", ())])
    if made.get("kind") == "size" and (read := dict.fromkeys(_READ.findall(str(made.get("is"))))):
        made.setdefault("requires", [f"{name}.rank" for name in read])
    return made


def followed(
    rules: Sequence[dict[str, Any]], earlier: Sequence[Mapping[str, Any]], problems: Problems
) -> list[dict[str, Any]]:
    """Rules that say which rule they follow, with that one and what it requires before what they require."""
    known: dict[str, Mapping[str, Any]] = {str(rule["id"]): rule for rule in earlier}
    made = []
    for number, rule in enumerate(rules):
        whole = {key: value for key, value in rule.items() if key != "follows"}
        if "follows" in rule:
            before = known.get(str(rule["follows"]))
            if before is None:
                problems.add(
                    ("constraints", len(earlier) + number, "follows"),
                    f"{shown(rule['follows'])} is no rule above this one",
                )
            else:
                required = [*before.get("requires", ()), before["id"], *rule.get("requires", ())]
                whole["requires"] = list(dict.fromkeys(required))
        known[str(whole.get("id"))] = whole
        made.append(whole)
    return made
