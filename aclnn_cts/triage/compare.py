"""Two runs compared, trial by trial: what fails now, what does no longer, and why, in lines that stay few.

Both stores are read in the order of their trials' ids, side by side, so that memory does not grow with their records.
Whole records are read of changed trials alone, and of no more than `LOOKED` for each line of the result.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, repeat
from operator import attrgetter
from pathlib import Path

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.fingerprint import findings_of, findings_together, indexed
from aclnn_cts.store.manifest import is_software, ran_on
from aclnn_cts.store.record_codec import key_from_text, key_text
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.store_reader import Query, ResultReader
from aclnn_cts.triage.comparison import (
    Because,
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
from aclnn_cts.triage.differences import cause_of, manifest_differences

_STATES = (FindingState.NEW, FindingState.STILL, FindingState.FIXED, FindingState.GONE)


def compare_runs(before: Path, after: Path) -> Comparison:
    """Compare two run directories, of runs or campaigns, finished or not.

    Raises UsageError where a folder is no run directory, HarnessError where one is damaged.
    """
    first, second = RunDirectory(before), RunDirectory(after)
    differences = manifest_differences(first.manifest, second.manifest)
    with first.results() as results_before, second.results() as results_after:
        gathered = Gathered(
            results_before,
            results_after,
            differences={item.name: item.cause for item in differences},
            findings_by_key=_findings_by_key(results_before, results_after),
        )
        for one, other in pairs(ends(results_before), ends(results_after)):
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
                sorted(findings, key=lambda item: (_STATES.index(item.state), -item.after, item.fingerprint.text()))
            ),
            ends=tuple(
                EndChange(
                    operator=operator,
                    check=check,
                    before=was,
                    after=now,
                    number=line.number,
                    causes=line.told_causes(),
                    trials=line.told_trials(),
                )
                for (operator, check, was, now), line in sorted(gathered.ends.items(), key=lambda item: item[0])
            ),
            added=gathered.counted(added=True),
            removed=gathered.counted(added=False),
            shares=tuple(_shares(gathered, results_before, results_after)),
        )


def _findings_by_key(*runs: ResultReader) -> dict[str, str]:
    """The findings of all failures of the runs, waived or not: the key of the most frequent key, by that of each.

    Failures of one key that are of two findings count with most of them.
    """
    stored = [tuple(msgspec.structs.replace(item, waiver="") for item in findings_of(results)) for results in runs]
    place = indexed(findings_together(stored))
    numbers: dict[str, Counter[int]] = {}
    for results in runs:
        for record in results.records(Query(result=Result.FAILED)):
            numbers.setdefault(key_text(record.key), Counter())[place("", record.fingerprint)] += 1
    found = {key: max(counts, key=lambda number: (counts[number], -number)) for key, counts in numbers.items()}
    names: dict[int, str] = {}
    for key in sorted(found, key=lambda key: (-numbers[key].total(), key)):
        names.setdefault(found[key], key)
    return {key: names[number] for key, number in found.items()}


def _shares(gathered: Gathered, before: ResultReader, after: ResultReader) -> Iterator[ShareChange]:
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


def _worst(results: ResultReader, end: End) -> WorstShare:
    deviations = record_of(results, end).verdict.deviations
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
        ran_on=ran_on(manifest),
        ran_on_zh=ran_on(manifest, "zh"),
        software=is_software(manifest),
        profile=manifest.profile,
        seed=manifest.seed,
        started=manifest.started,
        harness=manifest.harness,
        finished=run.finished,
        verdict=summary.verdict.value,
        cases=total.cases,
        passed=total.passed,
        failed=total.failed,
        waived=total.waived,
        errors=total.errors,
        skipped=total.skipped,
        out_of_scope=total.out_of_scope,
    )


def comparison_to_json(comparison: Comparison) -> dict[str, object]:
    """One JSON object: whether anything changed, the totals, and all lines."""
    lines: dict[str, object] = msgspec.to_builtins(comparison)
    return {
        "format": "aclnn-cts/comparison/2",
        "changed": comparison.changed,
        "totals": dict(comparison.totals()),
        **lines,
    }


_COLUMNS = (
    "trial_id",
    "operator",
    "product",
    "check_id",
    "kind",
    "result",
    "skip_reason",
    "waiver",
    "fingerprint",
    "dtype",
    "mode",
    "share",
)
_RANK = {Result.FAILED: 4, Result.ERROR: 3, Result.PASSED: 2, Result.SKIPPED: 1, Result.OUT_OF_SCOPE: 0}


@dataclass(slots=True)
class End:
    """How a trial ended in one run; of several records of it the worst counts."""

    trial_id: str
    operator: str
    product: str
    check: str
    kind: str
    result: str
    skip_reason: str
    waiver: str
    fingerprint: str | None
    dtype: str
    mode: str
    share: float
    unsteady: bool = False
    """It passed and failed in the same run."""

    @property
    def text(self) -> str:
        return f"{self.result}: {self.skip_reason}" if self.skip_reason else self.result

    def take(self, other: End) -> End:
        unsteady = self.unsteady or {self.result, other.result} == {Result.PASSED, Result.FAILED}
        worst = other if _RANK[other.result] > _RANK[self.result] else self
        worst.share = max(self.share, other.share)
        worst.unsteady = unsteady
        return worst


def ends(results: ResultReader) -> Iterator[End]:
    """One end for each trial, by trial id."""
    rows = (End(*row) for row in results.rows_by_trial(*_COLUMNS))
    for _, of_trial in groupby(rows, key=attrgetter("trial_id")):
        yield reduce(End.take, of_trial)


def pairs(first: Iterator[End], second: Iterator[End]) -> Iterator[tuple[End | None, End | None]]:
    """The trials of both, those of one run alone beside None."""
    both = heapq.merge(zip(repeat(0), first), zip(repeat(1), second), key=lambda item: item[1].trial_id)
    for _, of_trial in groupby(both, key=lambda item: item[1].trial_id):
        found = dict(of_trial)
        yield found.get(0), found.get(1)


EXAMPLES = 20
"""Trials that a line of the result names."""
LOOKED = 256
"""Trials of a line whose whole records are read for the cause."""


_UNSTEADY = {
    (False, False): "",
    (True, False): Because.UNSTEADY_FIRST,
    (False, True): Because.UNSTEADY_SECOND,
    (True, True): Because.UNSTEADY_BOTH,
}


def record_of(results: ResultReader, end: End) -> Record:
    """The trial's record that ended so."""
    return results.worst(Query(trial_id=end.trial_id, result=end.result))


def _stem(operator: str) -> str:
    """The name of an operator's spec file: its C name without `aclnn`, in snake case (docs/spec-format.md)."""
    name = operator.removeprefix("aclnn")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


@dataclass(slots=True)
class _Line:
    """What all lines of the result gather."""

    number: int = 0
    """Its trials, where they are not counted otherwise."""
    causes: Counter[CauseCount] = field(default_factory=Counter)
    looked: int = 0
    trials: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    def change(self, before: End, after: End, look: Callable[[End, End], CauseCount]) -> None:
        self.name(before.trial_id)
        if self.looked < LOOKED:
            self.looked += 1
            self.causes[look(before, after)] += 1

    def name(self, trial_id: str, *, changed: bool = True) -> None:
        chosen = self.trials if changed else self.unchanged
        if len(chosen) < EXAMPLES:
            chosen.append(trial_id)

    def told_causes(self) -> tuple[CauseCount, ...]:
        return tuple(msgspec.structs.replace(cause, number=number) for cause, number in self.causes.most_common())

    def told_trials(self) -> tuple[str, ...]:
        return tuple([*self.trials, *self.unchanged][:EXAMPLES])


@dataclass(slots=True)
class _Finding(_Line):
    counts: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)
    waivers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def count(self, end: End, when: str) -> None:
        """Count a failure of the run `before` or `after`."""
        self.counts[when] += 1
        self.counts[f"unwaived_{when}"] += not end.waiver
        self.waivers[when] |= {end.waiver} - {""}

    @property
    def state(self) -> str:
        if self.counts["after"]:
            return FindingState.STILL if self.counts["before"] else FindingState.NEW
        return FindingState.FIXED if self.counts["fixed"] else FindingState.GONE

    def told(self, key: str) -> FindingChange:
        return FindingChange(
            fingerprint=key_from_text(key),
            fingerprints=tuple(sorted(map(key_from_text, self.keys), key=Fingerprint.text)),
            state=self.state,
            waivers_before=tuple(sorted(self.waivers["before"])),
            waivers_after=tuple(sorted(self.waivers["after"])),
            causes=self.told_causes(),
            trials=self.told_trials(),
            **self.counts,
        )


@dataclass(slots=True)
class Share(_Line):
    """How near the passing trials of an operator, mode and dtype came to their bounds, before and after."""

    rose: int = 0
    fell: int = 0
    worst_before: End | None = None
    worst_after: End | None = None


@dataclass(slots=True)
class Gathered:
    """Everything that the two streams say, in sizes that grow with what changed and not with the records."""

    results_before: ResultReader
    results_after: ResultReader
    differences: Mapping[str, str]
    """What each fact of the manifests that differs may be the cause of."""
    findings_by_key: Mapping[str, str]
    """The key of a finding's most frequent key, by that of each (`record_codec.key_text`)."""
    common: int = 0
    findings: dict[str, _Finding] = field(default_factory=dict)
    ends: dict[tuple[str, str, str, str], _Line] = field(default_factory=dict)
    shares: dict[tuple[str, str, str], Share] = field(default_factory=dict)
    alone: Counter[tuple[bool, str, str, str, str]] = field(default_factory=Counter)
    """Trials of one run alone: whether that is the second, then operator, product, check and kind."""
    alone_failed: Counter[tuple[bool, str, str, str, str]] = field(default_factory=Counter)

    def finding(self, end: End) -> _Finding:
        key = end.fingerprint or "{}"
        finding = self.findings.setdefault(self.findings_by_key.get(key, key), _Finding())
        finding.keys.setdefault(key)
        return finding

    def take_alone(self, end: End, *, added: bool) -> None:
        key = (added, end.operator, end.product, end.check, end.kind)
        self.alone[key] += 1
        if end.result != Result.FAILED:
            return
        self.alone_failed[key] += 1
        finding = self.finding(end)
        finding.count(end, "after" if added else "before")
        finding.counts["added" if added else "removed"] += 1
        finding.name(end.trial_id, changed=added)

    def take(self, before: End, after: End) -> None:
        self.common += 1
        was, now = before.result == Result.FAILED, after.result == Result.FAILED
        if was:
            self.finding(before).count(before, "before")
        if now:
            self.finding(after).count(after, "after")
        if was and now:
            self._take_both(before, after)
        elif now:
            self._change(self.finding(after), "new", before, after)
        elif was:
            word = "fixed" if after.result == Result.PASSED else "unjudged"
            self._change(self.finding(before), word, before, after)
        if not now and before.text != after.text and not (was and after.result == Result.PASSED):
            key = (before.operator, before.check, before.text, after.text)
            line = self.ends.setdefault(key, _Line())
            line.number += 1
            line.change(before, after, self._look)
        if before.result == after.result == Result.PASSED:
            self._take_shares(before, after)

    def _take_both(self, before: End, after: End) -> None:
        was, now = self.finding(before), self.finding(after)
        if was is now:
            now.counts["still"] += 1
            now.name(after.trial_id, changed=False)
            return
        for finding in (was, now):
            self._change(finding, "otherwise", before, after)

    def _change(self, finding: _Finding, word: str, before: End, after: End) -> None:
        finding.counts[word] += 1
        finding.change(before, after, self._look)

    def _take_shares(self, before: End, after: End) -> None:
        key = (after.operator, after.mode, after.dtype)
        found = self.shares.setdefault(key, Share())
        found.number += 1
        if found.worst_before is None or before.share > found.worst_before.share:
            found.worst_before = before
        if found.worst_after is None or after.share > found.worst_after.share:
            found.worst_after = after
        if before.share != after.share:
            found.rose += after.share > before.share
            found.fell += after.share < before.share
            found.change(before, after, self._look)

    def _look(self, before: End, after: End) -> CauseCount:
        """What the records of a changed trial tell of the cause."""
        first, second = record_of(self.results_before, before), record_of(self.results_after, after)
        unsteady = _UNSTEADY[before.unsteady, after.unsteady]
        return cause_of(first, second, self.differences, spec_file=f"{_stem(before.operator)}.yaml", unsteady=unsteady)

    def counted(self, *, added: bool) -> tuple[CaseCount, ...]:
        return tuple(
            CaseCount(
                operator=operator,
                product=product,
                check=check,
                kind=kind,
                number=number,
                failed=self.alone_failed[is_added, operator, product, check, kind],
            )
            for (is_added, operator, product, check, kind), number in sorted(self.alone.items())
            if is_added is added
        )
