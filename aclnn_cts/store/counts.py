"""Counts of trials by how they ended, and what they say of each rule and dtype."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from aclnn_cts.core.case import case_text, owner
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import quote
from aclnn_cts.core.verdict import (
    OPEN_BECAUSE,
    TWIN_FAILED,
    Observation,
    Record,
    Result,
    SkipReason,
    TrialAim,
    Verdict,
    aim_of,
    compares_values,
    is_judged,
    leaves_no_value,
    observations_of,
)

PINNED = "pinned"
"""The kind of case that a waiver pins. They count as all trials do, but no plan must judge them."""


class _Sum(msgspec.Struct):
    """Numbers, alone and by name."""

    def include(self, other: _Sum) -> None:
        """Add another's numbers to these."""
        for field in self.__struct_fields__:
            mine, theirs = getattr(self, field), getattr(other, field)
            if isinstance(mine, dict):
                _add(mine, theirs)
            else:
                setattr(self, field, mine + theirs)


class Counts(_Sum):
    """How many trials were planned and how they ended; `waived` and `twin_failed` are parts of `failed`."""

    cases: int = 0
    """Planned."""
    passed: int = 0
    failed: int = 0
    waived: int = 0
    twin_failed: int = 0
    """Broken calls whose valid twin failed: what they break was not judged."""
    twin_waived: int = 0
    """Of these, those whose twin's failure a waiver accepts."""
    errors: int = 0
    skipped: int = 0
    skipped_by_reason: dict[str, int] = {}
    out_of_scope: int = 0
    out_of_scope_by_reason: dict[str, int] = {}
    """By what the adapter declared not to offer."""

    @property
    def ended(self) -> int:
        """Trials with an end: what `cases` must equal."""
        return self.passed + self.failed + self.errors + self.skipped + self.out_of_scope

    @property
    def judged(self) -> int:
        """Trials that show what they were planned for."""
        return self.passed + self.failed - self.twin_failed

    @property
    def judged_unwaived(self) -> int:
        """Judged failures that no waiver accepts: with the waived ones and what passed they are what was judged."""
        return self.unwaived - (self.twin_failed - self.twin_waived)

    @property
    def judged_waived(self) -> int:
        """Judged failures that a waiver accepts."""
        return self.waived - self.twin_waived

    @property
    def unwaived(self) -> int:
        """Failures that no waiver accepts."""
        return self.failed - self.waived

    @property
    def open(self) -> int:
        """Trials of which the document leaves open what conforms."""
        return self.skipped_by_reason.get(SkipReason.OPEN, 0)

    @property
    def unsafe(self) -> int:
        """Trials that the harness never makes on a device."""
        return self.skipped_by_reason.get(SkipReason.UNSAFE, 0)

    @property
    def counted(self) -> int:
        """Trials that are to be judged: planned, and not out of scope, open or unsafe."""
        return self.cases - self.out_of_scope - self.open - self.unsafe

    @property
    def reasons(self) -> dict[str, int]:
        """The skipped ones by reason, in the order of the names."""
        return dict(sorted(self.skipped_by_reason.items()))

    @property
    def unjudged(self) -> dict[str, int]:
        """Trials in scope that show nothing of what they were planned for, by reason, in the order of the names."""
        twins = {TWIN_FAILED: self.twin_failed} if self.twin_failed else {}
        return dict(sorted((self.skipped_by_reason | twins).items()))

    @property
    def outside(self) -> dict[str, int]:
        """Those out of scope by reason, in the order of the names."""
        return dict(sorted(self.out_of_scope_by_reason.items()))

    def add(self, verdict: Verdict, *, waived: bool) -> None:
        """Count the end of one trial. A result that nobody knows is a HarnessError."""
        self.count(verdict.result, reason=verdict.kind)
        if verdict.result == Result.FAILED:
            self.waived += waived
            self.twin_failed += not is_judged(verdict)
            self.twin_waived += waived and not is_judged(verdict)

    def count(self, result: str, *, reason: str, number: int = 1) -> None:
        """Count an end of trials, none of which a waiver accepts.

        `reason`: why they were skipped, or what is not offered. A result that nobody knows is a HarnessError.
        """
        if result == Result.PASSED:
            self.passed += number
        elif result == Result.FAILED:
            self.failed += number
        elif result == Result.ERROR:
            self.errors += number
        elif result in (Result.SKIPPED, Result.OUT_OF_SCOPE):
            if not reason:
                raise HarnessError(f"a trial is {result} without a reason; expected one")
            if result == Result.SKIPPED:
                self.skipped += number
                _add(self.skipped_by_reason, {reason: number})
            else:
                self.out_of_scope += number
                _add(self.out_of_scope_by_reason, {reason: number})
        else:
            raise HarnessError(f"result {quote(result)}; expected passed, failed, error, skipped or out of scope")


class ConstraintCount(_Sum):
    """Trials whose case holds one constraint, and whose case breaks it, whatever came of them."""

    held: int = 0
    broken: int = 0


class CoverageCount(msgspec.Struct):
    """How much of one sort of thing that can be covered was (`runs.campaign.corpus.check_coverage`)."""

    met: int = 0
    of: int = 0
    """Without those apart."""
    apart: int = 0
    """Tried, and never judged: this implementation cannot be given them, say."""


class TriedCount(_Sum):
    """Trials of one dtype or rule that are to be judged, and those that were."""

    planned: int = 0
    judged: int = 0


class CornerCount(_Sum):
    """Calls at one corner of what the document allows (`generate.corners`)."""

    planned: int = 0
    """Those that are to be judged on values."""
    judged: int = 0
    aside: int = 0
    """Those that cannot be: the adapter does not offer the call, or the document leaves its values open."""

    @property
    def is_excluded(self) -> bool:
        """Whether calls were at it, and none of them could be judged."""
        return bool(self.aside and not self.planned)


class UnjudgedCount(msgspec.Struct, omit_defaults=True):
    """Trials that ended without a verdict for one reason, with an example."""

    aim: str
    result: str
    """`skipped` or `error`."""
    kind: str
    """The reason to skip; empty for an error."""
    message: str
    """What was said of the example, on one line."""
    trial: str
    """Id of the example: the least of all."""
    case: str
    number: int = 0

    @property
    def text(self) -> str:
        """The reason in words."""
        return ": ".join(part for part in (self.kind or "error", self.message) if part)


MOST_OPEN = 0.2
"""The share of a dtype's elements beyond which no clause on values is met."""


class OpenElementCount(_Sum):
    """How much of the values of calls could not be judged."""

    calls: int = 0
    """Whose elements were looked at."""
    open_calls: int = 0
    """Of which too few were compared for a verdict."""
    elements: int = 0
    open: int = 0
    millionths: int = 0
    """The open shares of all calls in millionths, added up: a sum that has no order."""
    why: dict[str, int] = {}
    """Open elements by reason (`OpenReason`)."""

    @property
    def share(self) -> float:
        """The mean share of a call's elements that are open; large calls count no more than small ones."""
        return self.millionths / (1e6 * self.calls) if self.calls else 0.0

    @property
    def is_too_large(self) -> bool:
        """Whether so much is open that nothing is shown of values."""
        return self.share > MOST_OPEN

    @property
    def usual_reason(self) -> str:
        """Why most of the open elements are; empty where none is."""
        return max(sorted(self.why), key=self.why.__getitem__, default="")

    def add(self, verdict: Verdict) -> None:
        """Count a call. One whose values were not looked at has no share."""
        elements = sum(deviation.elements for deviation in verdict.deviations)
        if not elements:
            return
        opened = sum(deviation.open for deviation in verdict.deviations)
        self.count_call(opened=opened, elements=elements, why=verdict.facts.get(OPEN_BECAUSE, {}))
        self.open_calls += verdict.kind == SkipReason.OPEN

    def count_call(self, *, opened: int, elements: int, why: Mapping[str, int]) -> None:
        """Count a call of so many elements, some at least."""
        _add(self.why, why)
        self.calls += 1
        self.elements += elements
        self.open += opened
        self.millionths += opened * 10**6 // elements


class OpenRow(NamedTuple):
    """The open share of one operator, dtype of the first output, and check."""

    operator: str
    dtype: str
    check: str
    open: OpenElementCount


class ObservationCount(msgspec.Struct):
    """Trials that showed one observation (`core.verdict.Observation`) of one constraint, with an example."""

    kind: str
    constraint: str
    """Empty where none is broken."""
    trial: str
    """Id of the example: the least of all."""
    case: str
    number: int = 0


_MOST_REASONS = 64
"""Reasons that are told apart for each operator; more are counted together."""
_LONGEST = 200
"""Characters of a message and a case that are kept."""
_NUMBER = re.compile(r"\d+")
_Example = TypeVar("_Example", UnjudgedCount, ObservationCount)


class OperatorSummary(msgspec.Struct):
    """One operator: counts by kind of case (`example`, `valid`, `invalid`, ...), by aim, constraint and dtype."""

    kinds: dict[str, Counts] = {}
    constraints: dict[str, ConstraintCount] = {}
    coverage: dict[str, CoverageCount] = {}
    """Of a campaign, when it ended: by sort, which are `constraints`, `limits` and `pairs`."""
    aims: dict[str, Counts] = {}
    """By what trials were planned for (`core.verdict.TrialAim`), of those that ended; without pinned ones."""
    dtypes: dict[str, TriedCount] = {}
    """Valid calls by listed dtype, as `grad FLOAT`; only those that the plan must reach (`Summary.demand`)."""
    rules: dict[str, TriedCount] = {}
    """Broken calls by listed status rule; only those that the plan must reach."""
    corners: dict[str, CornerCount] = {}
    """By corner, as `reduction: 1`. Those that the list of the operator has are there from the start."""
    cells: dict[str, int] = {}
    """Calls judged on values, by size regime, dtype of the first output and layout, as `aligned FLOAT16 strided`. Those
    that the plan is to reach are there from the start, and 0 where it did not."""
    unjudged: dict[str, UnjudgedCount] = {}
    """Why trials have no verdict."""
    observed: dict[str, ObservationCount] = {}
    """What was recorded and breaks no rule, by kind and constraint."""
    openness: dict[str, OpenElementCount] = {}
    """By dtype of the first output and check, as `FLOAT16 values`: how much of the values could not be judged."""

    @property
    def total(self) -> Counts:
        """Over all kinds."""
        return total_of(self.kinds.values())

    @property
    def asked(self) -> Counts:
        """Over all kinds but the pinned: what the plan asks of the implementation."""
        return total_of(counts for kind, counts in self.kinds.items() if kind != PINNED)

    def kind(self, name: str) -> Counts:
        """The counts of a kind of case, made on first use."""
        return self.kinds.get(name) or self.kinds.setdefault(name, Counts())

    def aim(self, name: str) -> Counts:
        """The counts of an aim: none of one that no trial had."""
        return self.aims.get(name) or Counts()

    def constraint(self, identifier: str) -> ConstraintCount:
        """The counts of a constraint, made on first use: naming one that no trial touches shows it as zero."""
        return self.constraints.get(identifier) or self.constraints.setdefault(identifier, ConstraintCount())

    def reach(self, cells: Mapping[str, int]) -> None:
        """Count calls that were judged on values, by cell."""
        _add(self.cells, cells)

    def add(self, record: Record) -> None:
        """Count a record that has ended."""
        verdict, case = record.verdict, record.trial.case
        aim = aim_of(record.trial)
        self.count(
            case.origin.kind,
            aim,
            verdict,
            waived=bool(record.waiver),
            # The names are looked at of few operators and aims alone.
            dtypes=dict.fromkeys(f"{owner(name)} {tensor.dtype}" for name, tensor in case.tensors())
            if self.dtypes
            else (),
            rule=record.fingerprint.clause,
            corners=case.origin.corners,
        )
        if verdict.result in (Result.SKIPPED, Result.ERROR):
            self._leave(record, aim)
        if verdict.deviations:
            self.openness.setdefault(f"{record.fingerprint.dtype} {record.trial.check}", OpenElementCount()).add(
                verdict
            )
        for kind in observations_of(verdict):
            self._observe(record, kind)

    def count(
        self,
        kind: str,
        aim: str,
        verdict: Verdict,
        *,
        waived: bool,
        dtypes: Iterable[str],
        rule: str,
        corners: Iterable[str] = (),
        every: bool = False,
    ) -> None:
        """Count an end of a trial, apart from why it has no verdict.

        - `kind`: of the case.
        - `dtypes`: the case's tensors, as `grad FLOAT`. `rule`: the broken one, empty in a valid call.
        - `corners`: those that the call is at.
        - `every`: count every dtype and rule, and not only those that were demanded.
        """
        self.kind(kind).add(verdict, waived=waived)
        if kind == PINNED:
            return
        counts = self.aims.setdefault(aim, Counts())
        counts.cases += 1
        counts.add(verdict, waived=waived)
        is_aside = verdict.result == Result.OUT_OF_SCOPE or verdict.kind == SkipReason.OPEN
        for corner in corners:
            found = self.corners.get(corner) or self.corners.setdefault(corner, CornerCount())
            found.aside += is_aside
            found.planned += not is_aside
            found.judged += not is_aside and leaves_no_value(verdict)
        if is_aside:
            return
        if aim == TrialAim.VALUES:
            _try(self.dtypes, dtypes, judged=compares_values(verdict), every=every)
        elif aim == TrialAim.STATUS and verdict.kind != SkipReason.UNSAFE:
            _try(self.rules, (rule,), judged=is_judged(verdict), every=every)

    def _leave(self, record: Record, aim: str) -> None:
        """Count why a record has no verdict. Messages that differ in their numbers alone are one reason."""
        verdict = record.verdict
        message = " ".join(verdict.message.split())[:_LONGEST]
        said = "" if verdict.kind == SkipReason.OPEN else _NUMBER.sub("0", message)
        key = f"{aim}: {verdict.kind or verdict.result}: {said}"
        if key not in self.unjudged and len(self.unjudged) >= _MOST_REASONS:
            key = f"{aim}: {verdict.kind or verdict.result}: others"
        known = self.unjudged.get(key)
        if known is not None and known.trial <= record.trial_id:
            known.number += 1
            return
        left = UnjudgedCount(
            aim=aim,
            result=verdict.result,
            kind=verdict.kind,
            message=message,
            trial=record.trial_id,
            case=case_text(record.trial.case)[:_LONGEST],
            number=1,
        )
        _include_examples(self.unjudged, {key: left})

    def _observe(self, record: Record, kind: Observation) -> None:
        said = record.verdict.facts[kind.value]
        constraint = said if isinstance(said, str) else record.trial.case.origin.constraint or record.fingerprint.clause
        key = f"{kind.value}: {constraint}"
        known = self.observed.get(key)
        if known is not None and known.trial <= record.trial_id:
            known.number += 1
            return
        text = case_text(record.trial.case)[:_LONGEST]
        seen = ObservationCount(kind=kind.value, constraint=constraint, trial=record.trial_id, case=text, number=1)
        _include_examples(self.observed, {key: seen})

    def copy(self) -> OperatorSummary:
        """The same counts, apart from these."""
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self), type=OperatorSummary)

    def include(self, other: OperatorSummary) -> None:
        """Add the counts of another part of the same run."""
        for field in ("kinds", "aims", "constraints", "dtypes", "rules", "corners", "openness"):
            mine, theirs = getattr(self, field), getattr(other, field)
            for name, counts in theirs.items():
                (mine.get(name) or mine.setdefault(name, type(counts)())).include(counts)
        self.reach(other.cells)
        _include_examples(self.observed, other.observed)
        _include_examples(self.unjudged, other.unjudged)
        # No sum: what a campaign had covered when it last ended.
        self.coverage = dict(other.coverage) or self.coverage


def total_of(parts: Iterable[Counts]) -> Counts:
    """The sum of counts."""
    total = Counts()
    for part in parts:
        total.include(part)
    return total


def _try(tried: dict[str, TriedCount], names: Iterable[str], *, judged: bool, every: bool) -> None:
    for name in names:
        if every and name:
            tried.setdefault(name, TriedCount())
        if (found := tried.get(name)) is not None:
            found.planned += 1
            found.judged += judged


def _include_examples(mine: dict[str, _Example], theirs: Mapping[str, _Example]) -> None:
    """Add the numbers under each key; the example is that of the least trial."""
    for key, found in theirs.items():
        known = mine.get(key, found)
        least = found if found.trial < known.trial else known
        number = found.number + (known.number if key in mine else 0)
        mine[key] = msgspec.structs.replace(least, number=number)


def _add(mine: dict[str, int], theirs: Mapping[str, int]) -> None:
    for reason, count in theirs.items():
        mine[reason] = mine.get(reason, 0) + count
