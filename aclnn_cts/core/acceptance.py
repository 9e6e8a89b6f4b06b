"""What an acceptance report shows: counted from the records of one or several runs, judged nowhere again.

`engine.acceptance` makes it, `reports` shows it in each of its forms. Text that a person reads stands in it only where
a spec, a record or a manifest holds it already; all other words are the forms' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aclnn_cts.core.comparison import Comparison
from aclnn_cts.core.verdict import MagnitudeCounts

__all__ = [
    "Acceptance",
    "ClauseRow",
    "ClauseVerdict",
    "ConstraintRow",
    "CoverageMap",
    "Credibility",
    "DeterminismPart",
    "Ends",
    "EvidenceFile",
    "FaultFacts",
    "FindingCard",
    "MagnitudeBin",
    "OperatorPart",
    "PrecisionRow",
    "Program",
    "PromiseRow",
    "RepeatRow",
    "RulerLine",
    "RulerRow",
    "RunFacts",
    "Severity",
    "TrialRow",
    "UntestedReason",
    "WaiverRow",
    "WorstElement",
]


class ClauseVerdict:
    """What the trials say of a clause (values of `ClauseRow.verdict`)."""

    MET = "met"
    CONTRADICTED = "contradicted"
    UNTESTED = "untested"
    OPEN = "open"
    """The document leaves it open: whatever an implementation does, it keeps it."""


class UntestedReason:
    """Why no trial says anything of a clause (values of `ClauseRow.reason`)."""

    UNREACHABLE = "unreachable"
    """No test can show it; the spec says why."""
    NOT_RUN = "not run"
    """No trial of its operator, or of its promise, was planned."""
    PRODUCT = "other product"
    """Its constraints are stated for other products than those that were run."""
    CONDITION = "condition not met"
    """No trial met its condition."""
    SKIPPED = "skipped"
    """Its trials have no verdict; `ClauseRow.skipped` counts the reasons."""
    ONE_SIDE = "one side"
    """A constraint of it was never broken, or never held."""


class Severity:
    """How grave a finding is, by its kind alone (values of `FindingCard.severity`)."""

    CRITICAL = "critical"
    """Memory, the process or the device is at risk."""
    MAJOR = "major"
    """A result or an answer is wrong."""
    MINOR = "minor"
    """Beyond an assumption or a rule of the ecosystem, and not beyond a document."""
    ORDER = (CRITICAL, MAJOR, MINOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How trials ended: planned = passed + failed + errors + skipped; `waived` is a part of `failed`."""

    planned: int = 0
    passed: int = 0
    failed: int = 0
    waived: int = 0
    errors: int = 0
    skipped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Of the skipped ones."""

    @property
    def ended(self) -> int:
        """Trials with an end."""
        return self.passed + self.failed + self.errors + self.skipped

    @property
    def judged(self) -> int:
        """Trials that say something of the implementation."""
        return self.passed + self.failed

    @property
    def unwaived(self) -> int:
        """Failures that no waiver speaks for."""
        return self.failed - self.waived


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run: what was run, on what, and what its own summary says."""

    name: str
    """Of its directory."""
    path: str
    harness: str
    command: str
    arguments: tuple[str, ...]
    adapter: str
    profile: str
    seed: int
    product: str
    ran_on: str
    """What the implementation says of itself in a line; empty where it says nothing."""
    software: bool
    """Whether a software device stood in for the product."""
    target: Mapping[str, Any]
    started: str
    seconds: float | None
    """None where the run has not finished."""
    finished: bool
    interrupted: bool
    verdict: str
    ends: Ends
    discrepancies: tuple[str, ...]
    violations: tuple[str, ...]
    problems: tuple[str, ...]
    environment: tuple[tuple[str, str, str], ...]
    """Name, value and how it is known (measured, declared, unknown)."""
    specs: Mapping[str, str]
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    statuses: bool | None
    """Whether the implementation returns aclnn statuses; None where no trial shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """One operator that the runs had in scope."""

    operator: str
    stem: str
    document: str
    spec_sha256: str
    outputs: tuple[str, ...]
    ends: Ends


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseRow:
    """One promise of one operator."""

    operator: str
    promise: str
    ends: Ends
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
    promise: str
    ends: Ends
    """Nothing planned: the runs did not try it."""
    findings: tuple[str, ...]
    compared: int
    """Trials whose calls of one case all came back with outputs; 0 where the promise makes no such calls."""
    alike: int
    """Of these, those whose outputs all had the same bits, judged or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeterminismPart:
    """What is promised of one operator's bits, and what was seen of them."""

    operator: str
    promised: tuple[tuple[str, str, str], ...]
    """When the same call must give the same bits (`always`, `deterministic`, `never`), the basis and the source."""
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
    ends: Ends
    """Of the trials that break it."""
    returned: Mapping[str, int]
    """By status name, or by how the call ended where there is no status."""
    not_enforced: int
    """Calls beyond a limit that succeeded with right values."""
    applies: bool
    """Whether the document states it for a product that was run."""
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseRow:
    """One statement of a document, what encodes it, and what the trials say of it."""

    operator: str
    """Empty for the clauses of the two-phase interface."""
    at: str
    en: str
    zh: str
    certainty: str
    encoding: str
    """`constraints`, `promise`, `interface`, `example` or `untestable`."""
    constraints: tuple[str, ...]
    promise: str
    condition: str
    interface: str
    untestable: tuple[str, str] | None
    contradicts: tuple[str, ...]
    verdict: str
    reason: str
    """Of an untested clause."""
    in_scope: bool
    held: int
    """Trials whose case keeps it (of a constraint) or meets its condition (of a promise)."""
    broken: int
    """Trials whose case breaks its constraints."""
    passed: int
    failed: int
    waived: int
    skipped: Mapping[str, int]
    evidence: tuple[str, ...]
    """Ids of trials: those that failed first, else some that passed."""
    findings: Mapping[str, int]
    """Failures by id of the finding."""
    specific: tuple[str, ...] = ()
    """Findings for which no other clause has a larger part of its judged trials failing with them."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RulerRow:
    """What one acceptance rule of the ecosystem says of an output, on every failure and a sample of what passed."""

    ruler: str
    passed: int
    failed: int
    not_applicable: int
    headroom: float | str
    """The least that was left of its limit."""
    source: str


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
    """Formats that every probe leaves possible; None where nothing was probed."""
    magnitudes: tuple[MagnitudeBin, ...]
    spread: tuple[MagnitudeCounts, ...]
    """All elements of the trials that were counted so, by magnitude of the expected value and by share of the bound."""
    spread_trials: tuple[int, int]
    """How many trials these are: of the sample that passed, and failures."""
    measured: int
    """Trials that all rulers were put to."""
    within_bound: int
    """Of these, those within the derived bound."""
    rulers: tuple[RulerRow, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstElement:
    """The worst element of one output of the case that a finding shows."""

    output: str
    index: tuple[int, ...]
    got: float | str
    expected: float | str
    bound: float
    share: float | str
    beyond: int
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFacts:
    """A failure in figures: those of the call that shows it. What does not concern its kind is 0 or empty."""

    call: int = 0
    """Its number, from 1; 0 where no single call shows the failure."""
    calls: int = 0
    basis: str = ""
    """Of the compute model."""
    ended: str = ""
    signal: int | None = None
    seconds: float = 0.0
    returned: str = ""
    """The status that decides; empty where there is none."""
    promised: tuple[str, ...] = ()
    unwritten: int = 0
    """Elements of the output."""
    guard_before: int = 0
    """Bytes, as in all that follow."""
    guard_after: int = 0
    gap: int = 0
    changed: int = 0
    grown: int = 0
    form: str = ""
    """The shape or dtype that came back instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulerLine:
    """What one ruler says of one output of a finding's case."""

    ruler: str
    output: str
    verdict: str
    message: str
    figures: tuple[tuple[str, float | str, str, float], ...]
    """Name, value, relation, limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that shows a case and needs nothing of ours."""

    language: str
    """`cpp` or `python`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCard:
    """All failures with one signature."""

    id: str
    """`F1`, `F2`, ... in this report."""
    severity: str
    operator: str
    promise: str
    kind: str
    constraint: str
    output: str
    mode: str
    dtype: str
    number: int
    waived: int
    waivers: tuple[str, ...]
    of: int
    """Judged trials of the same operator, promise, mode and dtype: what `number` is a part of."""
    runs: tuple[str, ...]
    message: str
    """Of the smallest case, as recorded."""
    clauses: tuple[tuple[str, str], ...]
    """Operator (empty: the interface) and address of those that it contradicts."""
    case: tuple[tuple[str, str], ...]
    """Arguments of the smallest case, as text."""
    shrunk: bool
    """Whether a campaign made the case smaller; else it is the smallest of those that were recorded."""
    shrink: str
    """The command that makes it smaller."""
    change: str
    """What was changed against the valid twin."""
    trial_id: str
    trial: str
    """The smallest case's trial as JSON; empty where it is too large for a page."""
    figures_of: str
    """The trial whose figures `worst`, `rulers`, `fault` and `outcome` are, where it is not the case's own: of a case
    that was shrunk no record is kept."""
    worst: tuple[WorstElement, ...]
    rulers: tuple[RulerLine, ...]
    fault: FaultFacts
    outcome: tuple[str, ...]
    programs: tuple[Program, ...]
    program_call: tuple[int, int]
    """Which of how many calls of the trial the programs make; (1, 1) where it has one."""
    no_program: str
    """Why there is no program: `law`, `life cycle`, `too large`, `room`; empty where there is one."""
    replay: str
    file: str
    """Its trial file in the run directory."""
    file_is_case: bool
    """Whether the file holds the case; else it holds the first one that failed so."""
    alone: Mapping[str, int]
    """Of those that were run again alone in a fresh process, what came of it."""
    second_oracle: Mapping[str, int]
    """`agrees`, `not asked`: what the second oracle said of the expected value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverRow:
    """A waiver that spoke for failures; what is not known of it is None."""

    id: str
    failures: int
    findings: tuple[str, ...]
    reason: str | None
    reason_zh: str | None
    """The same in Chinese, where its owner has written it."""
    owner: str | None
    expiry: str | None
    link: str | None
    where: str | None
    expired: bool | None
    """On the day of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credibility:
    """Why the report can be believed: seeded faults found, correct implementations not accused, oracles compared."""

    matrix: Mapping[str, Any] | None
    """The kill matrix that ships with the package; None where there is none."""
    disputes: int
    dispute_messages: tuple[str, ...]
    second_oracle: Mapping[str, int]
    errors: tuple[tuple[str, int], ...]
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
    promise: str
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
    share: float | str
    seconds: float
    case: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A whole report."""

    runs: tuple[RunFacts, ...]
    verdict: str
    """`conforms`, `fails` or `none`, of the runs together."""
    suffices: bool
    """Whether every run is of a profile that acceptance can rest on."""
    ends: Ends
    operators: tuple[OperatorPart, ...]
    promises: tuple[PromiseRow, ...]
    clauses: tuple[ClauseRow, ...]
    constraints: tuple[ConstraintRow, ...]
    precision: tuple[PrecisionRow, ...]
    share_edges: tuple[int, ...]
    magnitude_step: int
    """Binades of a class of magnitudes (`PrecisionRow.spread`)."""
    coverage: tuple[CoverageMap, ...]
    determinism: tuple[DeterminismPart, ...]
    laws: tuple[tuple[str, str, str, str], ...]
    """Operator, promise, and what the law says in English and Chinese."""
    findings: tuple[FindingCard, ...]
    waivers: tuple[WaiverRow, ...]
    credibility: Credibility
    evidence: tuple[EvidenceFile, ...]
    comparisons: tuple[Comparison, ...] = ()
    """What changed in each run of the baseline's product against it; empty where none was given."""

    def counted(self, verdict: str) -> int:
        """Clauses in scope with a verdict."""
        return sum(row.verdict == verdict for row in self.clauses if row.in_scope)
