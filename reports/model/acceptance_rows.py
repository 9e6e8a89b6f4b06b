"""The lines of an acceptance report: how trials ended, clauses, constraints, precision, coverage, determinism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from aclnn_cts.clauses.clause_verdicts import JudgedClause
from aclnn_cts.core.verdict import ToleranceResult, ToleranceVerdict
from aclnn_cts.speclang.model import Clause
from aclnn_cts.store.counts import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check of one operator."""

    operator: str
    check: str
    ends: Counts
    findings: tuple[str, ...]
    withheld: int = 0
    """Of a law: trials that were planned and could not be generated."""
    worst: float | str = 0.0
    """Largest share of a bound; of a law, of what its relation allows."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """What was recorded and not judged, with the number of trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRow(CheckRow):
    """One way in which one operator was asked for the same result again; nothing planned: the runs did not try it."""

    compared: int
    """Trials whose calls of one case all came back with outputs; 0 where the check makes no such calls."""
    alike: int
    """Of these, those whose outputs all had the same bits, judged or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminismPart:
    """What is promised of one operator's bits, and what was seen of them."""

    operator: str
    promised: tuple[tuple[str, str, str, str], ...]
    """When the same call must give the same bits (`always`, `deterministic`, `never`), the basis, and the source in
    English and Chinese."""
    held: int
    """Runs in which calls were held to it."""
    rows: tuple[RepeatRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRow:
    """One constraint of one operator: what the document promises where it is broken, and what came back."""

    operator: str
    id: str
    rule: str
    rule_zh: str
    strength: str
    group: str
    promised: tuple[str, ...]
    clauses: tuple[str, ...]
    held: int
    broken: int
    ends: Counts
    """Of the trials that break it."""
    returned: Mapping[str, int]
    """By status name, or by how the call ended where there is no status."""
    not_enforced: int
    """Calls beyond a limit that succeeded with right values."""
    applies: bool
    """Whether the document states it for a product that was run."""
    findings: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class ClauseRow(JudgedClause):
    """One statement of a document, what encodes it, and what the trials say of it."""

    operator: str
    """Empty for the clauses of the two-phase interface."""
    clause: Clause
    encoding: str
    """`constraints`, `check`, `interface`, `example` or `untestable`."""
    in_scope: bool
    evidence: tuple[str, ...]
    """Ids of trials: those that failed first, else some that passed."""
    findings: Mapping[str, int]
    """Failures by id of the finding."""
    specific: tuple[str, ...] = ()
    """Findings for which no other clause has a larger part of its judged trials failing with them."""


@dataclass(slots=True)
class ToleranceRow:
    """What one acceptance rule of the ecosystem says of an output, on failures and on a sample of what passed."""

    tolerance: str
    passed: int = 0
    failed: int = 0
    headroom: float = math.inf
    """The least that was left of its limit."""
    source: str = ""

    def add(self, result: ToleranceResult) -> None:
        """Count what it says of one trial."""
        self.source = self.source or result.source
        if result.verdict == ToleranceVerdict.NOT_APPLICABLE:
            return
        self.passed += result.verdict == ToleranceVerdict.PASS
        self.failed += result.verdict == ToleranceVerdict.FAIL
        headroom = float(result.headroom)
        self.headroom = min(self.headroom, -math.inf if math.isnan(headroom) else headroom)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageMap:
    """How many judged valid calls fall into each cell of a table."""

    operator: str
    kind: str
    """`rank`, `size`, `contents` or `layout`: what the columns are. The rows are dtypes."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    possible: tuple[tuple[bool, ...], ...]
    """Cells that a supported call can fall into; what was reached is among them."""

    @property
    def number(self) -> int:
        """Calls that were counted."""
        return sum(map(sum, self.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignCoverage:
    """How much of what one operator's document promises a campaign has covered."""

    run: str
    """The name of its directory."""
    operator: str
    sorts: Mapping[str, tuple[int, int, int]]
    """By sort (`constraints`, `limits`, `laws`, `pairs`): met, of how many, and how many were never judged besides."""
