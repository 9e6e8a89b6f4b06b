"""From run directories to `Acceptance`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.note import Note
from aclnn_cts.core.standard import STANDARDS
from aclnn_cts.core.verdict import ERROR_RATIO_EDGES, RunVerdict
from aclnn_cts.findings.findings import findings_of
from aclnn_cts.findings.waivers.file import Waiver, read_waivers, waivers_beside_shipped
from aclnn_cts.reports.model.acceptance import Acceptance, Credibility
from aclnn_cts.reports.model.acceptance_rows import ClauseRow, FindingCard, WaiverRow
from aclnn_cts.reports.model.clause_evidence import ClauseEvidence
from aclnn_cts.reports.model.clause_verdicts import ClauseVerdicts
from aclnn_cts.reports.model.collect import CollectedRecords, OperatorTally
from aclnn_cts.reports.model.finding_tally import FindingTallies
from aclnn_cts.reports.model.findings import finding_cards
from aclnn_cts.reports.model.kill_matrix import shipped_power
from aclnn_cts.reports.model.precision import PrecisionTally
from aclnn_cts.reports.model.rows import (
    ClauseRows,
    campaign_rows,
    check_rows,
    constraint_rows,
    coverage_maps,
    determinism_part,
    interface_rows,
    observation_rows,
    operator_part,
    regime_maps,
    with_specific,
)
from aclnn_cts.reports.model.runs import (
    directories,
    evidence_files,
    insufficient_run,
    run_facts,
    specs_of_runs,
)
from aclnn_cts.reports.model.standard_tally import StandardTally, combined_options, saved_by_forward
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.possible_cells import PossibleCells, possible_maps
from aclnn_cts.store.programs import stored_programs
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_verdict import worst_verdict
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.compare import compare_runs
from aclnn_cts.triage.comparison import RunComparison

if TYPE_CHECKING:
    from aclnn_cts.reports.model.standards import StandardPart

_ERRORS, _DISPUTES = 20, 12
"""Notes that a report shows."""


def acceptance(
    paths: Sequence[Path],
    *,
    waiver_files: Sequence[Path] = (),
    baseline: Path | None = None,
) -> Acceptance:
    """Read the runs and count.

    - `paths`: run directories, at least one; one that stands twice is a UsageError.
    - `waiver_files`: where waivers that a run names are looked up, beside those that ship.
    - `baseline`: an earlier run, which those of the same product are compared with.

    Raises UsageError where a path is no run directory or two runs used different editions of a spec.
    """
    runs = directories(paths)
    comparisons = _comparisons(runs, baseline)
    shipped = load_specs()
    used = specs_of_runs(runs, shipped)
    interface = {clause.at: clause for clause in shipped.interface_clauses}
    collected = CollectedRecords(
        operators={
            name: OperatorTally(
                spec=used[name],
                speakers=ClauseEvidence(used[name], shipped.interface_clauses),
                precision=PrecisionTally(name),
            )
            for name in dict.fromkeys((*shipped, *used))
            if name in used
        },
        findings=FindingTallies([_findings(run) for run in runs]),
    )
    programs = []
    for number, run in enumerate(runs):
        standard = STANDARDS.get(run.manifest.profile)
        with run.results() as results:
            programs.append(stored_programs(results))
            for name, tally in collected.operators.items():
                for kind, cells in possible_maps(results, name).items():
                    tally.possible.setdefault(kind, PossibleCells()).include(cells)
                if standard is not None and name in run.manifest.operators:
                    collected.standards[number, name] = StandardTally(
                        standard=standard,
                        spec=tally.spec,
                        manifest=run.manifest,
                        options=combined_options(results, name),
                        saved=saved_by_forward(results, name),
                    )
            for record in results.records():
                collected.add(record, number)
    ids = collected.findings.ids()
    summary = Summary()
    for run in runs:
        summary.include(run.summary())
    summaries: dict[str, Summary] = {}
    for run in runs:
        summaries.setdefault(run.manifest.target.product, Summary()).include(run.summary())
    products = frozenset(summaries)
    rows_of = {
        name: ClauseRows(
            verdicts=ClauseVerdicts(
                spec=tally.spec,
                interface=interface,
                speakers=tally.speakers,
                sides={product: entry.operator(name).constraints for product, entry in summaries.items()},
                corners={product: entry.operator(name).corners for product, entry in summaries.items()},
                products=products,
            ),
            findings=ids,
        )
        for name, tally in collected.operators.items()
    }
    clauses = with_specific(
        (
            *(row for entry in rows_of.values() for row in entry.rows()),
            *interface_rows(shipped.interface_clauses, list(rows_of.values())),
        )
    )
    targets = [run.manifest.target for run in runs]
    checks = tuple(row for tally in collected.operators.values() for row in check_rows(tally, ids))
    findings = finding_cards(collected, ids, _contradicted(clauses), runs, programs)
    return Acceptance(
        runs=tuple(run_facts(run, statuses=collected.statuses.get(number)) for number, run in enumerate(runs)),
        verdict=worst_verdict(run.summary().verdict for run in runs),
        suffices=_suffices(runs),
        ends=summary.total,
        operators=tuple(operator_part(tally.spec, summary) for tally in collected.operators.values()),
        checks=checks,
        clauses=clauses,
        constraints=tuple(
            row for tally in collected.operators.values() for row in constraint_rows(tally, summary, products, ids)
        ),
        observations=tuple(observation_rows(summary)),
        openness=tuple(row for row in summary.openness if row.open.open),
        precision=tuple(row for tally in collected.operators.values() for row in tally.precision.rows()),
        error_ratio_edges=ERROR_RATIO_EDGES,
        coverage=tuple(
            entry
            for name, tally in collected.operators.items()
            for entry in (*coverage_maps(tally), *regime_maps(name, summary.operator(name).cells))
        ),
        determinism=tuple(
            determinism_part(tally, [row for row in checks if row.operator == name], targets)
            for name, tally in collected.operators.items()
        ),
        findings=findings,
        waivers=tuple(_waivers(summary, findings, runs, waiver_files)),
        credibility=Credibility(
            power=shipped_power(),
            disputes=len(collected.disputes),
            dispute_notes=tuple(collected.disputes[:_DISPUTES]),
            second_oracle=dict(sorted(collected.second_oracle.items())),
            errors=tuple((Note(text, code), number) for (code, text), number in collected.errors.most_common(_ERRORS)),
        ),
        evidence=tuple(file for run in runs for file in evidence_files(run)),
        comparisons=comparisons,
        standards=tuple(_standards(runs, collected)) if collected.standards else (),
        campaigns=tuple(row for run in runs for row in campaign_rows(run)),
    )


def _standards(runs: Sequence[RunDirectory], collected: CollectedRecords) -> Iterator[StandardPart]:
    from aclnn_cts.reports.model.standards import standard_part  # noqa: PLC0415 - few runs follow one

    for number, run in enumerate(runs):
        if mine := {name: tally for (of, name), tally in collected.standards.items() if of == number}:
            yield standard_part(run.path.resolve().name, mine)


def _findings(run: RunDirectory) -> tuple[Finding, ...]:
    with run.results() as results:
        return findings_of(results)


def _comparisons(runs: Sequence[RunDirectory], baseline: Path | None) -> tuple[RunComparison, ...]:
    if baseline is None:
        return ()
    product = RunDirectory(baseline).manifest.target.product
    alike = [run for run in runs if run.manifest.target.product == product]
    if not alike:
        raise UsageError(f"--baseline {baseline}: a run for {product}; none of the runs to report is for that product")
    return tuple(compare_runs(baseline, run.path) for run in alike)


def _suffices(runs: Sequence[RunDirectory]) -> bool:
    """Whether complete runs of a sufficient profile judged every operator and product, whatever is beside them."""
    covered: set[tuple[str, str]] = set()
    asked: set[tuple[str, str]] = set()
    for run in runs:
        manifest, found = run.manifest, run.summary().conclusion.operators
        mine = {(name, manifest.target.product) for name in found or manifest.operators}
        asked |= mine
        if not insufficient_run(run):
            covered |= {
                (name, product)
                for name, product in mine
                if name in found and found[name].verdict not in (RunVerdict.INCONCLUSIVE, RunVerdict.NOTHING_FOUND)
            }
    return asked <= covered


def _contradicted(clauses: Iterable[ClauseRow]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for row in sorted(clauses, key=lambda row: not row.specific):
        for identifier in sorted(row.findings, key=lambda name: name not in row.specific):
            found.setdefault(identifier, []).append((row.operator, row.clause.at))
    return found


def _waivers(
    summary: Summary, findings: Sequence[FindingCard], runs: Sequence[RunDirectory], files: Sequence[Path]
) -> Iterator[WaiverRow]:
    # A report makes no call of any adapter, and needs no case of a shipped waiver.
    known: dict[str, Waiver] = {entry.id: entry for entry in waivers_beside_shipped(files, adapter="")}
    today = dict(known)
    for run in runs:
        # As the run used them: the cases that they pin lie elsewhere.
        known |= {entry.id: entry for path in run.waivers() for entry in read_waivers([path], pinned=False)}
    day = max(date.fromisoformat(run.manifest.started[:10]) for run in runs)
    for identifier, number in sorted(summary.waivers.items()):
        entry = known.get(identifier)
        yield WaiverRow(
            id=identifier,
            failures=number,
            findings=tuple(card.id for card in findings if identifier in card.waivers),
            reason=entry.reason if entry is not None else None,
            reason_zh=_chinese_reason(entry, today) if entry is not None else None,
            owner=entry.owner if entry is not None else None,
            expiry=entry.expiry.isoformat() if entry is not None else None,
            link=entry.link if entry is not None else None,
            expired=entry.expiry < day if entry is not None else None,
        )


def _chinese_reason(entry: Waiver, today: Mapping[str, Waiver]) -> str | None:
    """The reason in Chinese; a run's own file may be older than the Chinese of a reason that is still the same."""
    now = today.get(entry.id)
    later = now.reason_zh if now is not None and now.reason == entry.reason else ""
    return entry.reason_zh or later or None
