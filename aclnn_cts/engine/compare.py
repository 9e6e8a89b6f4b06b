"""Two runs compared, trial by trial: what fails now, what does no longer, and why, as far as the records tell.

Both stores are read in the order of their trials' ids, side by side, so that memory does not grow with their records.
Whole records are read of changed trials alone, and of no more than `LOOKED` for each line of the result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import msgspec

from aclnn_cts.core.comparison import (
    CaseCount,
    CauseCount,
    Comparison,
    EndChange,
    FindingChange,
    FindingState,
    RunSide,
    ShareChange,
    WorstShare,
)
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.engine.differences import cause_of, manifest_differences
from aclnn_cts.engine.record_codec import signature_from_key
from aclnn_cts.engine.run_directory import RunDirectory
from aclnn_cts.engine.store_reader import Query, ResultReader

__all__ = ["EXAMPLES", "LOOKED", "compare_runs", "comparison_to_json"]

EXAMPLES = 20
"""Trials that a line of the result names."""
LOOKED = 256
"""Trials of a line whose whole records are read for the cause."""

_COLUMNS = (
    "trial_id",
    "operator",
    "product",
    "promise",
    "kind",
    "result",
    "skip_reason",
    "waiver",
    "signature",
    "dtype",
    "mode",
    "share",
)
_RANK = {Result.FAILED: 3, Result.ERROR: 2, Result.PASSED: 1, Result.SKIPPED: 0}
_STATES = (FindingState.NEW, FindingState.STILL, FindingState.FIXED, FindingState.GONE)


@dataclass(slots=True)
class _End:
    """How a trial ended in one run; of several records of it the worst counts."""

    trial_id: str
    operator: str
    product: str
    promise: str
    kind: str
    result: str
    skip_reason: str
    waiver: str
    signature: str | None
    dtype: str
    mode: str
    share: float
    unsteady: bool = False
    """It passed and failed in the same run."""

    @property
    def text(self) -> str:
        return f"{self.result}: {self.skip_reason}" if self.skip_reason else self.result

    def take(self, other: _End) -> _End:
        unsteady = self.unsteady or {self.result, other.result} == {Result.PASSED, Result.FAILED}
        worst = other if _RANK[other.result] > _RANK[self.result] else self
        worst.share = max(self.share, other.share)
        worst.unsteady = unsteady
        return worst


def _ends(results: ResultReader) -> Iterator[_End]:
    """One end for each trial, by trial id."""
    current: _End | None = None
    for row in results.rows_by_trial(*_COLUMNS):
        end = _End(*row)
        if current is None:
            current = end
        elif current.trial_id == end.trial_id:
            current = current.take(end)
        else:
            yield current
            current = end
    if current is not None:
        yield current


def _pairs(first: Iterator[_End], second: Iterator[_End]) -> Iterator[tuple[_End | None, _End | None]]:
    """The trials of both, those of one run alone beside None."""
    before, after = next(first, None), next(second, None)
    while before is not None or after is not None:
        if after is None or (before is not None and before.trial_id < after.trial_id):
            yield before, None
            before = next(first, None)
        elif before is None or after.trial_id < before.trial_id:
            yield None, after
            after = next(second, None)
        else:
            yield before, after
            before, after = next(first, None), next(second, None)


@dataclass(slots=True)
class _Causes:
    """Looks into changed trials, and counts what their records tell."""

    before: ResultReader
    after: ResultReader
    differences: Mapping[str, str]

    def look(self, before: _End, after: _End) -> CauseCount:
        first, second = _record(self.before, before), _record(self.after, after)
        which = [name for name, end in (("first", before), ("second", after)) if end.unsteady]
        unsteady = f"in the {' and the '.join(which)} run alone the trial both passed and failed" if which else ""
        return cause_of(first, second, self.differences, spec_file=f"{_stem(before.operator)}.yaml", unsteady=unsteady)


def _record(results: ResultReader, end: _End) -> Record:
    """The trial's record that ended so."""
    records = results.records(Query(trial_id=end.trial_id, result=end.result), worst_first=True, limit=1)
    return next(iter(records))


def _stem(operator: str) -> str:
    """The name of an operator's spec file: its C name without `aclnn`, in snake case (docs/spec-format.md)."""
    name = operator.removeprefix("aclnn")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


@dataclass(slots=True)
class _Line:
    """What all lines of the result gather."""

    causes: Counter[tuple[str, tuple[str, ...], str]] = field(default_factory=Counter)
    looked: int = 0
    trials: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    def change(self, before: _End, after: _End, causes: _Causes) -> None:
        self.name(before.trial_id)
        if self.looked < LOOKED:
            self.looked += 1
            found = causes.look(before, after)
            self.causes[found.cause, found.possible, found.because] += 1

    def name(self, trial_id: str, *, changed: bool = True) -> None:
        chosen = self.trials if changed else self.unchanged
        if len(chosen) < EXAMPLES:
            chosen.append(trial_id)

    def told_causes(self) -> tuple[CauseCount, ...]:
        return tuple(
            CauseCount(cause=cause, possible=possible, because=because, number=number)
            for (cause, possible, because), number in self.causes.most_common()
        )

    def told_trials(self) -> tuple[str, ...]:
        return tuple([*self.trials, *self.unchanged][:EXAMPLES])


@dataclass(slots=True)
class _Finding(_Line):
    counts: Counter[str] = field(default_factory=Counter)
    waivers_before: set[str] = field(default_factory=set)
    waivers_after: set[str] = field(default_factory=set)

    def count_before(self, end: _End) -> None:
        self.counts["before"] += 1
        self.counts["unwaived_before"] += not end.waiver
        self.waivers_before |= {end.waiver} - {""}

    def count_after(self, end: _End) -> None:
        self.counts["after"] += 1
        self.counts["unwaived_after"] += not end.waiver
        self.waivers_after |= {end.waiver} - {""}

    @property
    def state(self) -> str:
        if self.counts["after"]:
            return FindingState.STILL if self.counts["before"] else FindingState.NEW
        return FindingState.FIXED if self.counts["fixed"] else FindingState.GONE

    def told(self, key: str) -> FindingChange:
        return FindingChange(
            signature=signature_from_key(key),
            state=self.state,
            waivers_before=tuple(sorted(self.waivers_before)),
            waivers_after=tuple(sorted(self.waivers_after)),
            causes=self.told_causes(),
            trials=self.told_trials(),
            **self.counts,
        )


@dataclass(slots=True)
class _Share(_Line):
    number: int = 0
    rose: int = 0
    fell: int = 0
    worst_before: _End | None = None
    worst_after: _End | None = None


@dataclass(slots=True)
class _Gathered:
    """Everything that the two streams say, in sizes that grow with what changed and not with the records."""

    causes: _Causes
    common: int = 0
    findings: dict[str, _Finding] = field(default_factory=dict)
    ends: dict[tuple[str, str, str, str], _Line] = field(default_factory=dict)
    numbers: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    shares: dict[tuple[str, str, str], _Share] = field(default_factory=dict)
    alone: tuple[Counter[tuple[str, str, str, str]], Counter[tuple[str, str, str, str]]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    alone_failed: tuple[Counter[tuple[str, str, str, str]], Counter[tuple[str, str, str, str]]] = field(
        default_factory=lambda: (Counter(), Counter())
    )

    def finding(self, end: _End) -> _Finding:
        return self.findings.setdefault(end.signature or "{}", _Finding())

    def take_alone(self, end: _End, *, added: bool) -> None:
        key = (end.operator, end.product, end.promise, end.kind)
        self.alone[added][key] += 1
        if end.result != Result.FAILED:
            return
        self.alone_failed[added][key] += 1
        finding = self.finding(end)
        (finding.count_after if added else finding.count_before)(end)
        finding.counts["added" if added else "removed"] += 1
        finding.name(end.trial_id, changed=added)

    def take(self, before: _End, after: _End) -> None:
        self.common += 1
        was, now = before.result == Result.FAILED, after.result == Result.FAILED
        if was:
            self.finding(before).count_before(before)
        if now:
            self.finding(after).count_after(after)
        if was and now:
            self._take_both(before, after)
        elif now:
            self._change(self.finding(after), "new", before, after)
        elif was:
            word = "fixed" if after.result == Result.PASSED else "unjudged"
            self._change(self.finding(before), word, before, after)
        if not now and before.text != after.text and not (was and after.result == Result.PASSED):
            key = (before.operator, before.promise, before.text, after.text)
            self.numbers[key] += 1
            self.ends.setdefault(key, _Line()).change(before, after, self.causes)
        if before.result == after.result == Result.PASSED:
            self._take_shares(before, after)

    def _take_both(self, before: _End, after: _End) -> None:
        if before.signature == after.signature:
            self.finding(after).counts["still"] += 1
            self.finding(after).name(after.trial_id, changed=False)
            return
        for end in (before, after):
            self._change(self.finding(end), "otherwise", before, after)

    def _change(self, finding: _Finding, word: str, before: _End, after: _End) -> None:
        finding.counts[word] += 1
        finding.change(before, after, self.causes)

    def _take_shares(self, before: _End, after: _End) -> None:
        key = (after.operator, after.mode, after.dtype)
        found = self.shares.setdefault(key, _Share())
        found.number += 1
        if found.worst_before is None or before.share > found.worst_before.share:
            found.worst_before = before
        if found.worst_after is None or after.share > found.worst_after.share:
            found.worst_after = after
        if before.share != after.share:
            found.rose += after.share > before.share
            found.fell += after.share < before.share
            found.change(before, after, self.causes)

    def counted(self, *, added: bool) -> tuple[CaseCount, ...]:
        failed = self.alone_failed[added]
        return tuple(
            CaseCount(operator=operator, product=product, promise=promise, kind=kind, number=number, failed=failed[key])
            for key, number in sorted(self.alone[added].items())
            for operator, product, promise, kind in (key,)
        )


def compare_runs(before: Path, after: Path) -> Comparison:
    """Compare two run directories, of runs or campaigns, finished or not.

    Raises UsageError where a folder is no run directory, HarnessError where one is damaged.
    """
    first, second = RunDirectory(before), RunDirectory(after)
    differences = manifest_differences(first.manifest, second.manifest)
    with first.results() as results_before, second.results() as results_after:
        causes = _Causes(results_before, results_after, {item.name: item.cause for item in differences})
        gathered = _Gathered(causes)
        for one, other in _pairs(_ends(results_before), _ends(results_after)):
            if one is not None and other is not None:
                gathered.take(one, other)
            elif one is not None:
                gathered.take_alone(one, added=False)
            elif other is not None:
                gathered.take_alone(other, added=True)
        findings = [finding.told(key) for key, finding in gathered.findings.items()]
        return Comparison(
            before=_side(first, results_before),
            after=_side(second, results_after),
            common=gathered.common,
            differences=differences,
            findings=tuple(
                sorted(findings, key=lambda item: (_STATES.index(item.state), -item.after, item.signature.text()))
            ),
            ends=tuple(
                EndChange(
                    operator=operator,
                    promise=promise,
                    before=was,
                    after=now,
                    number=gathered.numbers[operator, promise, was, now],
                    causes=line.told_causes(),
                    trials=line.told_trials(),
                )
                for (operator, promise, was, now), line in sorted(gathered.ends.items(), key=lambda item: item[0])
            ),
            added=gathered.counted(added=True),
            removed=gathered.counted(added=False),
            shares=tuple(_shares(gathered, results_before, results_after)),
        )


def _shares(gathered: _Gathered, before: ResultReader, after: ResultReader) -> Iterator[ShareChange]:
    for (operator, mode, dtype), found in sorted(gathered.shares.items(), key=lambda item: item[0]):
        if found.worst_before is None or found.worst_after is None or not found.rose + found.fell:
            continue
        yield ShareChange(
            operator=operator,
            mode=mode,
            dtype=dtype,
            trials=found.number,
            rose=found.rose,
            fell=found.fell,
            before=_worst(before, found.worst_before),
            after=_worst(after, found.worst_after),
            causes=found.told_causes(),
        )


def _worst(results: ResultReader, end: _End) -> WorstShare:
    deviations = _record(results, end).verdict.deviations
    output = max(deviations, key=attrgetter("share")).output if deviations else ""
    return WorstShare(share="inf" if math.isinf(end.share) else end.share, output=output, trial=end.trial_id)


def _side(run: RunDirectory, results: ResultReader) -> RunSide:
    manifest, summary = run.manifest, run.summary()
    total = summary.total
    products = tuple(product for (product,) in results.tally("product"))
    return RunSide(
        path=str(run.path),
        command=manifest.command,
        adapter=manifest.adapter,
        products=products or (manifest.target.product,),
        profile=manifest.profile,
        seed=manifest.seed,
        started=manifest.started,
        harness=manifest.harness,
        finished=run.finished,
        verdict=summary.verdict,
        cases=total.cases,
        passed=total.passed,
        failed=total.failed,
        waived=total.waived,
        errors=total.errors,
        skipped=total.skipped,
    )


def comparison_to_json(comparison: Comparison) -> dict[str, object]:
    """One JSON object: whether anything changed, the totals, and all lines."""
    lines: dict[str, object] = msgspec.to_builtins(comparison)
    return {
        "format": "aclnn-cts/comparison/1",
        "changed": comparison.changed,
        "totals": dict(comparison.totals()),
        **lines,
    }
