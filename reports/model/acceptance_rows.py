"""The lines of an acceptance report: results, clauses, coverage, precision, findings and waivers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from aclnn_cts.core.finding import Finding, SharedCondition
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.verdict import Record, ToleranceResult, ToleranceVerdict
from aclnn_cts.reports.model.clause_verdicts import JudgedClause
from aclnn_cts.speclang.model import Clause
from aclnn_cts.store.counts import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check of one operator."""

    operator: str
    check: str
    ends: Counts
    findings: tuple[str, ...]
    worst: float | str = 0.0
    """Largest error as a share of its bound."""
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
    """By sort (`constraints`, `limits`, `pairs`): met, of how many, and how many were never judged besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFacts:
    """A failure in figures: those of the call that shows it. What does not concern its kind is 0 or empty."""

    call: int = 0
    """Its number, from 1; 0 where no single call shows the failure."""
    calls: int = 0
    basis: str = ""
    """Of the compute model."""
    outcome: Outcome = Outcome(ended="")
    state: BufferState = BufferState()
    """Of the memory of the output, or of the input, at fault."""
    returned: str = ""
    """The status that decides; empty where there is none."""
    promised: tuple[str, ...] = ()
    grown: int = 0
    """Bytes."""
    form: str = ""
    """The shape or dtype that came back instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionProgram:
    """A program that shows a case and needs nothing of ours."""

    language: str
    """`cpp`, `python`, `numpy` or `torch`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePrograms:
    """The programs of a finding."""

    programs: tuple[ReproductionProgram, ...] = ()
    call: tuple[int, int] = (1, 1)
    """Which of how many calls of the trial they make; (1, 1) where it has one, 0 for all of them in turn."""
    missing: str = ""
    """Why there is none (`store.programs.NoProgram`); empty where there is one."""
    elements: tuple[int, int] = (0, 0)
    """Elements of the case's calls, and those that a program holds, where these are too few; else zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingMember:
    """Recorded failures of a finding that one run met in one check in the same way."""

    run: str
    check: str
    constraint: str
    kind: str
    answer: str
    """The status, signal or end that came instead of the promised one."""
    number: int
    joined: bool
    """Whether they only look like the finding: their calls were not made again one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCard:
    """All failures that are put together as one finding."""

    id: str
    """`F1`, `F2`, ... in this report."""
    severity: str
    operator: str
    check: str
    """`values` for all that one fault of a call's values breaks; `members` has the checks that met it."""
    kind: str
    """The gravest of its failures', where several kinds are taken together."""
    kinds: Mapping[str, int]
    """Those of the recorded failures, where there are several."""
    members: tuple[FindingMember, ...]
    """All recorded failures, sorted out."""
    constraint: str
    output: str
    mode: str
    dtype: str
    """Those of all failures: of the first output and, with its name, of the argument that decides."""
    number: int
    waived: int
    waivers: tuple[str, ...]
    of: int
    """Judged trials of the operator with the members' checks, modes and dtypes: what `number` is a part of."""
    runs: tuple[str, ...]
    files: frozenset[tuple[str, str]]
    """The trial files that the runs keep of it, by run and name."""
    message: str
    """Of the smallest case, as recorded."""
    clauses: tuple[tuple[str, str], ...]
    """Operator (empty: the interface) and address of those that it contradicts."""
    case: tuple[tuple[str, str], ...]
    """Arguments of the smallest case, as text."""
    record: Record
    """Of the trial that the figures are of."""
    chosen_of: int
    """The failures that the case is the smallest of, where it was not shrunk: the gravest ones that are this finding
    by themselves."""
    shrunk: bool
    """Whether a campaign or `aclnn-cts shrink` made the case smaller; else it is the smallest of those recorded."""
    executions: int
    """That shrinking took; 0 where it was not shrunk."""
    shrunk_whole: bool
    """Whether shrinking tried everything within its limit."""
    shrink: str
    """The command that makes the findings of the run smaller."""
    change: str
    """What was changed against the valid twin."""
    after: int
    """Calls that the trial, and its programs, make before its own, as the failure does not show without them."""
    trial_id: str
    trial: str
    """The smallest case's trial as JSON; empty where it is too large for a page."""
    figures_of: str
    """The trial whose figures `record`, `fault` and `outcome` have, where it is not the case's own: of a case that a
    campaign shrank no record is kept."""
    fault: FaultFacts
    outcome: tuple[Outcome, ...]
    """Of the first calls, with the beginning of long messages."""
    made: MadePrograms
    replay: str
    file: str
    """Its trial file in the run directory."""
    file_is_case: bool
    """Whether the file holds the case; else it holds the first one that failed so."""
    campaigns: tuple[tuple[str, Finding], ...]
    """What the campaigns among the runs, by name, know of it beyond the records that they keep."""
    alone: Mapping[str, int]
    """Of those that were run again alone in a fresh process, what came of it."""
    second_oracle: Mapping[str, int]
    """`agrees`, `not asked`: what the second oracle said of the expected value."""
    shared: SharedCondition | None = None
    """What its failing calls share and passing calls do not, where calls that were made for the purpose confirm it."""

    def by_check(self, *, joined: bool) -> dict[str, int]:
        """Failures by check, the most first: those that are the finding by themselves, or only look like it."""
        found: Counter[str] = Counter()
        for item in self.members:
            if item.joined == joined:
                found[item.check] += item.number
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


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
    expired: bool | None
    """On the day of the run."""
