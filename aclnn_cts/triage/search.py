"""Trials drawn by Hypothesis, so that the first failure is shrunk to a small one that fails the same way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from aclnn_cts.core.case import Case, Origin
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.generate.strategies import invalid_cases, valid_cases
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.registry import derived_trial

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

EXAMPLES = 40
"""Trials that a search draws where nothing fails."""

SHRINKS = 300
"""Trials that are judged to make a failure smaller."""

DEATH_COST = 50
"""What a trial counts of them that ends or hangs the implementation, which takes seconds or a minute each time."""

SEARCHED = ("values", "status")
"""Checks whose trials Hypothesis can draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search came to: every record where nothing failed, else the smallest failure alone."""

    records: tuple[Record, ...]
    smallest: Record | None


def trial_strategy(spec: Spec, target: Target, check: str) -> SearchStrategy[Trial]:
    """Trials of `values` (valid cases) or `status` (any of the constraints broken that may be sent)."""
    from hypothesis import strategies as st  # noqa: PLC0415 - gates and shrinking alone pay for it

    if check == "values":
        return valid_cases(spec, target).map(lambda case: Trial(check, _searched(case)))
    constraints = [item for item in spec.constraints_for(target.product) if not item.unsafe]
    broken = [invalid_cases(spec, target, item) for item in constraints]
    return st.one_of(*(cases.map(lambda derived: derived_trial(check, derived)) for cases in broken))


def _searched(case: Case) -> Case:
    return msgspec.structs.replace(case, origin=Origin(kind="valid", source="hypothesis"))


@dataclass(slots=True)
class _Attempts:
    """Judges each trial once, so that an implementation that answers now this, now that, confuses no shrinking."""

    judge: Callable[[Trial], Record]
    records: dict[str, Record] = field(default_factory=dict)
    """By the trial's id."""
    smallest: Record | None = None
    spent: int = 0

    def fails(self, trial: Trial) -> bool:
        """Whether a trial fails unwaived, and in the way in which the first one did."""
        record = self.records.get(trial.id)
        if record is None:
            if self.spent >= SHRINKS:
                return False
            record = self.records[trial.id] = self.judge(trial)
            if self.smallest is not None:
                self.spent += DEATH_COST if record.verdict.kind in (Fault.CRASH, Fault.HANG) else 1
        if record.verdict.result != Result.FAILED or record.waiver:
            return False
        if self.smallest is not None and record.key != self.smallest.key:
            return False
        self.smallest = record
        return True


def search(
    strategy: SearchStrategy[Trial], judge: Callable[[Trial], Record], *, seed: int, examples: int = EXAMPLES
) -> SearchResult:
    """Draw trials until one fails unwaived, and shrink that one. The same seed draws the same trials."""
    import hypothesis  # noqa: PLC0415 - gates and shrinking alone pay for it

    attempts = _Attempts(judge)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
    )
    @hypothesis.given(strategy)
    def attempt(trial: Trial) -> None:
        if attempts.fails(trial):
            raise _FoundError

    with contextlib.suppress(_FoundError, hypothesis.errors.Unsatisfiable):
        # Unsatisfiable: not one drawing could be broken as the constraints want it, so there was nothing to judge.
        attempt()
    if attempts.smallest is not None:
        return SearchResult(records=(attempts.smallest,), smallest=attempts.smallest)
    return SearchResult(records=tuple(attempts.records.values()), smallest=None)


class _FoundError(Exception):
    """Tells Hypothesis that a trial is what it looks for."""
