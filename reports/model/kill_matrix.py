"""The kill matrix of this release as reports show it: in both languages, beside the harness that writes the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aclnn_cts.selftest.kill_matrix import Figures, KillMatrix, figures, read_matrix, shipped_matrix
from aclnn_cts.store.harness_parts import differing_parts, judging_hash

_JUDGING = "harness.judging_sha256"
"""The fact of a run's environment that names what judged in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What ships of the harness's own power."""

    matrix: KillMatrix
    figures: Figures
    another: tuple[str, ...] | None
    """Parts in which the harness that writes the report is another one; None where that is not known."""
    judging_sha256: str
    """Of what planned, generated, called and judged; empty where that is not known."""

    def measured_harness_in(self, environment: Iterable[tuple[str, str, str]]) -> str:
        """Whether the harness that was measured judged in a run's environment: `same`, `another` or `unknown`."""
        found = next((value for name, value, _ in environment if name == _JUDGING), "")
        if not found or not self.judging_sha256:
            return "unknown"
        return "same" if found == self.judging_sha256 else "another"

    @property
    def operators(self) -> tuple[str, ...]:
        """Those that faults were made of; of others nothing is known."""
        return tuple(dict.fromkeys(fault.operator for fault in self.matrix.faults))


def power_of(matrix: KillMatrix) -> Power:
    """A matrix as a report shows it."""
    made_by = matrix.made_by
    return Power(
        matrix=matrix,
        figures=figures(matrix),
        another=None if made_by is None else differing_parts(made_by.parts),
        judging_sha256="" if made_by is None else judging_hash(made_by.parts),
    )


def shipped_power() -> Power | None:
    """The matrix of this release; None where it has none."""
    return power_of(read_matrix()) if shipped_matrix().is_file() else None
