"""What an implementation does beside its document without breaking a rule: recorded, and a failure if asked for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.statuses import ANY_ERROR, STATUSES, SUCCESS
from aclnn_cts.core.verdict import Result, Skip, Verdict

EXECUTOR_AFTER_ERROR = "executor after the error"
"""Key of `Outcome.facts`: what a failing phase one left where it writes the executor."""
WRITTEN = "an address"
"""The value of that fact where it wrote a pointer; `null` or `untouched` otherwise."""

_ARGUMENTS = STATUSES["ACLNN_ERR_PARAM_INVALID"] // 1000


class Observation(str, Enum):
    """The kinds (keys of `Verdict.facts`, true where they were met)."""

    LIMIT = "limit not enforced"
    """A call beyond a limit succeeded, and no value is known to be wrong."""
    EXECUTOR = "executor written after an error"
    """Phase one refused the call and left a pointer where it writes the executor."""
    STATUS_CLASS = "status of another class"
    """Any error conforms, wrong arguments suggest one of 161xxx, and the status is of the runtime or internal."""


def of_another_class(status: str, allowed: tuple[str, ...]) -> bool:
    """Whether an error that conforms only as some error is none of those for wrong arguments (161xxx)."""
    if status == SUCCESS or status in allowed or ANY_ERROR not in allowed:
        return False
    return STATUSES.get(status, 0) // 1000 != _ARGUMENTS and not status.startswith(f"ACLNN_ERR_{_ARGUMENTS}")


def with_executor(verdict: Verdict, outcomes: Iterable[Outcome]) -> Verdict:
    """The verdict with the fact that a call left a pointer behind its error."""
    if not any(outcome.facts.get(EXECUTOR_AFTER_ERROR) == WRITTEN for outcome in outcomes):
        return verdict
    return msgspec.structs.replace(verdict, facts={**verdict.facts, Observation.EXECUTOR.value: True})


def observations_of(verdict: Verdict) -> list[Observation]:
    """What a verdict has recorded."""
    return [kind for kind in Observation if verdict.facts.get(kind.value)] if verdict.facts else []


def strict(verdict: Verdict) -> Verdict:
    """The verdict where observations are failures (`--strict-limits`)."""
    found = observations_of(verdict)
    judged = verdict.result == Result.PASSED or (verdict.result, verdict.kind) == (Result.SKIPPED, Skip.OPEN)
    if not found or not judged:
        return verdict
    said = f": {verdict.message}" if verdict.message else ""
    message = f"{', '.join(kind.value for kind in found)} (--strict-limits){said}"
    return msgspec.structs.replace(verdict, result=Result.FAILED, kind=Fault.STATUS, message=message, judged="")
