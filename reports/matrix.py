"""Tables that are made before they are shown: operators by check, and the kill matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aclnn_cts.reports.model.acceptance import Acceptance, RunFacts
from aclnn_cts.reports.model.acceptance_rows import CheckRow

_JUDGING = "harness.judging_sha256"
"""The fact of a run's environment that names what judged in it."""


def check_matrix(report: Acceptance) -> list[tuple[str, list[CheckRow | None]]]:
    """By check, its row in each operator; None where the operator has none."""
    rows = {(row.operator, row.check): row for row in report.checks}
    return [
        (check, [rows.get((part.operator, check)) for part in report.operators])
        for check in dict.fromkeys(row.check for row in report.checks)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One seeded fault, over all seeds."""

    id: str
    operator: str
    kind: str
    sentence: str
    sentence_zh: str
    equivalent: str
    equivalent_zh: str
    found: int
    seeds: int
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KillMatrix:
    """What ships of the harness's own power."""

    profile: str
    seeds: tuple[int, ...]
    faults: tuple[FaultRow, ...]
    decoys: tuple[Mapping[str, Any], ...]
    made_by: Mapping[str, Any] | None
    """The command, harness, time and machine of the measurement (`store.provenance`); None where it is not known."""
    another: tuple[str, ...] | None
    """Parts in which the harness that writes the report is another one; None where that is not known."""
    judging_sha256: str
    """Of what planned, generated, called and judged; empty where that is not known."""

    def measured_harness_of(self, run: RunFacts) -> str:
        """Whether a run was judged by the harness that was measured: `same`, `another` or `unknown`."""
        found = next((value for name, value, _ in run.environment if name == _JUDGING), "")
        if not found or not self.judging_sha256:
            return "unknown"
        return "same" if found == self.judging_sha256 else "another"

    @property
    def operators(self) -> tuple[str, ...]:
        """Those that faults were made of; of others nothing is known."""
        return tuple(dict.fromkeys(fault.operator for fault in self.faults))

    @property
    def counted(self) -> int:
        """Faults that a document forbids."""
        return sum(not fault.equivalent for fault in self.faults)

    @property
    def found(self) -> int:
        """Of these, those that every seed finds."""
        return sum(fault.found == fault.seeds and not fault.equivalent for fault in self.faults)


def kill_matrix_view(document: Mapping[str, Any] | None) -> KillMatrix | None:
    """The kill matrix by fault; None where none ships."""
    if document is None:
        return None
    faults = []
    for entry in document.get("faults", ()):
        tries = entry.get("by_seed", ())
        faults.append(
            FaultRow(
                id=str(entry["id"]),
                operator=str(entry.get("operator", "")),
                kind=str(entry.get("class", "")),
                sentence=str(entry.get("sentence", "")),
                sentence_zh=str(entry.get("sentence_zh") or entry.get("sentence", "")),
                equivalent=str(entry.get("equivalent") or ""),
                equivalent_zh=str(entry.get("equivalent_zh") or entry.get("equivalent") or ""),
                found=sum(bool(item.get("found")) for item in tries),
                seeds=len(tries),
                by=tuple(dict.fromkeys(str(item["check"]) for item in tries if item.get("check"))),
            )
        )
    return KillMatrix(
        profile=str(document.get("profile", "")),
        seeds=tuple(document.get("seeds", ())),
        faults=tuple(faults),
        decoys=tuple(document.get("decoys", ())),
        made_by=document.get("made_by"),
        another=None if document.get("another") is None else tuple(document["another"]),
        judging_sha256=str(document.get("judging_sha256", "")),
    )
