"""Two runs compared, trial by trial: what fails now, what does no longer, and why, as far as the records tell.

Both stores are read in the order of their trials' ids, side by side, so that memory does not grow with their records.
Whole records are read of changed trials alone, and of no more than `LOOKED` for each line of the result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import msgspec

from aclnn_cts.core.verdict import Result
from aclnn_cts.findings.fingerprint import findings_of, findings_together, indexed
from aclnn_cts.store.manifest import is_software, ran_on
from aclnn_cts.store.record_codec import key_text
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.store_reader import Query, ResultReader
from aclnn_cts.triage.compare_lines import End, Gathered, ends, pairs, record_of
from aclnn_cts.triage.comparison import Comparison, EndChange, FindingState, RunSide, ShareChange, WorstShare
from aclnn_cts.triage.differences import manifest_differences

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
