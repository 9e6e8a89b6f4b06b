"""The distinct findings of a run, each in a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aclnn_cts.core.fault_words import fault_words
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Record, Signature
from aclnn_cts.findings.shared_condition import SharedCondition, condition_in_run
from aclnn_cts.findings.signature import VALUE_KINDS
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Clause
from aclnn_cts.store.run_directory import RunDirectory, failure_name
from aclnn_cts.store.store_reader import Finding, Query

__all__ = ["FindingGroup", "finding_groups", "quoted_clause"]

_INTERFACE = "interface."
"""Before the ids of constraints of `specs/interface.yaml`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """Findings of one operator, output and kind, told together: promises, modes and dtypes are details of them."""

    title: str
    details: str
    meaning: str
    """What such a fault means, and the worst case's own sentence."""
    shared: SharedCondition | None
    """What the failing calls share and passing ones do not, where anything."""
    clause: str
    """The clause that it contradicts, with its address; empty where no one clause is about it."""
    findings: int
    cases: int
    waivers: tuple[str, ...]
    """Those that speak for the cases; empty where any case stands unwaived."""
    file: str
    """The trial file of the finding with the worst case."""
    adapter: str
    spec_folders: tuple[str, ...]
    """The folders of operators of the user's own that the run was given."""
    strict_limits: bool
    """Whether the run was asked to take observations for failures."""


def finding_groups(run: RunDirectory, specs: Specs) -> tuple[FindingGroup, ...]:
    """The findings of a run by operator, output and kind, unwaived ones first, then by number of cases."""
    groups: dict[tuple[str, str, str, bool], list[tuple[Finding, Record]]] = {}
    with run.results() as results:
        for finding in results.findings():
            record = next(iter(results.records(Query(signature=finding.signature), worst_first=True, limit=1)))
            signature = finding.signature
            key = (signature.operator, signature.output, signature.kind, finding.waived == finding.number)
            groups.setdefault(key, []).append((finding, record))
        families: dict[tuple[str, str, str, bool], list[Signature]] = {}
        for key, members in groups.items():
            families.setdefault(_family(key), []).extend(finding.signature for finding, _ in members)
        # Waived findings are one line each, without what their failures share.
        shared = {
            key: None if key[-1] else condition_in_run(results, signatures) for key, signatures in families.items()
        }
    told = [_group(run, specs, key, members, shared[_family(key)]) for key, members in groups.items()]
    return tuple(sorted(told, key=lambda entry: (bool(entry.waivers), -entry.cases, entry.title)))


def _family(key: tuple[str, str, str, bool]) -> tuple[str, str, str, bool]:
    """One fault of an output's values shows as several kinds, of which each alone shares what makes it that kind."""
    operator, output, kind, waived = key
    return operator, output, Fault.VALUE if kind in VALUE_KINDS else kind, waived


def _group(
    run: RunDirectory,
    specs: Specs,
    key: tuple[str, str, str, bool],
    members: Sequence[tuple[Finding, Record]],
    shared: SharedCondition | None,
) -> FindingGroup:
    operator, output, kind, waived = key
    worst, record = max(members, key=lambda member: max((d.share for d in member[1].verdict.deviations), default=0.0))
    signatures = [finding.signature for finding, _ in members]
    place = f" of {output}" if output else ""
    fields = ("promise", "constraint", "mode", "dtype")
    clause = quoted_clause(record, specs)
    details = [_listed(getattr(signature, name) for signature in signatures) for name in fields]
    return FindingGroup(
        title=f"{operator.removeprefix('aclnn')}: {kind}{place}",
        details="; ".join(part for part in details if part),
        meaning=f"{_meaning(kind)}: {record.verdict.message}",
        shared=shared,
        clause=f"{clause.at}: {clause.en}" if clause is not None else "",
        findings=len(members),
        cases=sum(finding.number for finding, _ in members),
        waivers=tuple(dict.fromkeys(record.waiver for _, record in members)) if waived else (),
        file=str(run.path / "failures" / failure_name(worst.signature)),
        adapter=record.where.get("adapter", ""),
        spec_folders=run.manifest.spec_folders,
        strict_limits=bool(run.manifest.settings.get("strict_limits", False)),
    )


def quoted_clause(record: Record, specs: Specs) -> Clause | None:
    """The clause that tells best what a failing record contradicts; None where no one clause is about it.

    Of a broken constraint, the clause that states the returned code, or the first. Of an example its own. Else the
    first clause on the promise, for all calls, that names the kind of fault or else the output, or names neither.
    """
    case, signature = record.trial.case, record.signature
    spec = specs[case.operator]
    if signature.constraint:
        shared = signature.constraint.startswith(_INTERFACE)
        name = signature.constraint.removeprefix(_INTERFACE)
        encoded = [
            item
            for item in (specs.interface_clauses if shared else spec.clauses)
            if name in item.constraints and item.applies_to(case.product)
        ]
        return next((item for item in encoded if item.at.startswith("returns.")), next(iter(encoded), None))
    if record.trial.promise == "example":
        return next((item for item in spec.clauses if item.example is not None), None)
    about = [item for item in spec.clauses if _is_about(item, record)]
    about = [item for item in about if item.promise == record.trial.promise] or about
    return max(
        about,
        key=lambda item: (bool(item.faults), item.output == signature.output),
        default=None,
    )


def _is_about(clause: Clause, record: Record) -> bool:
    return (
        clause.promise in (record.trial.promise, "values")
        and clause.when is None
        and clause.applies_to(record.trial.case.product)
        and (not clause.faults or record.verdict.kind in clause.faults)
        and clause.output in (None, record.signature.output)
    )


def _meaning(kind: str) -> str:
    words = fault_words().get(kind)
    return words.meaning[0] if words is not None else kind


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted({word for word in words if word}))
