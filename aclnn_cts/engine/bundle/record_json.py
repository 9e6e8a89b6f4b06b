"""Records as JSON lines, for programs that are not ours, and the JSON Schema of a line.

JSON has no word for inf and nan: they are the strings `inf`, `-inf` and `nan`, as in case files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.case import CallOptions, Data, Origin, Tensor
from aclnn_cts.core.case_json import CASE_FORMAT
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import TRIAL_FORMAT, Trial, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Record, Signature, Verdict

__all__ = ["RECORD_FORMAT", "record_from_json", "record_schema", "record_to_json"]

RECORD_FORMAT = "aclnn-cts/record/1"
_WORDS = ("inf", "-inf", "nan")
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": list(_WORDS)}]}
_INT64 = {"type": "integer"}


def record_to_json(record: Record) -> dict[str, Any]:
    """The record as plain JSON values; the trial as a trial file has it."""
    document: dict[str, Any] = {
        "format": RECORD_FORMAT,
        "trial_id": record.trial_id,
        "trial": trial_to_json(record.trial),
        "attempts": [[msgspec.to_builtins(outcome) for outcome in attempt] for attempt in record.attempts],
        "verdict": msgspec.to_builtins(record.verdict),
        "signature": msgspec.to_builtins(record.signature),
        "clauses": list(record.clauses),
        "waiver": record.waiver,
        "seconds": record.seconds,
        "where": dict(record.where),
    }
    for name in ("attempts", "verdict"):
        document[name] = _spelled(document[name])
    document["trial"]["parameters"] = _spelled(document["trial"]["parameters"])
    return document


def _spelled(value: Any) -> Any:  # noqa: ANN401 - any plain value
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if kind is dict:
        return {key: _spelled(item) for key, item in value.items()}
    if kind in (list, tuple):
        return [_spelled(item) for item in value]
    return value


def record_from_json(document: Mapping[str, Any], *, where: str) -> Record:
    """The record of `record_to_json`; HarnessError where it is none."""
    try:
        return Record(
            trial_id=document["trial_id"],
            trial=_trial(document["trial"], where),
            attempts=msgspec.convert(document["attempts"], tuple[tuple[Outcome, ...], ...], strict=False),
            verdict=msgspec.convert(document["verdict"], Verdict, strict=False),
            signature=msgspec.convert(document["signature"], Signature),
            clauses=tuple(document["clauses"]),
            waiver=document["waiver"],
            seconds=document["seconds"],
            where=document["where"],
        )
    except (KeyError, TypeError, msgspec.ValidationError, UsageError) as error:
        raise HarnessError(f"{where}: no record of the format {RECORD_FORMAT!r}: {error}") from None


def _trial(document: object, where: str) -> Trial:
    trial = trial_from_json(document, where=where)
    if not isinstance(trial, Trial):
        raise UsageError(f"{where}: $.trial: a bare case; expected a trial")
    return trial


def record_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line."""
    parts = (Outcome, Verdict, Signature, Tensor, Data, Target, CallOptions, Origin)
    references, components = msgspec.json.schema_components(parts, ref_template="#/$defs/{name}")
    outcome, verdict, signature, tensor, _, target, call, origin = references
    definitions: dict[str, Any] = {name: _with_words(component) for name, component in components.items()}
    del definitions["Target"]["properties"]["product"]
    definitions["Argument"] = {
        "oneOf": [
            {"type": "null"},
            _only(tensor=tensor),
            _only(int_array={"type": "array", "items": _INT64}),
            _only(int=_INT64),
            _only(bool={"type": "boolean"}),
            _only(double=_NUMBER),
        ]
    }
    definitions["Case"] = _object(
        {
            "format": {"const": CASE_FORMAT},
            "operator": {"type": "string"},
            "product": {"type": "string"},
            "arguments": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Argument"}},
        },
        {"target": target, "call": call, "origin": origin},
    )
    definitions["Trial"] = _object(
        {
            "format": {"const": TRIAL_FORMAT},
            "promise": {"type": "string"},
            "case": {"$ref": "#/$defs/Case"},
            "parameters": {"type": "object"},
        }
    )
    whole = _object(
        {
            "format": {"const": RECORD_FORMAT},
            "trial_id": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "trial": {"$ref": "#/$defs/Trial"},
            "attempts": {"type": "array", "items": {"type": "array", "items": outcome}},
            "verdict": verdict,
            "signature": signature,
            "clauses": {"type": "array", "items": {"type": "string"}},
            "waiver": {"type": "string"},
            "seconds": {"type": "number"},
            "where": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of aclnn-cts: one trial, what came of its calls, and the verdict",
        **whole,
        "$defs": definitions,
    }


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _only(**field: Any) -> dict[str, Any]:  # noqa: ANN401 - a schema
    return _object(field)


def _with_words(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Where a number may stand, one of the three words may too."""
    if isinstance(schema, list):
        return [_with_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        return {**{key: value for key, value in schema.items() if key != "type"}, **_NUMBER}
    # Defaults are values, tuples among them, and no schemas.
    return {key: _with_words(value) for key, value in schema.items() if key != "default"}
