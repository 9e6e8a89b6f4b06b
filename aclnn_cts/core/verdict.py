"""What the harness concludes from a trial, and what a run directory keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.trial import Earlier, Trial

FAILED_CHECKS = "failed checks"
"""The key of `Verdict.facts` under which a failed law or memory trial names the checks that failed: `VALUE_CHECK`,
`relation` (of a law), `memory`. The first is the one that the verdict is of."""

ALSO_STATUS = "wrong status besides"
"""The key of `Verdict.facts` on a call that breaks a rule and is at fault for its memory: the status that it returned
instead of the promised one."""

VALUE_CHECK = "values"

UNJUDGED_VALUES = "values not judged"
"""The key of `Verdict.facts` that says why the values of a law or memory trial were not judged (`Skip`)."""


class Result:
    """The ends of a trial: planned = passed + failed + errors + skipped + out of scope."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """The harness or its surroundings failed; nothing is said of the implementation."""
    SKIPPED = "skipped"
    OUT_OF_SCOPE = "out of scope"
    """It needs what the adapter declared beforehand not to offer; `Verdict.kind` names that."""


class Judged:
    """What a pass rests on (values of `Verdict.judged`). Nothing passes that was not judged."""

    VALUES = "values"
    """At least half of the output elements were compared."""
    STATUS = "status"
    """The returned status was held against a stated rule."""
    MEMORY = "memory"
    """What the call wrote, and what it must leave alone."""
    FORM = "form"
    """The outputs have no elements: how the call ended, and their shapes."""


class RunVerdict(str, Enum):
    """What a run comes to. The worst comes first."""

    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"
    CONFORMS_WITH_WAIVERS = "conforms-with-waivers"
    CONFORMS = "conforms"
    NOTHING_FOUND = "nothing-found"
    """Of a campaign: it follows no plan, so that it can find faults and never show conformity."""

    @property
    def words(self) -> str:
        """As every screen and report spells it: `conforms with waivers`."""
        return self.value.replace("-", " ")


class Skip:
    """Why a trial has no verdict (values of `Verdict.kind` where the result is skipped)."""

    OPEN = "open"
    DISPUTE = "dispute"
    NOT_JUDGED = "not judged"
    INEXPRESSIBLE = "inexpressible"
    UNSAFE = "unsafe"
    TOO_LARGE = "too large"
    UNSUPPORTED = "product not supported"
    NOT_CHOSEN = "operator not chosen"
    SENTINEL = "known-good call rejected"
    """The operator rejects the sentinel, so that no other rejection says anything (`checks.sentinel`)."""


class OutOfScope:
    """What an adapter declared not to offer (values of `Verdict.kind` where the result is out of scope).

    Operators, products, dtypes and formats have their name behind the word: `dtype BF16`.
    """

    OPERATOR = "operator"
    PRODUCT = "product"
    STATUSES = "statuses"
    PHASES = "phases"
    """Calls of the first phase alone, and null pointers that only the two-phase interface has."""
    CALL_MODES = "call modes"
    """Repeated, interleaved and concurrent calls, workspaces of other sizes (`Capabilities.call_modes`)."""
    STRIDED_INPUTS = "strided inputs"
    STRIDED_OUTPUTS = "strided outputs"
    DTYPE = "dtype"
    FORMAT = "format"
    INVALID_DTYPES = "dtypes of invalid calls"
    INVALID_FORMATS = "formats of invalid calls"


class MagnitudeCounts(msgspec.Struct, frozen=True):
    """Elements whose expected value lies in one class of magnitudes (`judgement.figures`)."""

    exponent: int | None
    """2^exponent is the smallest magnitude of the class; None for an expected zero."""
    counts: tuple[int, ...]
    """By log2 of the share (`judgement.figures.SHARE_EDGES`)."""


PARTS = ("re", "im")
"""The components of a complex number, in the order of memory."""


class Deviation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst element of one output, on a pass as on a failure."""

    output: str
    index: tuple[int, ...] = ()
    part: str = ""
    """`re` or `im` of an element of a complex output, whose components are counted each by itself."""
    got: float | str = 0.0
    expected: float | str = 0.0
    bound: float = 0.0
    share: float = 0.0
    """Error as a share of the bound; above 1 is a fault. inf where the bound is 0 and the error is not."""
    cancellation: float = 1.0
    """Magnitude of the terms over the absolute value of their sum."""
    beyond: int = 0
    """Elements beyond their bound."""
    elements: int = 0
    histogram: tuple[int, ...] = ()
    """Counts of elements by log2 of the share (`judgement.figures.SHARE_EDGES`)."""
    open: int = 0
    """Elements that the document leaves open."""
    magnitudes: tuple[MagnitudeCounts, ...] = ()
    """All elements by magnitude and share, of outputs at fault (of what is waived on a sample) and of a sample of all
    calls; else empty."""

    @property
    def place(self) -> str:
        """The element in words: `gradInput[1, 2]`, `gradInput[1, 2].im`; the output alone of a scalar."""
        index = str(list(self.index)) if self.index else ""
        return f"{self.output}{index}{f'.{self.part}' if self.part else ''}"

    @property
    def cell(self) -> tuple[int, ...]:
        """The index into the output as the judge sees it: that of a complex one into its real view."""
        return (*self.index, PARTS.index(self.part)) if self.part else self.index

    def in_parts(self) -> Deviation:
        """The same of a complex output, found in its real view."""
        if not self.index:
            return self
        return msgspec.structs.replace(self, index=self.index[:-1], part=PARTS[self.index[-1]])


class ToleranceVerdict:
    """What a tolerance says of one output (values of `ToleranceResult.verdict`)."""

    PASS = "pass"  # noqa: S105 - the word, and no password
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    """The rule has no row for the dtype, or needs a second implementation that there is none of."""


class ToleranceWhy:
    """Why a tolerance decided by no figure (values of `ToleranceResult.why`)."""

    NO_ROW = "no row"
    """The rule has no numbers for the dtype."""
    NO_BENCHMARK = "no benchmark"
    """It compares with a second implementation, and there is none for this output."""
    NO_ELEMENTS = "no elements"
    """There is nothing to measure, so that it passes."""
    SPECIAL_REFERENCE = "special reference"
    """What it compares with holds inf or nan; the rule passes such a case without reading the output."""
    SPECIAL_GOLDEN = "special golden"
    """The golden alone holds inf or nan; the source does not say what becomes of it."""


class ToleranceFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number that a tolerance measures, and what it must be: `value relation limit`."""

    name: str
    value: float | str
    """A number, or `inf` or `nan`, which JSON has no number for."""
    limit: float
    relation: str = "<="
    """`<=`, `<` or `>=`."""


class ToleranceResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one of the ecosystem's acceptance rules says of one output."""

    tolerance: str
    verdict: str
    message: str = ""
    """One sentence: the figure that decided, or why there is none."""
    figures: tuple[ToleranceFigure, ...] = ()
    headroom: float | str = 0.0
    """How much of the limit is left: 1 is all of it, 0 none, below 0 is beyond it (`-inf`: no limit admits it)."""
    benchmark: str = ""
    """What the second implementation was, where the rule compares with one."""
    source: str = ""
    why: str = ""
    """Why no figure decided (`ToleranceWhy`); empty where one did."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The conclusion: result, kind of fault, reason to skip or what is not offered, one sentence, and the figures."""

    result: str
    kind: str = ""
    message: str = ""
    basis: str = ""
    """Of the compute model that was used: document, published or assumed."""
    mode: str = ""
    judged: str = ""
    """Of a pass: what it rests on (`Judged`)."""
    deviations: tuple[Deviation, ...] = ()
    facts: Mapping[str, Any] = {}
    """Recorded, never judged: a limit not enforced, what an implementation without statuses did."""
    tolerances: Mapping[str, Mapping[str, ToleranceResult]] = {}
    """By tolerance and output: all of them on the outputs at fault (of what is waived on a sample) and on a sample of
    all calls, those that gate on all that passed."""


def failed_on_values(verdict: Verdict) -> bool:
    """Whether a trial of another check failed since a call's values are wrong."""
    return VALUE_CHECK in verdict.facts.get(FAILED_CHECKS, ())[:1]


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run directory keeps of a trial."""

    trial_id: str
    trial: Trial
    attempts: tuple[tuple[Outcome, ...], ...]
    """The outcomes of each attempt's calls, in the order of the calls."""
    verdict: Verdict
    fingerprint: Fingerprint
    clauses: tuple[str, ...] = ()
    """Of the constraint or check that was put to the test."""
    waiver: str = ""
    """Id of the waiver that speaks for a failure."""
    counted_as: Fingerprint | None = None
    """Of a campaign's failure: the key of the finding that it counts with."""
    after: tuple[Earlier, ...] = ()
    """Of a failure that does not show alone: the calls after which it does, in a fresh process."""
    seconds: float = 0.0
    where: Mapping[str, str] = {}
    """Adapter, device and worker."""

    @property
    def key(self) -> Fingerprint:
        """What its trial file is named by, and a campaign's finding known by."""
        return self.counted_as or self.fingerprint.key

    @property
    def was_called(self) -> bool:
        """Whether its calls were made, and what came of them is all that could be held against the document."""
        kind = self.verdict.kind
        if self.verdict.result in (Result.PASSED, Result.FAILED) or kind in (Skip.OPEN, Skip.DISPUTE, Skip.NOT_JUDGED):
            return True
        # What was found to be out of scope before the call has no outcomes.
        return kind == OutOfScope.STATUSES and any(self.attempts)

    @property
    def shown(self) -> Trial:
        """The trial that shows the failure again by itself: with the calls before it, where it needs them."""
        return msgspec.structs.replace(self.trial, after=self.after) if self.after else self.trial
