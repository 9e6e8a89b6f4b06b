"""Two runs compared, trial by trial: what fails now, and what does no longer, in lines that stay few.

Both stores are read in the order of their trials' ids, side by side, so that memory does not grow with their records.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import findings_of, merge_findings
from aclnn_cts.store.manifest import Manifest, is_software, ran_on
from aclnn_cts.store.record_codec import key_from_text, key_text
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.store_reader import Query, ResultReader
from aclnn_cts.triage.comparison import (
    CaseCount,
    EndChange,
    ErrorRatioChange,
    FindingChange,
    FindingState,
    ManifestDifference,
    RunComparison,
    RunSide,
    WorstErrorRatio,
)

_STATES = (FindingState.NEW, FindingState.STILL, FindingState.FIXED, FindingState.GONE)


def compare_runs(before: Path, after: Path) -> RunComparison:
    """Compare two run directories, of runs or campaigns, finished or not.

    Raises UsageError where a folder is no run directory, HarnessError where one is damaged.
    """
    first, second = RunDirectory(before), RunDirectory(after)
    with first.results() as results_before, second.results() as results_after:
        gathered = ComparisonCounts(
            findings_by_key=_findings_by_key(results_before, results_after),
        )
        for one, other in trial_pairs(trial_ends(results_before), trial_ends(results_after)):
            if one is not None and other is not None:
                gathered.take(one, other)
            elif one is not None:
                gathered.take_alone(one, added=False)
            elif other is not None:
                gathered.take_alone(other, added=True)
        findings = [finding.to_change(key) for key, finding in gathered.findings.items()]
        return RunComparison(
            before=_side(first, results_before),
            after=_side(second, results_after),
            common=gathered.common,
            differences=manifest_differences(first.manifest, second.manifest),
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
                    trials=line.example_trials(),
                )
                for (operator, check, was, now), line in sorted(gathered.ends.items(), key=lambda item: item[0])
            ),
            added=gathered.counted(added=True),
            removed=gathered.counted(added=False),
            error_ratio_changes=tuple(_error_ratio_changes(gathered, results_before, results_after)),
        )


def manifest_differences(before: Manifest, after: Manifest) -> tuple[ManifestDifference, ...]:
    """Every fact that differs, in the manifest's order. Times, paths of outputs and words typed are left out."""
    first, second = dict(_facts(before)), dict(_facts(after))
    return tuple(
        ManifestDifference(
            name=name,
            before=first.get(name),
            after=second.get(name),
            before_zh=_chinese(before, name),
            after_zh=_chinese(after, name),
        )
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    )


def _facts(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    yield "command", manifest.command
    yield "adapter", manifest.adapter
    yield "harness", manifest.harness
    yield "operators", sorted(manifest.operators)
    yield "profile", manifest.profile
    yield "seed", manifest.seed
    for name in manifest.target.__struct_fields__:
        yield f"target.{name}", getattr(manifest.target, name)
    for prefix, table in (("specs", manifest.specs), ("inputs", manifest.inputs), ("settings", manifest.settings)):
        for name, value in table.items():
            yield f"{prefix}.{name}", value
    for name, fact in manifest.environment.items():
        yield f"environment.{name}", fact.value


def _chinese(manifest: Manifest, name: str) -> str:
    fact = manifest.environment.get(name.removeprefix("environment."))
    return (fact.zh or "") if fact is not None else ""


def _findings_by_key(*runs: ResultReader) -> dict[str, str]:
    """The finding of all failures of the runs, waived or not, by the key of each: the key of the most frequent.

    Failures of one key that are of two findings count with most of them.
    """
    found = [msgspec.structs.replace(item, waiver="") for results in runs for item in findings_of(results)]
    names: dict[str, tuple[int, str]] = {}
    for finding in merge_findings(found):
        for item, number in finding.counts:
            key = key_text(item.key)
            names[key] = max(names.get(key, (0, "")), (number, key_text(finding.key)))
    return {key: name for key, (_, name) in names.items()}


def _error_ratio_changes(
    gathered: ComparisonCounts, before: ResultReader, after: ResultReader
) -> Iterator[ErrorRatioChange]:
    for (operator, mode, dtype), found in sorted(gathered.error_ratios.items(), key=lambda item: item[0]):
        if found.worst_before is None or found.worst_after is None or not found.rose + found.fell:
            continue
        yield ErrorRatioChange(
            operator=operator,
            mode=mode,
            dtype=dtype,
            trials=found.number,
            rose=found.rose,
            fell=found.fell,
            before=_worst(before, found.worst_before),
            after=_worst(after, found.worst_after),
        )


def _worst(results: ResultReader, end: TrialEnd) -> WorstErrorRatio:
    deviations = record_of(results, end).verdict.deviations
    output = max(deviations, key=attrgetter("error_ratio")).output if deviations else ""
    return WorstErrorRatio(
        error_ratio="inf" if math.isinf(end.error_ratio) else end.error_ratio, output=output, trial=end.trial_id
    )


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


def comparison_to_json(comparison: RunComparison) -> dict[str, object]:
    """One JSON object: whether anything changed, the totals, and all lines."""
    lines: dict[str, object] = msgspec.to_builtins(comparison)
    return {
        "format": "aclnn-cts/comparison/3",
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
class TrialEnd:
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
    error_ratio: float

    @property
    def text(self) -> str:
        return f"{self.result}: {self.skip_reason}" if self.skip_reason else self.result

    def take(self, other: TrialEnd) -> TrialEnd:
        worst = other if _RANK[other.result] > _RANK[self.result] else self
        worst.error_ratio = max(self.error_ratio, other.error_ratio)
        return worst


def trial_ends(results: ResultReader) -> Iterator[TrialEnd]:
    """One end for each trial, by trial id."""
    rows = (TrialEnd(*row) for row in results.rows_by_trial(*_COLUMNS))
    for _, of_trial in groupby(rows, key=attrgetter("trial_id")):
        yield reduce(TrialEnd.take, of_trial)


def trial_pairs(
    first: Iterator[TrialEnd], second: Iterator[TrialEnd]
) -> Iterator[tuple[TrialEnd | None, TrialEnd | None]]:
    """The trials of both, those of one run alone beside None."""
    both = heapq.merge(zip(repeat(0), first), zip(repeat(1), second), key=lambda item: item[1].trial_id)
    for _, of_trial in groupby(both, key=lambda item: item[1].trial_id):
        found = dict(of_trial)
        yield found.get(0), found.get(1)


EXAMPLES = 20
"""Trials that a line of the result names."""


def record_of(results: ResultReader, end: TrialEnd) -> Record:
    """The trial's record that ended so."""
    return results.worst(Query(trial_id=end.trial_id, result=end.result))


@dataclass(slots=True)
class _Line:
    """What all lines of the result gather."""

    number: int = 0
    """Its trials, where they are not counted otherwise."""
    trials: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    def name(self, trial_id: str, *, changed: bool = True) -> None:
        chosen = self.trials if changed else self.unchanged
        if len(chosen) < EXAMPLES:
            chosen.append(trial_id)

    def example_trials(self) -> tuple[str, ...]:
        return tuple([*self.trials, *self.unchanged][:EXAMPLES])


@dataclass(slots=True)
class _Finding(_Line):
    counts: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)
    waivers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def count(self, end: TrialEnd, when: str) -> None:
        """Count a failure of the run `before` or `after`."""
        self.counts[when] += 1
        self.counts[f"unwaived_{when}"] += not end.waiver
        self.waivers[when] |= {end.waiver} - {""}

    @property
    def state(self) -> str:
        if self.counts["after"]:
            return FindingState.STILL if self.counts["before"] else FindingState.NEW
        return FindingState.FIXED if self.counts["fixed"] else FindingState.GONE

    def to_change(self, key: str) -> FindingChange:
        return FindingChange(
            fingerprint=key_from_text(key),
            fingerprints=tuple(sorted(map(key_from_text, self.keys), key=Fingerprint.text)),
            state=self.state,
            waivers_before=tuple(sorted(self.waivers["before"])),
            waivers_after=tuple(sorted(self.waivers["after"])),
            trials=self.example_trials(),
            **self.counts,
        )


@dataclass(slots=True)
class BoundUse(_Line):
    """How near the passing trials of an operator, mode and dtype came to their bounds, before and after."""

    rose: int = 0
    fell: int = 0
    worst_before: TrialEnd | None = None
    worst_after: TrialEnd | None = None


@dataclass(slots=True)
class ComparisonCounts:
    """Everything that the two streams say, in sizes that grow with what changed and not with the records."""

    findings_by_key: Mapping[str, str]
    """The key of a finding's most frequent key, by that of each (`record_codec.key_text`)."""
    common: int = 0
    findings: dict[str, _Finding] = field(default_factory=dict)
    ends: dict[tuple[str, str, str, str], _Line] = field(default_factory=dict)
    error_ratios: dict[tuple[str, str, str], BoundUse] = field(default_factory=dict)
    alone: Counter[tuple[bool, str, str, str, str]] = field(default_factory=Counter)
    """Trials of one run alone: whether that is the second, then operator, product, check and kind."""
    alone_failed: Counter[tuple[bool, str, str, str, str]] = field(default_factory=Counter)

    def finding(self, end: TrialEnd) -> _Finding:
        key = end.fingerprint or "{}"
        finding = self.findings.setdefault(self.findings_by_key.get(key, key), _Finding())
        finding.keys.setdefault(key)
        return finding

    def take_alone(self, end: TrialEnd, *, added: bool) -> None:
        key = (added, end.operator, end.product, end.check, end.kind)
        self.alone[key] += 1
        if end.result != Result.FAILED:
            return
        self.alone_failed[key] += 1
        finding = self.finding(end)
        finding.count(end, "after" if added else "before")
        finding.counts["added" if added else "removed"] += 1
        finding.name(end.trial_id, changed=added)

    def take(self, before: TrialEnd, after: TrialEnd) -> None:
        self.common += 1
        was, now = before.result == Result.FAILED, after.result == Result.FAILED
        if was:
            self.finding(before).count(before, "before")
        if now:
            self.finding(after).count(after, "after")
        if was and now:
            self._take_both(before, after)
        elif now:
            self._change(self.finding(after), "new", after)
        elif was:
            word = "fixed" if after.result == Result.PASSED else "unjudged"
            self._change(self.finding(before), word, after)
        if not now and before.text != after.text and not (was and after.result == Result.PASSED):
            key = (before.operator, before.check, before.text, after.text)
            line = self.ends.setdefault(key, _Line())
            line.number += 1
            line.name(after.trial_id)
        if before.result == after.result == Result.PASSED:
            self._take_error_ratios(before, after)

    def _take_both(self, before: TrialEnd, after: TrialEnd) -> None:
        was, now = self.finding(before), self.finding(after)
        if was is now:
            now.counts["still"] += 1
            now.name(after.trial_id, changed=False)
            return
        for finding in (was, now):
            self._change(finding, "otherwise", after)

    def _change(self, finding: _Finding, word: str, after: TrialEnd) -> None:
        finding.counts[word] += 1
        finding.name(after.trial_id)

    def _take_error_ratios(self, before: TrialEnd, after: TrialEnd) -> None:
        key = (after.operator, after.mode, after.dtype)
        found = self.error_ratios.setdefault(key, BoundUse())
        found.number += 1
        if found.worst_before is None or before.error_ratio > found.worst_before.error_ratio:
            found.worst_before = before
        if found.worst_after is None or after.error_ratio > found.worst_after.error_ratio:
            found.worst_after = after
        if before.error_ratio != after.error_ratio:
            found.rose += after.error_ratio > before.error_ratio
            found.fell += after.error_ratio < before.error_ratio

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
