"""One promise put to the test: what a run plans, a record keeps, and replay and shrink read again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from aclnn_cts.core.case import Case
from aclnn_cts.core.case_json import CASE_FORMAT, canonical_json, case_from_json, case_to_json
from aclnn_cts.core.errors import UsageError

__all__ = ["TRIAL_FORMAT", "Trial", "trial_from_json", "trial_to_json"]

TRIAL_FORMAT = "aclnn-cts/trial/1"


class Trial(msgspec.Struct, frozen=True):
    """A promise's id, a base case and the promise's own parameters (plain JSON values)."""

    promise: str
    case: Case
    parameters: Mapping[str, Any] = {}

    @property
    def id(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal; the case's origin does not count."""
        return hashlib.sha256(canonical_json(trial_to_json(self, origin=False))).hexdigest()


def trial_to_json(trial: Trial, *, origin: bool = True) -> dict[str, Any]:
    """The trial as plain JSON values."""
    return {
        "format": TRIAL_FORMAT,
        "promise": trial.promise,
        "case": case_to_json(trial.case, origin=origin),
        "parameters": dict(trial.parameters),
    }


def trial_from_json(document: object, *, where: str) -> Trial | Case:
    """Read a trial document, or the bare case that may stand for one."""
    if not isinstance(document, Mapping):
        raise UsageError(f"{where}: $: expected an object with the format {TRIAL_FORMAT!r} or {CASE_FORMAT!r}")
    if document.get("format") != TRIAL_FORMAT:
        return case_from_json(document, where=where)
    for key in document:
        if key not in ("format", "promise", "case", "parameters"):
            raise UsageError(f"{where}: $: unknown key {key!r}; expected format, promise, case and parameters")
    promise, parameters = document.get("promise"), document.get("parameters", {})
    if not isinstance(promise, str):
        raise UsageError(f"{where}: $.promise: {promise!r}; expected the id of a promise")
    if not isinstance(parameters, Mapping):
        raise UsageError(f"{where}: $.parameters: {parameters!r}; expected an object")
    return Trial(
        promise=promise, case=case_from_json(document.get("case"), where=f"{where} (case)"), parameters=parameters
    )
