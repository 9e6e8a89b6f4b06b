"""The findings of a run in words: the lines that the terminal, the gate and `fuzz` show of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.case import owner
from aclnn_cts.core.faults import Fault, fault_name, fault_words
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.explain import replay_command
from aclnn_cts.findings.findings import FindingIndex, findings_of, with_best_record
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Clause, Spec
from aclnn_cts.store.run_directory import FAILURES, RunDirectory
from aclnn_cts.store.store_reader import Query, ResultReader

_INTERFACE = "interface."
"""Before the ids of constraints of `specs/interface.yaml`."""
_SOME = 3
"""Words that a list shows in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingText:
    """A finding in two lines, and the command that replays its smallest case."""

    finding: Finding
    what: str
    """What fails under which condition, how often, and what the smallest case says."""
    clause: str
    """The clause that it contradicts, with its address."""
    replay: str


def finding_texts(run: RunDirectory, specs: Specs) -> tuple[FindingText, ...]:
    """The findings of a run as it has stored them, unwaived ones first, then by number of trials."""
    manifest = run.manifest
    settings = manifest.settings

    def replay(finding: Finding) -> str:
        return replay_command(
            run.path / FAILURES / finding.file,
            manifest.adapter,
            spec_folders=manifest.spec_folders,
            edition=manifest.edition,
            strict_limits=bool(settings.get("strict_limits", False)),
            benchmark=settings.get("benchmark", ""),
        )

    with run.results() as results:
        told = [
            finding_text(finding, specs, replay=replay(finding))
            for finding in with_records(results, findings_of(results))
        ]
    return tuple(sorted(told, key=lambda item: (bool(item.finding.waiver), -item.finding.failures, item.what)))


def with_records(results: ResultReader, findings: Iterable[Finding]) -> list[Finding]:
    """The findings, each with a record; a campaign stores none with its own."""
    found = list(findings)
    if all(item.record is not None for item in found):
        return found
    index = FindingIndex(found)
    best: dict[int, Finding] = {}
    for record in results.records(Query(result=Result.FAILED)):
        number = index.number_of(record)
        known = best.get(number, found[number])
        best[number] = with_best_record(known, [record] if known.record is None else [known.record, record])
    for number, item in best.items():
        if found[number].record is None:
            given = found[number]
            shown = item if given.trial is None else msgspec.structs.replace(given, record=item.record)
            found[number] = shown
    return found


def finding_text(finding: Finding, specs: Specs, *, replay: str) -> FindingText:
    """A finding that has a record, in words."""
    record = finding.record
    assert record is not None  # noqa: S101 - asked for above
    when = finding.condition.when if finding.condition is not None else ""
    clause = quoted_clause(record, specs, shared=when)
    condition = f"when {finding.condition.en}" if finding.condition is not None else _details(finding)
    failures = f"{finding.failures} {'trial' if finding.failures == 1 else 'trials'}"
    again = "" if finding.confirmed in (Confirmation.WAITING, Confirmation.ALWAYS) else f", {finding.confirmed}"
    if finding.confirmed == Confirmation.FLAKY:
        again += f": fails {finding.alone[0]} of {finding.alone[1]} times alone"
    what = f"{title_of(finding)}, {condition} ({failures}{again}); {meaning_of(finding.kind)}: {finding.message}"
    return FindingText(
        finding=finding,
        what=what,
        clause=f"clause {clause.at}: {clause.en}" if clause is not None else "no clause states it by itself",
        replay=replay,
    )


def title_of(finding: Finding) -> str:
    """What fails: `SoftmaxBackward: value of out`, or `SoftmaxBackward: status of dim.range`."""
    words = (fault_name(finding.kind), finding.key.clause or ", ".join(finding.outputs))
    return f"{finding.key.operator.removeprefix('aclnn')}: {' of '.join(filter(None, words))}"


def _details(finding: Finding) -> str:
    """The checks, constraints, modes and dtypes of a finding; of many, the first and how many more."""
    parts = [
        sorted({word for item in finding.fingerprints if (word := getattr(item, name))})
        for name in ("check", "mode", "dtype")
    ]
    listed = [
        ", ".join(words) if len(words) <= _SOME else f"{', '.join(words[:2])} and {len(words) - 2} more"
        for words in parts
        if words
    ]
    return f"in {'; '.join(listed)}"


def quoted_clause(record: Record, specs: Specs, *, shared: str = "") -> Clause | None:
    """The clause that tells best what a failing record contradicts; None where no one clause is about it.

    - Of a broken constraint, the clause that states the returned code, or the first.
    - Of a valid call that is rejected, the clause on the condition that such calls share (`shared`).
    - Of an example its own.
    - Else the first clause on the check, for all calls, that names the kind of fault or else the output, or neither.
      That the operator runs on a product explains nothing.
    """
    case, fingerprint = record.trial.case, record.fingerprint
    spec = specs[case.operator]
    if fingerprint.clause:
        is_interface = fingerprint.clause.startswith(_INTERFACE)
        name = fingerprint.clause.removeprefix(_INTERFACE)
        encoded = [
            item
            for item in (specs.interface_clauses if is_interface else spec.clauses)
            if name in item.constraints and item.applies_to(case.product)
        ]
        return next((item for item in encoded if item.at.startswith("returns.")), next(iter(encoded), None))
    is_rejected = record.verdict.kind == Fault.REJECTED
    if is_rejected and (found := _on_condition(spec, case.product, shared)) is not None:
        return found
    if record.trial.check == "example":
        return next((item for item in spec.clauses if item.example is not None), None)
    if is_rejected:
        return None
    about = [item for item in spec.clauses if _is_about(item, record)]
    about = [item for item in about if item.check == record.trial.check] or about
    return max(
        about,
        key=lambda item: (bool(item.faults), item.output == owner(fingerprint.output)),
        default=None,
    )


def _on_condition(spec: Spec, product: str, shared: str) -> Clause | None:
    """The first clause whose calls are those of a part of a condition."""
    parts = shared.split(" and ")
    return next((item for item in spec.clauses if item.when_text in parts and item.applies_to(product)), None)


def _is_about(clause: Clause, record: Record) -> bool:
    return (
        not clause.at.startswith("products.")
        and clause.check in (record.trial.check, "values")
        and clause.when is None
        and clause.applies_to(record.trial.case.product)
        and (not clause.faults or record.verdict.kind in clause.faults)
        and clause.output in (None, owner(record.fingerprint.output))
    )


def meaning_of(kind: str) -> str:
    """What a fault means, in the words of every command."""
    words = fault_words().get(kind)
    return words.meaning[0] if words is not None else kind
