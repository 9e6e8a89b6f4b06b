"""Which constraints the trials of a run held and broke: what shows that a rule was put to the test on both sides."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from aclnn_cts.spec.evaluate import Evaluation

__all__ = ["Coverage"]


class Coverage(msgspec.Struct):
    """Counts by operator and constraint id, and by operator and promise for laws."""

    held: dict[str, dict[str, int]] = {}
    broken: dict[str, dict[str, int]] = {}
    laws: dict[str, dict[str, int]] = {}
    """Trials of each law, whatever came of them."""
    withheld: dict[str, dict[str, int]] = {}
    """Trials of each law that were planned and not generated, as no base gave calls that hold every constraint."""

    def add(self, operator: str, evaluation: Evaluation) -> None:
        """Count one trial's case."""
        for counts, constraints in ((self.held, evaluation.held), (self.broken, evaluation.broken)):
            mine = counts.setdefault(operator, {})
            for constraint in constraints:
                mine[constraint.id] = mine.get(constraint.id, 0) + 1

    def add_law(self, operator: str, promise: str) -> None:
        """Count one trial of a law."""
        _add(self.laws.setdefault(operator, {}), {promise: 1})

    def withhold(self, operator: str, promise: str, number: int) -> None:
        """Count trials of a law that were not generated."""
        _add(self.withheld.setdefault(operator, {}), {promise: number})

    def include(self, other: Coverage) -> None:
        """Add another's counts."""
        for counts, theirs in (
            (self.held, other.held),
            (self.broken, other.broken),
            (self.laws, other.laws),
            (self.withheld, other.withheld),
        ):
            for operator, numbers in theirs.items():
                _add(counts.setdefault(operator, {}), numbers)


def _add(counts: dict[str, int], numbers: Mapping[str, int]) -> None:
    for identifier, number in numbers.items():
        counts[identifier] = counts.get(identifier, 0) + number
