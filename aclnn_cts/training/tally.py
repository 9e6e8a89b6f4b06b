"""What the checks of a training's calls come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.candidates.check import CheckResult
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.training.calls import RecordedCall


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call and what was found of it."""

    call: RecordedCall
    check: CheckResult

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        call = self.call
        return {
            "step": call.step,
            "call": call.number,
            "module": call.module,
            "operator": call.operator,
            **self.check.to_json(),
        }

    def __str__(self) -> str:
        return f"{self.call.place}: {self.check.reason or self.check.verdict}"


@dataclass(slots=True)
class CallTally:
    """Counts the calls, and keeps those that a person looks at."""

    checked: Counter[str] = field(default_factory=Counter)
    """Calls by verdict."""
    by_operator: dict[str, Counter[str]] = field(default_factory=dict)
    first_wrong: CheckedCall | None = None
    worst: CheckedCall | None = None
    """The call with the largest error ratio."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why calls are inconclusive."""

    def add(self, item: CheckedCall) -> None:
        """Count one call."""
        verdict = item.check.verdict
        self.checked[verdict] += 1
        self.by_operator.setdefault(item.call.operator, Counter())[verdict] += 1
        if verdict == RunVerdict.FAILS.value and self.first_wrong is None:
            self.first_wrong = item
        elif verdict == RunVerdict.INCONCLUSIVE.value:
            self.reasons[item.check.reason] += 1
        if _ratio(item) > (0.0 if self.worst is None else _ratio(self.worst)):
            self.worst = item

    @property
    def verdict(self) -> RunVerdict:
        """Of all calls: fails where one fails, inconclusive where none could be checked."""
        if self.checked[RunVerdict.FAILS.value]:
            return RunVerdict.FAILS
        return RunVerdict.CONFORMS if self.checked[RunVerdict.CONFORMS.value] else RunVerdict.INCONCLUSIVE

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "verdict": self.verdict.value,
            "calls": dict(self.checked),
            "operators": {name: dict(found) for name, found in sorted(self.by_operator.items())},
            "first_wrong": None if self.first_wrong is None else self.first_wrong.to_json(),
            "worst": None if self.worst is None else self.worst.to_json(),
            "reasons": dict(self.reasons.most_common()),
        }

    def lines(self) -> list[str]:
        """For a person."""
        counts: Mapping[str, int] = self.checked
        said = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items())) or "none"
        found = [f"Verdict: {self.verdict.value}.", f"Calls checked: {said}."]
        if self.first_wrong is not None:
            found.append(f"First wrong call: {self.first_wrong}")
        if self.worst is not None and self.worst is not self.first_wrong:
            found.append(f"Largest error ratio: {_ratio(self.worst):.3g} at {self.worst.call.place}")
        found += [f"Not judged, {number}: {reason}" for reason, number in self.reasons.most_common(3)]
        return found


def _ratio(item: CheckedCall) -> float:
    worst = item.check.worst
    return 0.0 if worst is None else float(worst.error_ratio)
