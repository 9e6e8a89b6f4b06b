"""The kill matrix of this release as reports show it: in both languages, beside the harness that writes the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aclnn_cts.mutants.fault_catalogue import Decoy, SeededFault, read_catalogue
from aclnn_cts.mutants.kill_matrix import DecoyRow, FaultRow, Figures, KillMatrix, figures, read_matrix, shipped_matrix
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.harness_parts import differing, judging_hash

_JUDGING = "harness.judging_sha256"
"""The fact of a run's environment that names what judged in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What ships of the harness's own power."""

    matrix: KillMatrix
    figures: Figures
    entries: Mapping[str, SeededFault | Decoy]
    """Of the catalogue, by id."""
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

    def chinese(self, row: FaultRow | DecoyRow, field: str = "sentence") -> str:
        """A field in Chinese, where the catalogue still has the sentence as it was measured."""
        entry = self.entries.get(row.id)
        text = getattr(entry, f"{field}_zh") if entry is not None and entry.sentence == row.sentence else ""
        return str(text or getattr(row, field))


def power_of(matrix: KillMatrix, specs: Specs) -> Power:
    """A matrix as a report shows it."""
    catalogue, made_by = read_catalogue(specs), matrix.made_by
    return Power(
        matrix=matrix,
        figures=figures(matrix),
        entries={**catalogue.faults, **catalogue.decoys},
        another=None if made_by is None else differing(made_by.parts),
        judging_sha256="" if made_by is None else judging_hash(made_by.parts),
    )


def shipped_power(specs: Specs) -> Power | None:
    """The matrix of this release; None where it has none."""
    return power_of(read_matrix(), specs) if shipped_matrix().is_file() else None
