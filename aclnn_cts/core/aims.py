"""What a trial is planned for: the values of a valid call, the status of a broken one, or the memory of a valid one."""

from __future__ import annotations

from collections.abc import Container

from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Judged, Result, Verdict

JUDGED = frozenset({Result.PASSED, Result.FAILED})
"""Ends of trials that say something of the implementation."""


class Aim:
    """The aims (keys of `OperatorSummary.aims`)."""

    VALUES = "values"
    """A call that the document supports, whose outputs are compared: by themselves, in a law or in a call mode."""
    STATUS = "status"
    """A call that breaks a rule, whose status is held against that rule."""
    MEMORY = "memory"
    """A call that the document supports, planned for the memory that it writes; its values are judged after that."""


_BREAKING = frozenset({"status", "life-cycle/repeated-failure"})
"""Checks about calls that break a rule."""


def is_valid_call(trial: Trial) -> bool:
    """Whether the trial's own case keeps every rule."""
    return aim_of(trial) != Aim.STATUS


def aim_of(trial: Trial) -> str:
    """The aim of a trial."""
    return aim(trial.check, trial.parameters)


def aim(check: str, parameters: Container[str]) -> str:
    """The aim of a trial by its check's id and the names of its parameters."""
    if check in _BREAKING or "twin" in parameters:
        return Aim.STATUS
    return Aim.MEMORY if check == "memory" else Aim.VALUES


def compares_values(verdict: Verdict) -> bool:
    """Whether a verdict rests on elements that were compared; a failure says something of values, whatever its kind."""
    return verdict.result == Result.FAILED or (verdict.result == Result.PASSED and verdict.judged == Judged.VALUES)
