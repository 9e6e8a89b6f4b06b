"""Trials that shrinking tries: each is executed once, within a limit, and the smallest that fails is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.checks.laws import PREFIX, law_of, usable
from aclnn_cts.checks.registry import check_trial
from aclnn_cts.core.case import Argument, Case
from aclnn_cts.core.case_json import case_from_json, case_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.law import with_arguments
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.model import Spec

DEATH_COST = 4
"""What an execution counts that ends the implementation: a new process is started for it."""
HANG_COST = 40
"""What one counts that does not come back, and takes a minute to be given up."""


class Spent(Exception):  # noqa: N818 - no error: the limit is reached
    """No more executions."""


@dataclass(slots=True)
class Attempts:
    """Executes each trial once (or `repeats` times, until it fails) and keeps the smallest that fails the same way."""

    execute: Callable[[Trial], Record]
    same: Callable[[Record], bool]
    repeats: int
    best: Trial
    until: float = math.inf
    """When, by the monotonic clock, nothing more is executed."""
    executions: int = 0
    cost: int = 0
    ceiling: int = 0
    known: dict[str, Record | None] = field(default_factory=dict)
    """By id of a trial that was tried: the record that shows the failure."""

    def fails(self, trial: Trial) -> bool:
        """Whether it fails the same way; such a trial is the smallest from then on, as callers offer smaller ones."""
        identifier = trial.id
        if identifier not in self.known:
            self.known[identifier] = self._tried(trial)
        if self.known[identifier] is None:
            return False
        self.best = trial
        return True

    def _tried(self, trial: Trial) -> Record | None:
        for _ in range(self.repeats):
            if self.cost >= self.ceiling or time.monotonic() >= self.until:
                raise Spent
            record = self.execute(trial)
            self.executions += 1
            ends = {outcome.ended for attempt in record.attempts for outcome in attempt}
            hung = record.verdict.kind == Fault.HANG or Ended.TIME_LIMIT in ends
            died = record.verdict.kind == Fault.CRASH or bool(ends & {Ended.SIGNAL, Ended.EXIT})
            self.cost += HANG_COST if hung else DEATH_COST if died else 1
            if self.same(record):
                return record
        return None

    def changed(self, spec: Spec, changes: Mapping[str, Argument]) -> bool:
        """Whether the best trial with other arguments is one that breaks the same rules, and fails the same way."""
        trial = _changed(self.best, spec, changes)
        return trial is not None and trial.id != self.best.id and self.fails(trial)


def _argument(case: Case, name: str) -> Argument:
    """An argument, or one tensor of a list."""
    return case.arguments[name] if name in case.arguments else case.tensor(name)


def _changed(trial: Trial, spec: Spec, changes: Mapping[str, Argument]) -> Trial | None:
    case = with_arguments(trial.case, changes)
    before = {item.id for item in evaluate(spec, trial.case).broken}
    if {item.id for item in evaluate(spec, case).broken} != before:
        return None
    parameters = dict(trial.parameters)
    if (twin := parameters.get("twin")) is not None:
        old = case_from_json(twin, where="trial: $.parameters.twin")
        # What the break itself has changed stays different in the twin.
        alike = {name: value for name, value in changes.items() if _argument(old, name) == _argument(trial.case, name)}
        mended = with_arguments(old, alike)
        if evaluate(spec, mended).broken:
            return None
        parameters["twin"] = case_to_json(mended, origin=False)
    made = msgspec.structs.replace(trial, case=case, parameters=parameters)
    try:
        check_trial(made, spec, where="shrinking")
        if trial.check.startswith(PREFIX) and not usable(law_of(spec, trial.check), spec, made):
            return None
    except (UsageError, HarnessError):
        return None
    return made
