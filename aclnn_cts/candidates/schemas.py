"""JSON Schemas of what the functions give (`to_json`): they ship as `specs/NAME.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.candidates.check import EXPECTED_PARTS, CheckResult
from aclnn_cts.candidates.verdict import CandidateFinding, Judgement
from aclnn_cts.core.case_schema import DIALECT, object_schema, trial_definitions, with_words

_ARRAY = object_schema(
    {"dtype": {"type": "string"}, "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
    {"values": {"type": "array", "items": {"type": ["number", "boolean", "string"]}}},
)
"""Elements are in row-major order; those of large arrays are left out."""


def schemas() -> Mapping[str, dict[str, Any]]:
    """Each schema by the first part of its file's name."""
    of_case = {name: item for name, item in trial_definitions().items() if name not in ("Trial", "Earlier")}
    arrays = object_schema(
        {
            "id": {"type": "string"},
            "case": {"$ref": "#/$defs/Case"},
            "inputs": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Array"}},
        }
    )
    output = object_schema({name: {"$ref": "#/$defs/Array"} for name in EXPECTED_PARTS})
    expected = object_schema(
        {"operator": {"type": "string"}, "outputs": {"type": "object", "additionalProperties": output}}
    )
    of_judgement = {**of_case, "Array": _ARRAY, **_definitions(Judgement, CandidateFinding), "CaseArrays": arrays}
    return {
        "check": _schema("CheckResult", _definitions(CheckResult)),
        "expected": {"$schema": DIALECT, **expected, "$defs": {"Array": _ARRAY}},
        "case_arrays": {"$schema": DIALECT, **arrays, "$defs": {**of_case, "Array": _ARRAY}},
        "judgement": _schema("Judgement", of_judgement),
    }


def _definitions(*types: type) -> dict[str, Any]:
    """The parts of structs by name; a case of arrays is described elsewhere."""
    _, found = msgspec.json.schema_components(
        types, schema_hook=lambda _type: {"type": "object"}, ref_template="#/$defs/{name}"
    )
    return {name: with_words(item) for name, item in found.items() if name not in _OF_CASES}


_OF_CASES = frozenset({"Case", "CaseArrays", *trial_definitions()})


def _schema(name: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, "$ref": f"#/$defs/{name}", "$defs": dict(sorted(definitions.items()))}
