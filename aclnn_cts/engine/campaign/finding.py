"""Findings of a campaign: failures put together by what broke, confirmed, shrunk, and kept with few examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.statuses import status_name
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Fault, Record, Result, Signature
from aclnn_cts.engine.laws import PREFIX
from aclnn_cts.engine.promises import promise
from aclnn_cts.spec.load import Specs

__all__ = ["EXAMPLES", "FINDING_STATE", "Confirmed", "Finding", "bucketed", "found_as", "outputs_of", "symptom"]

FINDING_STATE = "finding/"
"""What the keys of findings in a store's state begin with; the name of the finding's trial file follows."""

EXAMPLES = 25
"""Records that a finding keeps; the failures after them are counted."""

_VALUES = frozenset({"values", "memory", "example", "boundary", "precision"})
"""Promises of one supported call, which one fault breaks together."""


class Confirmed:
    """What became of a finding's trial when it was run again, alone and in a fresh process (`Finding.confirmed`)."""

    WAITING = ""
    ALWAYS = "always"
    SOMETIMES = "sometimes"
    COMPANY = "only in company"
    """It fails again after the calls that came before it, and not alone."""
    DEVICE = "only on this device"
    """It fails always where it was found, and never on another device."""
    UNKNOWN = "not confirmed"
    """It could not be run again; `note` says why."""


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One fault as far as can be told, and what is known of it."""

    signature: Signature
    failures: int = 0
    """Trials that failed like this."""
    examples: int = 0
    """How many of them are kept as records."""
    chunk: int = 0
    """The chunk that met it first."""
    slot: str = ""
    """The device or worker that met it first."""
    seconds: float = 0.0
    """Into the campaign."""
    waiver: str = ""
    confirmed: str = Confirmed.WAITING
    alone: tuple[int, int] = (0, 0)
    """Failures, and executions alone in a fresh process."""
    elsewhere: tuple[int, int] = (0, 0)
    """The same on another device."""
    trial: Trial | None = None
    """The smallest trial."""
    message: str = ""
    """The verdict's sentence on it."""
    executions: int = 0
    """That shrinking took."""
    shrunk: bool = False
    complete: bool = True
    """Whether shrinking tried everything within its limit."""
    record: Record | None = None
    """Of the smallest trial, where `aclnn-cts shrink RUN` made it; a campaign keeps none."""
    note: str = ""


def symptom(record: Record) -> str:
    """What a failure looks like, where its kind has several looks."""
    verdict = record.verdict
    if verdict.kind in (Fault.STATUS, Fault.REJECTED, Fault.CRASH):
        outcomes = [outcome for attempt in record.attempts[-1:] for outcome in attempt]
        return _ending(outcomes) if outcomes else ""
    if verdict.kind in (Fault.VALUE, Fault.MODEL, Fault.LAW):
        worst = max(verdict.deviations, key=lambda item: item.share, default=None)
        # A share is nan where the error is.
        got = next((str(item.got) for item in verdict.deviations if item.share != item.share), None)
        word = got or (str(worst.got) if worst is not None else "")
        return word if word in ("nan", "inf", "-inf") else ""
    return ""


def _ending(outcomes: list[Outcome]) -> str:
    last = next((item for item in outcomes if item.ended != Ended.RETURNED), outcomes[-1])
    if last.ended == Ended.SIGNAL:
        return f"signal {last.signal}"
    if last.ended != Ended.RETURNED:
        return last.ended
    return status_name(last.status or 0)


def bucketed(record: Record) -> Record:
    """A failure under the signature by which a campaign puts failures together.

    One fault of a call's values fails examples, limits, laws and random cases alike; their promise counts as `values`.
    Calls that must be refused are of one promise, `status`, told apart by their constraint.
    """
    signature = record.signature
    promise = signature.promise
    if signature.constraint:
        promise = "status" if promise == "boundary" else promise
    elif promise in _VALUES or (promise.startswith(PREFIX) and signature.kind != Fault.LAW):
        promise = "values"
    changed = msgspec.structs.replace(signature, promise=promise, symptom=symptom(record))
    return msgspec.structs.replace(record, signature=changed)


def found_as(record: Record, specs: Specs, execute: Callable[[Trial], Record]) -> Record:
    """A failure under the signature of its fault, as `bucketed` gives it; `execute` runs a trial.

    A law that is not kept since one of its calls is wrong by itself is no fault of its own: it has that call's.
    """
    if record.signature.kind == Fault.LAW:
        trial = record.trial
        calls = promise(trial.promise, where="trial").calls(trial, specs[trial.case.operator])
        for call in (call for place, call in enumerate(calls) if call not in calls[:place]):
            alone = execute(Trial("values", call))
            if alone.verdict.result == Result.FAILED:
                return msgspec.structs.replace(record, signature=bucketed(alone).signature)
    return bucketed(record)


def outputs_of(record: Record) -> set[str]:
    """SHA-256 of what the calls of a record that succeeded wrote: what it is judged again from."""
    outcomes = [item for item in record.attempts[0] if item.ended == Ended.RETURNED] if record.attempts else []
    written = [state for item in outcomes if not item.status for state in item.buffers.values()]
    return {state.sha256 for state in written if state.sha256}


def finding_words(finding: Finding) -> Mapping[str, object]:
    """A finding as plain values, for the export."""
    words: dict[str, object] = msgspec.to_builtins(finding)
    words.pop("trial", None)
    words.pop("record", None)
    return words
