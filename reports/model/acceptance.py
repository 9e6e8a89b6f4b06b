"""What an acceptance report shows: counted from the records of one or several runs, judged nowhere again.

`reports.model` makes it, `reports` shows it in each of its forms. Text that a person reads stands in it only where
a spec, a record or a manifest holds it already; all other words are the forms' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aclnn_cts.core.note import Note
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.reports.model.acceptance_rows import (
    CampaignCoverage,
    CheckRow,
    ClauseRow,
    ConstraintRow,
    CoverageMap,
    DeterminismPart,
    FindingCard,
    WaiverRow,
)
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdict
from aclnn_cts.reports.model.kill_matrix import Power
from aclnn_cts.reports.model.precision import PrecisionRow
from aclnn_cts.store.counts import Counts, ObservationCount, OpenRow
from aclnn_cts.store.manifest import Manifest
from aclnn_cts.store.run_verdict import Conclusion, OperatorVerdict
from aclnn_cts.triage.comparison import RunComparison

if TYPE_CHECKING:
    from aclnn_cts.reports.model.standards import StandardPart


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """The verdict on one operator for the product of a run."""

    operator: str
    found: OperatorVerdict
    percent: int
    """Judged, of the trials that must be."""
    ends: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run: what was run, on what, and what its own summary says."""

    name: str
    """Of its directory."""
    path: Path
    """Of its directory, absolute."""
    manifest: Manifest
    ran_on: str
    """What the implementation says of itself in a line; empty where it says nothing."""
    ran_on_zh: str
    """The same in Chinese, where the implementation says it."""
    version: str
    """Of the implementation; empty where it is not known."""
    software: bool
    """Whether a software device stood in for the product."""
    target: Mapping[str, Any]
    """As plain JSON values."""
    seconds: float | None
    """None where the run has not finished."""
    finished: bool
    interrupted: bool
    conclusion: Conclusion
    insufficient: tuple[str, ...]
    """Why acceptance cannot rest on it, in codes (`store.run_verdict.InsufficiencyReason`); empty where it can."""
    operators: tuple[VerdictRow, ...]
    ends: Counts
    discrepancies: tuple[str, ...]
    violations: tuple[str, ...]
    problems: tuple[str, ...]
    notes: Mapping[str, Note]
    """Discrepancies, violations and problems in codes and values, by their text; a run of an earlier version of the
    harness has the text alone."""
    environment: tuple[tuple[str, str, str], ...]
    """Name, value and how it is known (measured, declared, unknown)."""
    environment_zh: Mapping[str, str]
    """In Chinese, by name: those values that are a sentence of ours."""
    statuses: bool | None
    """Whether the implementation returns aclnn statuses; None where no trial shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """One operator that the runs had in scope."""

    operator: str
    document_edition: str
    document_sha256: str
    """Of the edition that the spec was made from; empty where it names none."""
    ends: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Credibility:
    """Why the report can be believed: seeded faults found, correct implementations not accused, oracles compared."""

    power: Power | None
    """The kill matrix that ships with the package; None where there is none."""
    disputes: int
    dispute_notes: tuple[Note, ...]
    """Of a few of them."""
    second_oracle: Mapping[str, int]
    errors: tuple[tuple[Note, int], ...]
    """What went wrong in the harness, with the number of trials that it cost their verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFile:
    """One file of a run directory."""

    run: str
    path: str
    bytes: int
    sha256: str
    what: str
    """`manifest`, `records`, `summary`, `spec`, `waiver`, `failure` or `blobs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial on one line, for tables that hold them all."""

    run: str
    trial_id: str
    operator: str
    product: str
    """With the words `software device` where one stood in for it."""
    check: str
    kind: str
    constraint: str
    result: str
    why: str
    """The kind of fault, or the reason to skip."""
    message: str
    waiver: str
    dtype: str
    mode: str
    output: str
    status: str
    error_ratio: float | str
    seconds: float
    case: str
    finding: str
    """The id of the report's card that a failure stands on; empty where no report was given, and of all others."""
    verdict: str
    """Of the run, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A whole report."""

    runs: tuple[RunFacts, ...]
    verdict: RunVerdict
    """Of the runs together: the worst counts."""
    suffices: bool
    """Whether complete runs of a sufficient profile judged every operator and product."""
    ends: Counts
    operators: tuple[OperatorPart, ...]
    checks: tuple[CheckRow, ...]
    clauses: tuple[ClauseRow, ...]
    constraints: tuple[ConstraintRow, ...]
    observations: tuple[tuple[str, ObservationCount], ...]
    """By operator: what calls did beside what the document suggests, breaking no rule; the most frequent first."""
    openness: tuple[OpenRow, ...]
    """What the documents leave open, the most first; rows of which nothing is open are left out."""
    precision: tuple[PrecisionRow, ...]
    error_ratio_edges: tuple[int, ...]
    coverage: tuple[CoverageMap, ...]
    determinism: tuple[DeterminismPart, ...]
    findings: tuple[FindingCard, ...]
    waivers: tuple[WaiverRow, ...]
    credibility: Credibility
    evidence: tuple[EvidenceFile, ...]
    comparisons: tuple[RunComparison, ...] = ()
    """What changed in each run of the baseline's product against it; empty where none was given."""
    standards: tuple[StandardPart, ...] = ()
    """Of the runs that follow a vendor's acceptance standard, rule by rule."""
    campaigns: tuple[CampaignCoverage, ...] = ()
    """Of the runs that are campaigns and have ended, operator by operator."""

    @property
    def unwaived_findings(self) -> tuple[FindingCard, ...]:
        """Those with a failure that no waiver accepts."""
        return tuple(card for card in self.findings if card.waived < card.number)

    def counted(self, verdict: str) -> int:
        """Clauses with a verdict."""
        return sum(row.verdict == verdict for row in self.clauses)

    @property
    def excused(self) -> int:
        """Contradicted clauses of which a waiver accepts every failure."""
        return sum(
            row.verdict == ClauseVerdict.CONTRADICTED and row.said.failed == row.said.waived for row in self.clauses
        )
