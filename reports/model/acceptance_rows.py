"""The lines of an acceptance report: how trials ended, clauses, constraints, precision, coverage, determinism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from aclnn_cts.core.verdict import MagnitudeCounts, Skip, ToleranceResult, ToleranceVerdict
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
class RepeatRow:
    """One way in which one operator was asked for the same result again."""

    operator: str
    check: str
    ends: Counts
    """Nothing planned: the runs did not try it."""
    findings: tuple[str, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationRow:
    """What calls that break a constraint did beside what the document suggests, breaking no rule."""

    operator: str
    kind: str
    """`core.observations.Observation`."""
    constraint: str
    number: int
    """Of trials."""
    trial: str
    """Id of one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRow:
    """One statement of a document, what encodes it, and what the trials say of it."""

    operator: str
    """Empty for the clauses of the two-phase interface."""
    at: str
    en: str
    zh: str
    certainty: str
    products: tuple[str, ...]
    """Where the document states it; everywhere where it names none."""
    encoding: str
    """`constraints`, `check`, `interface`, `example` or `untestable`."""
    constraints: tuple[str, ...]
    check: str
    condition: str
    faults: tuple[str, ...]
    """The kinds of fault that contradict it; all where it names none."""
    interface: str
    untestable: tuple[str, str] | None
    contradicts: tuple[str, ...]
    verdict: str
    reason: str
    """Of an untested clause."""
    in_scope: bool
    held: int
    """Trials whose case keeps it (of a constraint) or meets its condition (of a check)."""
    broken: int
    """Trials whose case breaks its constraints."""
    passed: int
    failed: int
    waived: int
    otherwise: int
    """Trials that failed and keep it: with wrong values, where it is not about them."""
    skipped: Mapping[str, int]
    evidence: tuple[str, ...]
    """Ids of trials: those that failed first, else some that passed."""
    findings: Mapping[str, int]
    """Failures by id of the finding."""
    specific: tuple[str, ...] = ()
    """Findings for which no other clause has a larger part of its judged trials failing with them."""

    @property
    def judged(self) -> int:
        """Trials that say something of it."""
        return self.passed + self.failed + self.otherwise

    @property
    def aside(self) -> int:
        """Trials that would have said something of it and did not."""
        return sum(number for reason, number in self.skipped.items() if reason != Skip.OPEN)

    @property
    def all_waived(self) -> bool:
        """Whether waivers speak for everything that contradicts it."""
        return self.failed > 0 and self.failed == self.waived


@dataclass(frozen=True, slots=True, kw_only=True)
class MagnitudeBin:
    """Of the worst elements of trials whose expected value lies in some binades, the one nearest to its bound."""

    exponent: int
    """Of the first binade: 2^exponent is the smallest magnitude."""
    trials: int
    error: float
    bound: float


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
class PrecisionRow:
    """One output in one dtype and mode."""

    operator: str
    output: str
    dtype: str
    mode: str
    trials: int
    elements: int
    beyond: int
    open: int
    histogram: tuple[int, ...]
    """Elements by log2 of the share of the bound; `Acceptance.share_edges` are the upper ends of all bins but one."""
    worst: float | str
    bases: Mapping[str, int]
    """Trials by the basis of the compute model: document, published, assumed."""
    finer: int
    """Trials whose outputs are right for operands that were never rounded as the mode asks."""
    used: tuple[str, ...] | None
    """Formats that every probe leaves possible; None where nothing was probed, or probes do not tell of this output."""
    told_apart: bool = True
    """False where a probe of an earlier version of the harness, which names formats for all outputs at once, found
    another output at fault."""
    magnitudes: tuple[MagnitudeBin, ...]
    spread: tuple[MagnitudeCounts, ...]
    """All elements of the trials that were counted so, by magnitude of the expected value and by share of the bound."""
    spread_trials: tuple[int, int]
    """How many trials these are: of the sample that passed, and failures."""
    measured: int
    """Trials that all tolerances were put to."""
    within_bound: int
    """Of these, those within the derived bound."""
    tolerances: tuple[ToleranceRow, ...]


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
