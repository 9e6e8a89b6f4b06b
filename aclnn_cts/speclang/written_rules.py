"""Written rules of the short form: what follows from the rest of a rule, and chains."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from aclnn_cts.core.printable import shown
from aclnn_cts.speclang.placeholders import with_lists
from aclnn_cts.speclang.problems import Problems
from aclnn_cts.speclang.properties import promised

_READ = re.compile(r"\bdim\((\w+),")


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
