"""The records of a run as JSON lines with a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.case_schema import DIALECT, object_schema, trial_definitions, with_words
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.outside import numbers_as_words
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import Trial, earlier_from_json, earlier_to_json, trial_from_json, trial_to_json
from aclnn_cts.core.verdict import Record, Verdict

RECORD_FORMAT = "aclnn-cts/record/2"


def record_to_json(record: Record) -> dict[str, Any]:
    """The record as plain JSON values; the trial as a trial file has it."""
    document: dict[str, Any] = {
        "format": RECORD_FORMAT,
        "trial_id": record.trial_id,
        "trial": trial_to_json(record.trial),
        "attempts": [[msgspec.to_builtins(outcome) for outcome in attempt] for attempt in record.attempts],
        "verdict": msgspec.to_builtins(record.verdict),
        "fingerprint": msgspec.to_builtins(record.fingerprint),
        "clauses": list(record.clauses),
        "waiver": record.waiver,
        "seconds": record.seconds,
        "where": dict(record.where),
    }
    if record.after:
        document["after"] = [earlier_to_json(item) for item in record.after]
    for name in ("attempts", "verdict"):
        document[name] = numbers_as_words(document[name])
    document["trial"]["parameters"] = numbers_as_words(document["trial"]["parameters"])
    return document


def record_from_json(document: Mapping[str, Any], *, where: str) -> Record:
    """The record of `record_to_json`; HarnessError where it is none."""
    try:
        return Record(
            trial_id=document["trial_id"],
            trial=_trial(document["trial"], where),
            attempts=msgspec.convert(document["attempts"], tuple[tuple[Outcome, ...], ...], strict=False),
            verdict=msgspec.convert(document["verdict"], Verdict, strict=False),
            fingerprint=msgspec.convert(document["fingerprint"], Fingerprint),
            clauses=tuple(document["clauses"]),
            waiver=document["waiver"],
            seconds=document["seconds"],
            where=document["where"],
            after=earlier_from_json(document.get("after", []), where=where),
        )
    except (KeyError, TypeError, msgspec.ValidationError, UsageError) as error:
        raise HarnessError(f"{where}: no record of the format {quote(RECORD_FORMAT)}: {error}") from None


def _trial(document: object, where: str) -> Trial:
    trial = trial_from_json(document, where=where)
    if not isinstance(trial, Trial):
        raise UsageError(f"{where}: $.trial: a bare case; expected a trial")
    return trial


def record_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line."""
    parts = (Outcome, Verdict, Fingerprint)
    (outcome, verdict, fingerprint), components = msgspec.json.schema_components(parts, ref_template="#/$defs/{name}")
    whole = object_schema(
        {
            "format": {"const": RECORD_FORMAT},
            "trial_id": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "trial": {"$ref": "#/$defs/Trial"},
            "attempts": {"type": "array", "items": {"type": "array", "items": outcome}},
            "verdict": verdict,
            "fingerprint": fingerprint,
            "clauses": {"type": "array", "items": {"type": "string"}},
            "waiver": {"type": "string"},
            "seconds": {"type": "number"},
            "where": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        {"after": {"type": "array", "items": {"$ref": "#/$defs/Earlier"}}},
    )
    return {
        "$schema": DIALECT,
        "title": "A record of aclnn-cts: one trial, what came of its calls, and the verdict",
        **whole,
        "$defs": {**with_words(components), **trial_definitions()},
    }
