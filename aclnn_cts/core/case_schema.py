"""The JSON Schema of case and trial files, for editors and programs that are not ours.

It says of a file what `case_json` says of it without a spec: which keys there are, what they hold, and which names are
dtypes and formats. It ships as `specs/case.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.case import SCALAR_DTYPES, CallOptions, Data, Origin, Tensor
from aclnn_cts.core.case_json import CASE_FORMAT
from aclnn_cts.core.dtypes import DTYPES, FORMATS
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import TRIAL_FORMAT, TRIAL_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}
_INTEGER = {"type": "integer"}


_SCALAR = {
    "type": "object",
    "properties": {
        "dtype": {"enum": [name for name in DTYPES if name in SCALAR_DTYPES]},
        "value": {"anyOf": [*_NUMBER["anyOf"], {"type": "boolean"}]},
    },
    "required": ["dtype", "value"],
    "additionalProperties": False,
}


def case_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a case file, and of a trial file, which may stand in its place."""
    definitions = trial_definitions()
    trials = {form: f"Trial{form.rpartition('/')[2]}" for form in TRIAL_KEYS} | {TRIAL_FORMAT: "Trial"}
    definitions |= {name: _trial(form) for form, name in trials.items()}
    return {
        "$schema": DIALECT,
        "title": "A case or a trial of aclnn-cts",
        **_by_format(trials),
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _by_format(names: Mapping[str, str]) -> dict[str, Any]:
    """The definition of a file of each format; of one without, a case."""
    if not names:
        return {"$ref": "#/$defs/Case"}
    (form, name), *others = names.items()  # so that what is wrong is told of the one that was meant
    return {
        "if": {"properties": {"format": {"const": form}}},
        "then": {"$ref": f"#/$defs/{name}"},
        "else": _by_format(dict(others)),
    }


def trial_definitions() -> dict[str, Any]:
    """What a schema needs of cases and trials, as its `$defs`."""
    parts = (Tensor, Data, Target, CallOptions, Origin)
    (tensor, _, target, call, origin), components = msgspec.json.schema_components(parts, ref_template="#/$defs/{name}")
    definitions: dict[str, Any] = {name: with_words(component) for name, component in components.items()}
    del definitions["Target"]["properties"]["product"]
    properties = definitions["Tensor"]["properties"]
    del properties["kind"]
    definitions["Tensor"]["required"].remove("kind")
    properties["dtype"] = {"enum": list(DTYPES)}
    properties["format"] = {"enum": list(FORMATS), "default": "ND"}
    definitions["Data"]["oneOf"] = [{"required": ["values"]}, {"required": ["recipe"]}]
    definitions["Data"]["properties"]["values"] = {"type": "array", "items": _NUMBER}
    definitions["CallOptions"]["properties"] |= {
        "phases": {"enum": [1, 2], "default": 2},
        "null": {"type": "array", "items": {"enum": ["workspaceSize", "executor", "workspace"]}, "default": []},
    }
    definitions["Argument"] = {
        "oneOf": [
            {"type": "null"},
            object_schema({"tensor": tensor}),
            object_schema({"int_array": {"type": "array", "items": _INTEGER}}),
            object_schema({"scalar": _SCALAR}),
            object_schema({"string": {"type": "string"}}),
            object_schema({"bool_array": {"type": "array", "items": {"type": "boolean"}}}),
            object_schema({"float_array": {"type": "array", "items": _NUMBER}}),
            object_schema({"tensor_list": {"type": "array", "items": tensor}}),
            object_schema({"int": _INTEGER}),
            object_schema({"bool": {"type": "boolean"}}),
            object_schema({"double": _NUMBER}),
        ]
    }
    definitions["Case"] = object_schema(
        {
            "format": {"const": CASE_FORMAT},
            "operator": {"type": "string"},
            "arguments": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Argument"}},
        },
        {"product": {"type": "string"}, "target": target, "call": call, "origin": origin},
    )
    definitions["Trial"] = _trial(TRIAL_FORMAT)
    definitions["Earlier"] = object_schema(
        {"case": {"$ref": "#/$defs/Case"}}, {"times": {"type": "integer", "minimum": 1, "default": 1}}
    )
    return definitions


def _trial(form: str) -> dict[str, Any]:
    return object_schema(
        {"format": {"const": form}, TRIAL_KEYS[form]: {"type": "string"}, "case": {"$ref": "#/$defs/Case"}},
        {"parameters": {"type": "object"}, "after": {"type": "array", "items": {"$ref": "#/$defs/Earlier"}}},
    )


def object_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def with_words(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Where a number may stand, one of the words `inf`, `-inf` and `nan` may too."""
    if isinstance(schema, list):
        return [with_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        return {**{key: value for key, value in schema.items() if key != "type"}, **_NUMBER}
    # Defaults are values, tuples among them, and no schemas.
    return {key: with_words(value) for key, value in schema.items() if key != "default"}
