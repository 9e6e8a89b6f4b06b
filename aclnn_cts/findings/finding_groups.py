"""The findings of a run as the terminal shows them, each in a sentence that says what it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aclnn_cts.core.case import owner
from aclnn_cts.core.faults import fault_name, fault_words, gravest
from aclnn_cts.core.fingerprint import Fingerprint, GroupedFinding
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.dedup_key import is_related
from aclnn_cts.findings.fingerprint import findings_of, indexed, message_of
from aclnn_cts.findings.shared_condition import SharedCondition, condition_in_run
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Clause
from aclnn_cts.store.run_directory import RunDirectory, failure_name
from aclnn_cts.store.store_reader import Query

_ANY = ""
"""In the place of a fault."""
_INTERFACE = "interface."
"""Before the ids of constraints of `specs/interface.yaml`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """A finding of a run: outputs, checks, modes and dtypes are details of it."""

    title: str
    details: str
    meaning: str
    """What such a fault means, and the worst case's own sentence."""
    shared: SharedCondition | None
    """What the failing calls share and passing ones do not, where anything."""
    clause: str
    """The clause that it contradicts, with its address; empty where no one clause is about it."""
    cases: int
    waivers: tuple[str, ...]
    """The one that accepts the cases; empty where none does."""
    file: str
    """A trial file that shows the worst case, or one like it."""
    adapter: str
    spec_folders: tuple[str, ...]
    """The folders of operators of the user's own that the run was given."""
    edition: str
    """Of the documents that the run was held to; empty: each spec's own."""
    strict_limits: bool
    """Whether the run was asked to take observations for failures."""


def finding_groups(run: RunDirectory, specs: Specs) -> tuple[FindingGroup, ...]:
    """The findings of a run as it has stored them, unwaived ones first, then by number of cases."""
    with run.results() as results:
        found = findings_of(results)
        place = indexed(found)
        worst: dict[tuple[int, str], Record] = {}
        keys: dict[int, dict[Fingerprint, None]] = {}
        for record in results.records(Query(result=Result.FAILED), worst_first=True):
            number = place(record.waiver, record.fingerprint)
            for fault in (record.verdict.kind, _ANY):
                worst.setdefault((number, fault), record)
            keys.setdefault(number, {})[record.key] = None
        # Waived findings are one line each, without what their failures share.
        told = [
            _group(
                run,
                specs,
                item,
                fault,
                worst.get((number, fault)) or worst[number, _ANY],
                None if item.waiver else condition_in_run(results, keys[number]),
            )
            for number, item in enumerate(found)
            for fault in (_fault(item, of_campaign=run.manifest.is_campaign),)
        ]
    return tuple(sorted(told, key=lambda entry: (bool(entry.waivers), -entry.cases, entry.title)))


def _fault(finding: GroupedFinding, *, of_campaign: bool) -> str:
    """The code of the gravest fault, or of what others hide, as the report has it (`triage.dedup.Failures`)."""
    if finding.hidden is not None:
        return finding.hidden.kind
    members = finding.fingerprints
    own = [item for item in members if of_campaign or not is_related(item)]
    return gravest([item.fault for item in own or members])


def _group(
    run: RunDirectory,
    specs: Specs,
    finding: GroupedFinding,
    kind: str,
    record: Record,
    shared: SharedCondition | None,
) -> FindingGroup:
    members = finding.fingerprints
    outputs = finding.hidden.output if finding.hidden is not None else _listed(item.output for item in members)
    clause = quoted_clause(record, specs)
    details = [_listed(getattr(item, name) for item in members) for name in ("check", "clause", "mode", "dtype")]
    what = f"{fault_name(kind)} of {outputs}" if outputs else fault_name(kind)
    return FindingGroup(
        title=f"{record.fingerprint.operator.removeprefix('aclnn')}: {what}",
        details="; ".join(part for part in details if part),
        meaning=f"{_meaning(kind)}: {message_of(record, finding.hidden)}",
        shared=shared,
        clause=f"{clause.at}: {clause.en}" if clause is not None else "",
        cases=finding.failures,
        waivers=(finding.waiver,) if finding.waiver else (),
        file=str(run.path / "failures" / failure_name(record.key)),
        adapter=record.where.get("adapter", ""),
        spec_folders=run.manifest.spec_folders,
        edition=run.manifest.edition,
        strict_limits=bool(run.manifest.settings.get("strict_limits", False)),
    )


def quoted_clause(record: Record, specs: Specs) -> Clause | None:
    """The clause that tells best what a failing record contradicts; None where no one clause is about it.

    Of a broken constraint, the clause that states the returned code, or the first. Of an example its own. Else the
    first clause on the check, for all calls, that names the kind of fault or else the output, or names neither.
    """
    case, fingerprint = record.trial.case, record.fingerprint
    spec = specs[case.operator]
    if fingerprint.clause:
        shared = fingerprint.clause.startswith(_INTERFACE)
        name = fingerprint.clause.removeprefix(_INTERFACE)
        encoded = [
            item
            for item in (specs.interface_clauses if shared else spec.clauses)
            if name in item.constraints and item.applies_to(case.product)
        ]
        return next((item for item in encoded if item.at.startswith("returns.")), next(iter(encoded), None))
    if record.trial.check == "example":
        return next((item for item in spec.clauses if item.example is not None), None)
    about = [item for item in spec.clauses if _is_about(item, record)]
    about = [item for item in about if item.check == record.trial.check] or about
    return max(
        about,
        key=lambda item: (bool(item.faults), item.output == owner(fingerprint.output)),
        default=None,
    )


def _is_about(clause: Clause, record: Record) -> bool:
    return (
        clause.check in (record.trial.check, "values")
        and clause.when is None
        and clause.applies_to(record.trial.case.product)
        and (not clause.faults or record.verdict.kind in clause.faults)
        and clause.output in (None, owner(record.fingerprint.output))
    )


def _meaning(kind: str) -> str:
    words = fault_words().get(kind)
    return words.meaning[0] if words is not None else kind


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted({word for word in words if word}))
