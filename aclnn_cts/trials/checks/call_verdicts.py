"""From the verdicts on the calls of a trial to the verdict on the trial, and what a check asks of a trial's case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import FAILED_CHECKS, VALUE_CHECK, Result, Verdict
from aclnn_cts.speclang.evaluate import Evaluation

REPEATS = "repeats"
"""The parameter of a trial that says how often its call is made; more often than results are kept."""
_MOST_REPEATS = 10_000


def repeats_of(trial: Trial) -> int:
    """How often a trial's call is made, where a parameter says so; 0: it says nothing. UsageError for no number."""
    repeats = trial.parameters.get(REPEATS, 0)
    if REPEATS in trial.parameters and (
        not isinstance(repeats, int) or isinstance(repeats, bool) or not 2 <= repeats <= _MOST_REPEATS
    ):
        raise UsageError(
            f"trial: $.parameters.{REPEATS}: {quote(repeats)}; expected a whole number from 2 to {_MOST_REPEATS}"
        )
    return int(repeats)


def demand_valid(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks a constraint."""
    if evaluation.broken:
        names = ", ".join(item.id for item in evaluation.broken)
        raise UsageError(
            f"a trial of {quote(trial.check)} takes a case that holds all constraints; this one breaks {names}"
        )


def demand_broken(trial: Trial, evaluation: Evaluation) -> None:
    """UsageError for a case that breaks no constraint."""
    if not evaluation.broken:
        raise UsageError(f"a trial of {quote(trial.check)} takes a case that breaks a constraint; this one holds all")


def index_of_deciding(verdicts: Sequence[Verdict], results: Sequence[str]) -> int | None:
    """The place of the verdict that decides: the first of the first of these results that one has; None: none has."""
    places = (place for result in results for place, item in enumerate(verdicts) if item.result == result)
    return next(places, None)


def verdict_of_call(verdict: Verdict, number: int, calls: int) -> Verdict:
    """The verdict of a trial of so many calls that the one on call `number` decides."""
    if calls == 1 or verdict.result != Result.FAILED:
        return verdict
    return msgspec.structs.replace(verdict, message=f"call {number} of {calls}: {verdict.message}")


def decided_by_calls(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a trial whose calls must all pass: that of the first call that does not."""
    place = index_of_deciding(verdicts, (Result.FAILED, Result.ERROR, Result.SKIPPED))
    return verdicts[-1] if place is None else verdict_of_call(verdicts[place], place + 1, len(verdicts))


def as_value_failure(verdict: Verdict, facts: Mapping[str, Any] | None = None) -> Verdict:
    """The failure of a check of several properties that is due to values alone: it counts as one of values."""
    return msgspec.structs.replace(verdict, facts={**verdict.facts, **(facts or {}), FAILED_CHECKS: [VALUE_CHECK]})
