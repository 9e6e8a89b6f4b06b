"""How trials ended in a run, in the order of their ids: what two runs are compared by, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aclnn_cts.core.verdict import Result
from aclnn_cts.store.store_reader import ResultReader

__all__ = ["End", "ends", "pairs"]

_COLUMNS = (
    "trial_id",
    "operator",
    "product",
    "check_id",
    "kind",
    "result",
    "skip_reason",
    "waiver",
    "signature",
    "dtype",
    "mode",
    "share",
)
_RANK = {Result.FAILED: 4, Result.ERROR: 3, Result.PASSED: 2, Result.SKIPPED: 1, Result.OUT_OF_SCOPE: 0}


@dataclass(slots=True)
class End:
    """How a trial ended in one run; of several records of it the worst counts."""

    trial_id: str
    operator: str
    product: str
    check: str
    kind: str
    result: str
    skip_reason: str
    waiver: str
    signature: str | None
    dtype: str
    mode: str
    share: float
    unsteady: bool = False
    """It passed and failed in the same run."""

    @property
    def text(self) -> str:
        return f"{self.result}: {self.skip_reason}" if self.skip_reason else self.result

    def take(self, other: End) -> End:
        unsteady = self.unsteady or {self.result, other.result} == {Result.PASSED, Result.FAILED}
        worst = other if _RANK[other.result] > _RANK[self.result] else self
        worst.share = max(self.share, other.share)
        worst.unsteady = unsteady
        return worst


def ends(results: ResultReader) -> Iterator[End]:
    """One end for each trial, by trial id."""
    current: End | None = None
    for row in results.rows_by_trial(*_COLUMNS):
        end = End(*row)
        if current is None:
            current = end
        elif current.trial_id == end.trial_id:
            current = current.take(end)
        else:
            yield current
            current = end
    if current is not None:
        yield current


def pairs(first: Iterator[End], second: Iterator[End]) -> Iterator[tuple[End | None, End | None]]:
    """The trials of both, those of one run alone beside None."""
    before, after = next(first, None), next(second, None)
    while before is not None or after is not None:
        if after is None or (before is not None and before.trial_id < after.trial_id):
            yield before, None
            before = next(first, None)
        elif before is None or after.trial_id < before.trial_id:
            yield None, after
            after = next(second, None)
        else:
            yield before, after
            before, after = next(first, None), next(second, None)
