"""Which constraints the trials of a run held and broke: what shows that a rule was put to the test on both sides."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec

from aclnn_cts.speclang.evaluate import Evaluation
from aclnn_cts.speclang.kinds import Constraint

_ID = attrgetter("id")


class Coverage(msgspec.Struct):
    """Counts by operator and constraint id, and by operator and check for laws."""

    held: dict[str, dict[str, int]] = {}
    broken: dict[str, dict[str, int]] = {}
    laws: dict[str, dict[str, int]] = {}
    """Trials of each law, whatever came of them."""
    withheld: dict[str, dict[str, int]] = {}
    """Trials of each law that were planned and not generated, as no base gave calls that hold every constraint."""
    cells: dict[str, dict[str, int]] = {}
    """Calls that were judged on values, by cell of size regime, dtype and layout."""

    @property
    def operators(self) -> frozenset[str]:
        """All that are counted."""
        return frozenset().union(self.held, self.broken, self.laws, self.withheld, self.cells)

    def add(self, operators: Sequence[str], evaluations: Sequence[Evaluation]) -> None:
        """Count the cases of some trials, each with its operator."""
        for operator in dict.fromkeys(operators):
            mine = [found for name, found in zip(operators, evaluations, strict=True) if name == operator]
            _add(self.held.setdefault(operator, {}), _counted(evaluation.held for evaluation in mine))
            _add(self.broken.setdefault(operator, {}), _counted(evaluation.broken for evaluation in mine))

    def add_law(self, operator: str, check: str) -> None:
        """Count one trial of a law."""
        _add(self.laws.setdefault(operator, {}), {check: 1})

    def add_cells(self, operator: str, cells: Iterable[str]) -> None:
        """Count one call that was judged on values."""
        _add(self.cells.setdefault(operator, {}), dict.fromkeys(cells, 1))

    def withhold(self, operator: str, check: str, number: int) -> None:
        """Count trials of a law that were not generated."""
        _add(self.withheld.setdefault(operator, {}), {check: number})

    def include(self, other: Coverage) -> None:
        """Add another's counts."""
        for counts, theirs in (
            (self.held, other.held),
            (self.broken, other.broken),
            (self.laws, other.laws),
            (self.withheld, other.withheld),
            (self.cells, other.cells),
        ):
            for operator, numbers in theirs.items():
                _add(counts.setdefault(operator, {}), numbers)


def _counted(constraints: Iterable[Sequence[Constraint]]) -> Mapping[str, int]:
    return Counter(map(_ID, itertools.chain.from_iterable(constraints)))


def _add(counts: dict[str, int], numbers: Mapping[str, int]) -> None:
    for identifier, number in numbers.items():
        counts[identifier] = counts.get(identifier, 0) + number
