"""One check put to the test: what a run plans, a record keeps, and replay and shrink read again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from aclnn_cts.core.case import NOTE_LIMIT, Case, first_phase
from aclnn_cts.core.case_json import CASE_FORMAT, canonical_json, case_from_json, case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import ECHO_LIMIT, printable, quote

OTHER_CASE = "other"
"""The parameter of a trial that holds the second case, where its calls are not all of one."""

TRIAL_FORMAT = "aclnn-cts/trial/2"
TRIAL_KEYS: Mapping[str, str] = MappingProxyType({TRIAL_FORMAT: "check", "aclnn-cts/trial/1": "promise"})
"""The formats that are read, each with its key of the check."""

MOST_EARLIER = 4096
"""Calls that a trial makes before its own at most."""


class EarlierCall(msgspec.Struct, frozen=True):
    """A call that a trial makes before its own, whatever comes of it."""

    case: Case
    times: int = 1
    """In a row."""


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """A check's id, a base case and the check's own parameters (plain JSON values)."""

    check: str
    case: Case
    parameters: Mapping[str, Any] = {}
    after: tuple[EarlierCall, ...] = ()
    """Calls made first and in the same process, of a failure that shows only after them."""

    @property
    def id(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal; the case's origin does not count."""
        return hashlib.sha256(canonical_json(trial_to_json(self, origin=False))).hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of the arguments of the base case and of the calls before it."""
        return self.case.nbytes + sum(item.case.nbytes * item.times for item in self.after)


def of_first_phase(trial: Trial) -> Trial:
    """The trial whose calls, and those before them, go no further than phase one."""
    after = tuple(msgspec.structs.replace(item, case=first_phase(item.case)) for item in trial.after)
    return msgspec.structs.replace(trial, case=first_phase(trial.case), after=after)


def trial_to_json(trial: Trial, *, origin: bool = True) -> dict[str, Any]:
    """The trial as plain JSON values."""
    document: dict[str, Any] = {
        "format": TRIAL_FORMAT,
        "check": trial.check,
        "case": case_to_json(trial.case, origin=origin),
        "parameters": dict(trial.parameters),
    }
    if trial.after:
        document["after"] = [earlier_to_json(item, origin=origin) for item in trial.after]
    return document


def earlier_to_json(item: EarlierCall, *, origin: bool = True) -> dict[str, Any]:
    """A call before a trial's own as plain JSON values."""
    case = case_to_json(item.case, origin=origin)
    return {"case": case} if item.times == 1 else {"case": case, "times": item.times}


def trial_from_json(document: object, *, where: str) -> Trial | Case:
    """Read a trial document, or the bare case that may stand for one."""
    if not isinstance(document, Mapping):
        raise UsageError(f"{where}: $: expected an object with the format {TRIAL_FORMAT!r} or {CASE_FORMAT!r}")
    form = document.get("format")
    if not isinstance(form, str) or form not in TRIAL_KEYS:
        return case_from_json(document, where=where)
    name = TRIAL_KEYS[form]
    for key in document:
        if key not in ("format", name, "case", "parameters", "after"):
            raise UsageError(
                f"{where}: $: unknown key {quote(key)}; expected format, {name}, case, parameters and after"
            )
    check, parameters = document.get(name), document.get("parameters", {})
    if not isinstance(check, str):
        raise UsageError(f"{where}: $.{name}: {quote(check)}; expected the id of a check")
    if not isinstance(parameters, Mapping):
        raise UsageError(f"{where}: $.parameters: {quote(parameters)}; expected an object")
    _check_texts(parameters, where=where, path="$.parameters")
    return Trial(
        check=check,
        case=case_from_json(document.get("case"), where=f"{where} (case)"),
        parameters=parameters,
        after=earlier_from_json(document.get("after", []), where=where),
    )


def _check_texts(document: Mapping[str, object], *, where: str, path: str) -> None:
    """Refuse texts that no check has use for: records repeat them, and hold no more than they can read again."""
    for name, value in document.items():
        place = f"{path}.{printable(name, ECHO_LIMIT)}"
        for text in (name, value):
            if isinstance(text, str) and len(text) > NOTE_LIMIT:
                raise UsageError(f"{where}: {place}: {quote(text)}; expected at most {NOTE_LIMIT} characters")
        if isinstance(value, Mapping):
            _check_texts(value, where=where, path=place)


def earlier_from_json(items: object, *, where: str) -> tuple[EarlierCall, ...]:
    """Read the calls that a trial makes before its own."""
    if not isinstance(items, list):
        raise UsageError(f"{where}: $.after: {quote(items)}; expected a list of calls that are made first")
    if len(items) > MOST_EARLIER:
        raise UsageError(f"{where}: $.after: {len(items)} calls; expected at most {MOST_EARLIER}")
    found = tuple(_earlier(item, path=f"$.after[{place}]", where=where) for place, item in enumerate(items))
    if (calls := sum(item.times for item in found)) > MOST_EARLIER:
        raise UsageError(f"{where}: $.after: {quote(calls)} calls; expected at most {MOST_EARLIER}")
    return found


def _earlier(item: object, *, path: str, where: str) -> EarlierCall:
    if not isinstance(item, Mapping) or not {"case"} <= set(item) <= {"case", "times"}:
        raise UsageError(
            f"{where}: {path}: {quote(item)}; expected an object with a case, and times where it is made often"
        )
    times = item.get("times", 1)
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise UsageError(f"{where}: {path}.times: {quote(times)}; expected a whole number from 1 on")
    return EarlierCall(case=case_from_json(item["case"], where=f"{where} ({path}.case)"), times=times)
