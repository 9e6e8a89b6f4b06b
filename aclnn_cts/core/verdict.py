"""What is concluded from trials and of clauses, what a trial is planned for, and what a run directory keeps."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import ANY_ERROR, STATUSES, SUCCESS, CallEnd, Outcome
from aclnn_cts.core.trial import EarlierCall, Trial

FAILED_CHECKS = "failed checks"
"""The key of `Verdict.facts` under which a failed trial of several checks names those that failed: `VALUE_CHECK`,
`memory`. The first is the one that the verdict is of."""

ALSO_STATUS = "wrong status besides"
"""The key of `Verdict.facts` on a call that breaks a rule and is at fault for its memory: the status that it returned
instead of the promised one."""

ALONE_FACT = "alone"
"""The key of `Verdict.facts` on a failure that was run again: `fails too`, `conforms`, or what else came of it."""

TWIN_FAILED = "valid twin failed"
"""The key of `Verdict.facts` on a broken call whose valid twin failed: what it breaks was not judged."""

CONFORMS = "conforms"

FLAKY_FACT = "flaky"
"""The key of `Verdict.facts` on a failure that did not repeat: failures and repetitions alone, in a list."""

VALUE_CHECK = "values"

OPEN_BECAUSE = "open because"
"""The key of `Verdict.facts` on a call with open elements: how many are, by `OpenReason`."""


class OpenReason:
    """Why elements are open (keys of the fact `OPEN_BECAUSE`)."""

    UNDECIDED = "the document does not decide"
    NO_VALUE = "the formula has no value"
    SPECIAL = "an input holds inf or nan"
    OVERFLOW = "an intermediate may overflow"


UNJUDGED_VALUES = "values not judged"
"""The key of `Verdict.facts` that says why the values of a memory trial were not judged (`SkipReason`)."""


FINER_FACT = "finer than asked"
"""The key of `Verdict.facts` on a call whose outputs are right for operands that were never rounded."""

PRECISION_FACT = "precision used"
"""Key of `Verdict.facts`: by output, the names of the formats that answer as the implementation does.

Where an earlier version of the harness wrote it, one list for all outputs together.
"""

ACCEPTED_FACT = "accepted"
"""The key of `Verdict.facts` on a broken call that came back without a status: whether it was accepted."""

DISPUTE_FACT = "dispute"
"""Key in a verdict's facts of a dispute: `output`, `index`, and what the `first` and the `second` oracle say of it, as
text; `second` is empty where float64 cannot hold it."""

SECOND_ORACLE = "second oracle"
"""Key of the fact that says what the second oracle said (`execution.second_opinion`)."""

ERROR_RATIO_EDGES: tuple[int, ...] = tuple(range(-12, 5))
"""Edges of `Deviation.histogram` as powers of two of the error ratio, each the upper end of its bin: the first bin
holds all up to 2^-12, the last those above 2^4. Elements up to the edge 0 conform."""


PROBED_FORMATS = ("FLOAT", "HFLOAT32 with 11 stored bits", "HFLOAT32 with 10 stored bits", "FLOAT16", "BF16")
"""The formats that a probe tells apart (`trials.checks.precision_probe`)."""


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
    """No output is asked for, or none has elements: how the call ended, and their shapes."""


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


class SkipReason:
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
    """The operator rejects the sentinel, so that no other rejection says anything (`trials.checks.sentinel`)."""
    STOPPED = "stopped"
    """The run had as many findings as it was asked for."""


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
    """By log2 of the error ratio (`ERROR_RATIO_EDGES`)."""


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
    error_ratio: float = msgspec.field(default=0.0, name="share")
    """Error divided by the bound; above 1 is a fault. inf where the bound is 0 and the error is not."""
    cancellation: float = 1.0
    """Magnitude of the terms over the absolute value of their sum."""
    beyond: int = 0
    """Elements beyond their bound."""
    elements: int = 0
    histogram: tuple[int, ...] = ()
    """Counts of elements by log2 of the error ratio (`ERROR_RATIO_EDGES`)."""
    open: int = 0
    """Elements that the document leaves open."""
    magnitudes: tuple[MagnitudeCounts, ...] = ()
    """All elements by magnitude and error ratio, of outputs at fault (of what is waived on a sample) and of a sample of
    all calls; else empty."""

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


TOLERANCE_FACT = "tolerance"
"""Key in a verdict's facts: the tolerance that a fault of kind `tolerance` fails."""


class ToleranceVerdict:
    """What a tolerance says of one output (values of `ToleranceResult.verdict`)."""

    PASS = "pass"  # noqa: S105 - the word, and no password
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    """The rule has no row for the dtype, or needs a second implementation that there is none of."""


TOLERANCES = ("mixed", "mere-mare", "dual-l0", "dual-l1", "dual-l2")
"""The tolerances of every installation, in their order; packages may add more (`judgement.tolerances.registry`)."""


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
    after: tuple[EarlierCall, ...] = ()
    """Of a failure that does not show alone: the calls after which it does, in a fresh process."""
    seconds: float = 0.0
    where: Mapping[str, str] = {}
    """Adapter, device and worker."""

    @property
    def key(self) -> Fingerprint:
        """What its finding is known by, as far as it tells alone."""
        return self.fingerprint.key

    @property
    def conforms_alone(self) -> bool:
        """Whether a failure conformed when it was run again alone: it is order-dependent, or flaky."""
        return bool(self.verdict.facts.get(ALONE_FACT) == CONFORMS)

    @property
    def flaky_rate(self) -> tuple[int, int] | None:
        """Failures and repetitions of a flaky failure; None of any other."""
        rate = self.verdict.facts.get(FLAKY_FACT)
        return (int(rate[0]), int(rate[1])) if rate is not None else None

    @property
    def was_called(self) -> bool:
        """Whether its calls were made, and what came of them is all that could be held against the document."""
        kind = self.verdict.kind
        if self.verdict.result in (Result.PASSED, Result.FAILED) or kind in (
            SkipReason.OPEN,
            SkipReason.DISPUTE,
            SkipReason.NOT_JUDGED,
        ):
            return True
        # What was found to be out of scope before the call has no outcomes.
        return kind == OutOfScope.STATUSES and any(self.attempts)

    def output_digests(self) -> set[str]:
        """SHA-256 of what the calls that succeeded wrote: what the record is judged again from."""
        outcomes = [item for item in self.attempts[0] if item.ended == CallEnd.RETURNED] if self.attempts else []
        written = [state for item in outcomes if not item.status for state in item.buffers.values()]
        return {state.sha256 for state in written if state.sha256}

    @property
    def reproducing_trial(self) -> Trial:
        """The trial that shows the failure again by itself: with the calls before it, where it needs them."""
        return msgspec.structs.replace(self.trial, after=self.after) if self.after else self.trial


def is_judged(verdict: Verdict) -> bool:
    """Whether a trial shows what it was planned for: it passed, or failed otherwise than in its valid twin."""
    return verdict.result == Result.PASSED or (verdict.result == Result.FAILED and TWIN_FAILED not in verdict.facts)


class TrialAim:
    """The aims (keys of `OperatorSummary.aims`)."""

    VALUES = "values"
    """A call that the document supports, whose outputs are compared: one call, equal calls, or in a call mode."""
    STATUS = "status"
    """A call that breaks a rule, whose status is held against that rule."""
    MEMORY = "memory"
    """A call that the document supports, planned for the memory that it writes; its values are judged after that."""


_BREAKING = frozenset({"status", "life-cycle/repeated-failure"})
"""Checks about calls that break a rule."""


def is_valid_call(trial: Trial) -> bool:
    """Whether the trial's own case keeps every rule."""
    return aim_of(trial) != TrialAim.STATUS


def aim_of(trial: Trial) -> str:
    """The aim of a trial."""
    return aim(trial.check, trial.parameters)


def aim(check: str, parameters: Container[str]) -> str:
    """The aim of a trial by its check's id and the names of its parameters."""
    if check in _BREAKING or "twin" in parameters:
        return TrialAim.STATUS
    return TrialAim.MEMORY if check == "memory" else TrialAim.VALUES


def compares_values(verdict: Verdict) -> bool:
    """Whether a verdict rests on elements that were compared; a failure says something of values, whatever its kind."""
    return verdict.result == Result.FAILED or (verdict.result == Result.PASSED and verdict.judged == Judged.VALUES)


def leaves_no_value(verdict: Verdict) -> bool:
    """Whether no value of a call is left to be judged: they were compared, or there are none."""
    return compares_values(verdict) or (verdict.result == Result.PASSED and verdict.judged == Judged.FORM)


EXECUTOR_AFTER_ERROR = "executor after the error"
"""Key of `Outcome.facts`: what a failing phase one left where it writes the executor."""
WRITTEN = "an address"
"""The value of that fact where it wrote a pointer; `null` or `untouched` otherwise."""

_ARGUMENTS = STATUSES["ACLNN_ERR_PARAM_INVALID"] // 1000


class Observation(str, Enum):
    """The kinds (keys of `Verdict.facts`, present where they were met)."""

    LIMIT = "limit not enforced"
    """A call beyond a limit succeeded, and no value is known to be wrong."""
    EXECUTOR = "executor written after an error"
    """Phase one refused the call and left a pointer where it writes the executor."""
    STATUS_CLASS = "status of another class"
    """Any error conforms, wrong arguments suggest one of 161xxx, and the status is of the runtime or internal."""
    EXCLUDED = "excluded output written"
    """A call wrote an output that its arguments exclude (a mask, a flag). The fact holds the names of such outputs."""
    OPEN_CALL = "success on an open call"
    """A call succeeded that the document neither promises nor forbids."""
    OPEN_NAN = "nan in undecided elements"
    """On finite inputs, elements that the document leaves open hold nan. The fact holds the names of such outputs."""

    @property
    def fault(self) -> Fault:
        """What it is where observations are failures."""
        return Fault.GUARD if self is Observation.EXCLUDED else Fault.STATUS


LEFT_OPEN = (Observation.OPEN_CALL, Observation.OPEN_NAN)
"""What documents leave open, so that it is no failure with `--strict-limits` either."""


def is_other_error_class(status: str, allowed: tuple[str, ...]) -> bool:
    """Whether an error that conforms only as some error is none of those for wrong arguments (161xxx)."""
    if status == SUCCESS or status in allowed or ANY_ERROR not in allowed:
        return False
    return STATUSES.get(status, 0) // 1000 != _ARGUMENTS and not status.startswith(f"ACLNN_ERR_{_ARGUMENTS}")


def with_executor(verdict: Verdict, outcomes: Iterable[Outcome]) -> Verdict:
    """The verdict with the fact that a call left a pointer behind its error."""
    written = any(outcome.facts.get(EXECUTOR_AFTER_ERROR) == WRITTEN for outcome in outcomes)
    return with_observation(verdict, Observation.EXECUTOR, said=written)


def with_observation(verdict: Verdict, kind: Observation, *, said: str | bool) -> Verdict:
    """The verdict with what was observed; `said`: where, or only that it was."""
    return msgspec.structs.replace(verdict, facts={**verdict.facts, kind.value: said}) if said else verdict


def observations_of(verdict: Verdict) -> list[Observation]:
    """What a verdict has recorded."""
    return [kind for kind in Observation if verdict.facts.get(kind.value)] if verdict.facts else []


def with_strict_limits(verdict: Verdict) -> Verdict:
    """The verdict where observations are failures (`--strict-limits`)."""
    found = [kind for kind in observations_of(verdict) if kind not in LEFT_OPEN]
    judged = verdict.result == Result.PASSED or (verdict.result, verdict.kind) == (Result.SKIPPED, SkipReason.OPEN)
    if not found or not judged:
        return verdict
    said = f": {verdict.message}" if verdict.message else ""
    named = (
        f"{kind.value}: {fact}" if isinstance(fact := verdict.facts[kind.value], str) else kind.value for kind in found
    )
    message = f"{', '.join(named)} (--strict-limits){said}"
    kind = min((kind.fault for kind in found), key=lambda fault: fault.order)
    return msgspec.structs.replace(verdict, result=Result.FAILED, kind=kind, message=message, judged="")


def formats_of(record: Record, output: str) -> Sequence[str] | None:
    """The formats that a probe leaves possible for an output; None where it says nothing of it."""
    names: Any = record.verdict.facts.get(PRECISION_FACT)
    if isinstance(names, Mapping):
        names = names.get(output)
    return names if isinstance(names, Sequence) else None
