"""Reads what a tree wrote, with that tree's own code, and prints JSON lines that look the same for every tree.

A program on its own: it runs in the tree's interpreter (`trees.Tree.read`) and imports nothing of this folder. Names
that differ between trees are looked up in `names.yaml`. What a name cannot express belongs here.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Names = Mapping[str, Mapping[str, list[str]]]
Line = dict[str, Any]


def _code(names: Names, role: str) -> Any:  # noqa: ANN401 - whatever the tree has
    places = names["code"][role]
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"names.yaml: code.{role}: this tree has none of {', '.join(places)}; add where it is now")


def _get(item: Any, names: Names, role: str, default: Any = None) -> Any:  # noqa: ANN401 - as above
    """An attribute or key by any of its names."""
    for name in names["attributes"].get(role, [role]):
        found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if found is not None:
            return found
    if default is None:
        raise SystemExit(f"names.yaml: attributes.{role}: {type(item).__name__} has no attribute of these names")
    return default


def _text(value: object) -> str:
    """A string, or the value of an enum."""
    return str(getattr(value, "value", value))


def _ratio(parts: Iterable[Any], names: Names) -> str:
    """The largest error ratio, as text: JSON has no inf."""
    ratios = [float(_get(part, names, "ratio", 0.0)) for part in parts]
    return repr(math.inf if any(map(math.isnan, ratios)) else max(ratios, default=0.0))


def run(path: Path, names: Names) -> Iterator[Line]:
    """The trials of a run directory in their order, and its findings."""
    case_id = _code(names, "case_id")
    failing: dict[tuple[str, str, str], None] = {}
    with _code(names, "ResultReader")(path / "results.sqlite") as results:
        for record in results.records():
            case, verdict = record.trial.case, record.verdict
            yield {
                "type": "trial",
                "operator": case.operator,
                "check": _text(_get(record.trial, names, "check")),
                "item": case_id(case),
                "result": _text(verdict.result),
                "reason": _text(_get(verdict, names, "reason", "")),
                "waived": bool(record.waiver),
                "ratio": _ratio(verdict.deviations, names),
            }
            if _text(verdict.result) == "failed":
                check, reason = _text(_get(record.trial, names, "check")), _text(_get(verdict, names, "reason", ""))
                failing[case.operator, check, reason] = None
    for operator, check, reason in failing:
        yield {"type": "finding", "operator": operator, "check": check, "reason": reason}


def campaign(path: Path, names: Names) -> Iterator[Line]:
    """What a campaign keeps: trials of its findings, and how many cases of each kind came to each result."""
    yield from run(path, names)
    summary = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    for operator, counts in summary["operators"].items():
        for kind, found in counts["kinds"].items():
            common = {"type": "count", "operator": operator, "kind": kind}
            for result in ("passed", "failed", "waived", "errors"):
                yield {**common, "result": result, "number": found[result]}
            for reason, number in found["skipped_by_reason"].items():
                yield {**common, "result": "skipped", "reason": reason, "number": number}


def mutants(path: Path, names: Names) -> Iterator[Line]:
    """The faults and decoys of a kill matrix, for each seed."""
    matrix = json.loads(path.read_text(encoding="utf-8"))
    for row in matrix["faults"]:
        for seed in row["by_seed"]:
            yield {
                "type": "mutant",
                "operator": row["operator"],
                "item": row["id"],
                "result": "found" if seed["found"] else "survives",
                "check": _get(seed, names, "check", ""),
                "reason": _get(seed, names, "reason", ""),
                "number": seed["cases"],
            }
        yield from [{"type": "finding", "operator": row["operator"]}] * round(row["findings"])
    for row in matrix["decoys"]:
        yield {
            "type": "mutant",
            "operator": row["operator"],
            "item": row["id"],
            "result": "accused" if row["accused"] else "not accused",
            "number": row["cases"],
        }


if __name__ == "__main__":
    READERS = {"run": run, "campaign": campaign, "mutants": mutants}
    for line in READERS[sys.argv[1]](Path(sys.argv[2]), json.loads(sys.argv[3])):
        sys.stdout.write(json.dumps(line) + "\n")
