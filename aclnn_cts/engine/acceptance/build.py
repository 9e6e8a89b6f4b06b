"""From run directories to `Acceptance`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from aclnn_cts.core.acceptance import (
    Acceptance,
    ClauseRow,
    ConstraintRow,
    CoverageMap,
    Credibility,
    Ends,
    FindingCard,
    OperatorPart,
    PromiseRow,
    TrialRow,
    WaiverRow,
)
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.statuses import ANY_ERROR, SUCCESS
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.engine.acceptance.clauses import ClauseJudge, interface_rows, with_specific
from aclnn_cts.engine.acceptance.collect import Collected, OperatorTally, coverage_order, returned_word
from aclnn_cts.engine.acceptance.findings import finding_cards, finding_ids
from aclnn_cts.engine.acceptance.precision import PrecisionTally, plain
from aclnn_cts.engine.acceptance.runs import ends_of, evidence_files, run_facts, specs_of_runs
from aclnn_cts.engine.acceptance.speakers import Said, Speakers
from aclnn_cts.engine.laws import PREFIX, laws_of
from aclnn_cts.engine.repro.write import Programs
from aclnn_cts.engine.run_directory import RunDirectory
from aclnn_cts.engine.summary import CONFORMS, FAILS, NONE, Summary
from aclnn_cts.engine.waiver_file import Waiver, read_waivers, shipped_waivers
from aclnn_cts.judge.compare import SHARE_EDGES
from aclnn_cts.spec.load import load_specs
from aclnn_cts.spec.model import Spec

__all__ = ["KILL_MATRIX_FORMAT", "acceptance", "trial_rows"]

KILL_MATRIX_FORMAT = "aclnn-cts/kill-matrix/1"

SUFFICIENT = frozenset({"standard", "thorough"})
"""Profiles that acceptance can rest on."""

_MAPS = ("rank", "size", "contents", "layout")
_ERRORS = 20


def acceptance(paths: Sequence[Path], *, waiver_files: Sequence[Path] = (), baseline: Path | None = None) -> Acceptance:
    """Read the runs and count.

    - `paths`: run directories, at least one; one that stands twice is a UsageError.
    - `waiver_files`: where waivers that a run names are looked up, beside those that ship.

    Raises UsageError where a path is no run directory or two runs used different editions of a spec.
    """
    runs = _directories(paths)
    shipped = load_specs()
    used = specs_of_runs(runs, shipped)
    specs = {**{name: spec for name, spec in shipped.items() if name not in used}, **used}
    order = [name for name in (*shipped, *used) if name in specs]
    interface = {clause.at: clause for clause in shipped.interface_clauses}
    collected = Collected(
        operators={
            name: OperatorTally(
                spec=used[name],
                speakers=Speakers(used[name], shipped.interface_clauses),
                precision=PrecisionTally(name),
            )
            for name in dict.fromkeys(order)
            if name in used
        }
    )
    for number, run in enumerate(runs):
        with run.results() as results:
            for record in results.records():
                collected.add(record, number)
    summary = Summary()
    for run in runs:
        summary.include(run.summary())
    products = frozenset(run.manifest.target.product for run in runs)
    ids = finding_ids(collected.failures)
    judges = {
        name: ClauseJudge(
            spec=specs[name],
            interface=interface,
            speakers=collected.operators[name].speakers if name in collected.operators else None,
            sides=summary.operator(name).constraints if name in collected.operators else {},
            products=products,
            findings=ids,
        )
        for name in dict.fromkeys(order)
    }
    clauses = with_specific(
        (
            *(row for judge in judges.values() for row in judge.rows()),
            *interface_rows(shipped.interface_clauses, [judges[name] for name in collected.operators]),
        )
    )
    folders = [Path(folder) for run in runs for folder in run.manifest.settings.get("spec_folders", ())]
    programs = Programs(specs=specs, spec_folders=tuple(dict.fromkeys(folders)))
    findings = finding_cards(collected, ids, _contradicted(clauses), runs, programs)
    return Acceptance(
        runs=tuple(run_facts(run, statuses=collected.statuses.get(number)) for number, run in enumerate(runs)),
        verdict=_verdict(summary, runs),
        suffices=all(run.manifest.profile in SUFFICIENT and run.finished for run in runs),
        ends=ends_of(summary.total),
        operators=tuple(_operator(tally.spec, summary) for tally in collected.operators.values()),
        promises=tuple(row for tally in collected.operators.values() for row in _promises(tally, summary, ids)),
        clauses=clauses,
        constraints=tuple(
            row for tally in collected.operators.values() for row in _constraints(tally, summary, products, ids)
        ),
        precision=tuple(row for tally in collected.operators.values() for row in tally.precision.rows()),
        share_edges=SHARE_EDGES,
        coverage=tuple(entry for tally in collected.operators.values() for entry in _maps(tally)),
        laws=tuple(
            (name, PREFIX + law.id, law.en, law.zh)
            for name, tally in collected.operators.items()
            for law in _laws(tally.spec)
        ),
        findings=findings,
        waivers=tuple(_waivers(summary, findings, runs, waiver_files)),
        credibility=Credibility(
            matrix=_kill_matrix(),
            disputes=collected.disputes,
            dispute_messages=tuple(collected.dispute_messages),
            second_oracle=dict(sorted(collected.second_oracle.items())),
            errors=tuple(collected.errors.most_common(_ERRORS)),
        ),
        evidence=tuple(file for run in runs for file in evidence_files(run)),
    )


def _directories(paths: Sequence[Path]) -> list[RunDirectory]:
    seen: dict[Path, Path] = {}
    for path in paths:
        if (resolved := path.resolve()) in seen:
            raise UsageError(f"{path}: the same run as {seen[resolved]}; give each run once")
        seen[resolved] = path
    return [RunDirectory(path) for path in paths]


def _verdict(summary: Summary, runs: Sequence[RunDirectory]) -> str:
    """Of the runs together: `conforms` takes that each of them came to its end."""
    if summary.verdict == CONFORMS and not all(run.finished for run in runs):
        return NONE
    if summary.verdict == CONFORMS and any(run.summary().verdict == NONE for run in runs):
        return NONE
    return FAILS if any(run.summary().verdict == FAILS for run in runs) else summary.verdict


def _contradicted(clauses: Iterable[ClauseRow]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for row in sorted(clauses, key=lambda row: not row.specific):
        for identifier in sorted(row.findings, key=lambda name: name not in row.specific):
            found.setdefault(identifier, []).append((row.operator, row.at))
    return found


def _operator(spec: Spec, summary: Summary) -> OperatorPart:
    return OperatorPart(
        operator=spec.operator,
        stem=spec.stem,
        document=spec.document,
        spec_sha256=spec.sha256,
        outputs=spec.outputs,
        ends=ends_of(summary.operator(spec.operator).total),
    )


def _promises(tally: OperatorTally, summary: Summary, ids: Mapping[str, str]) -> Iterator[PromiseRow]:
    laws = summary.operator(tally.spec.operator).laws
    names = dict.fromkeys([*tally.promises, *laws])
    mine = {key: entry for key, entry in ids.items() if key.startswith(f'{{"operator":"{tally.spec.operator}"')}
    for name in names:
        ends = tally.promises[name].ends() if name in tally.promises else Ends()
        yield PromiseRow(
            operator=tally.spec.operator,
            promise=name,
            ends=ends,
            findings=tuple(entry for key, entry in mine.items() if json.loads(key)["promise"] == name),
            withheld=laws[name].withheld if name in laws else 0,
            worst=plain(tally.worst.get(name, 0.0)),
            facts=dict(sorted(tally.facts.get(name, {}).items())),
        )


def _constraints(
    tally: OperatorTally, summary: Summary, products: frozenset[str], ids: Mapping[str, str]
) -> Iterator[ConstraintRow]:
    spec = tally.spec
    product = min(products & set(spec.products), default=spec.products[0])
    for item in spec.constraints:
        side = summary.operator(spec.operator).constraint(item.id)
        said = tally.speakers.by_constraint.get(item.id, Said())
        condition = f" (when {item.when_text})" if item.when_text is not None else ""
        yield ConstraintRow(
            operator=spec.operator,
            id=item.id,
            rule=item.rule.describe(product) + condition,
            strength=item.strength,
            group=item.group or "",
            promised=item.statuses or (ANY_ERROR, SUCCESS),
            clauses=spec.clauses_of(item.id) or item.clauses,
            held=side.held,
            broken=side.broken,
            ends=tally.broken[item.id].ends() if item.id in tally.broken else Ends(),
            returned=dict(tally.returned[item.id].most_common()) if item.id in tally.returned else {},
            not_enforced=tally.not_enforced[item.id],
            applies=any(map(item.applies_to, products)),
            findings=tuple(ids[key] for key in said.findings),
        )


def _maps(tally: OperatorTally) -> Iterator[CoverageMap]:
    for kind in _MAPS:
        counts = tally.maps.get(kind)
        if not counts:
            continue
        rows = sorted({row for row, _ in counts})
        columns = coverage_order(kind, {column for _, column in counts})
        yield CoverageMap(
            operator=tally.spec.operator,
            kind=kind,
            rows=tuple(rows),
            columns=tuple(columns),
            counts=tuple(tuple(counts[row, column] for column in columns) for row in rows),
        )


def _laws(spec: Spec) -> Iterable[Any]:
    try:
        return laws_of(spec).values()
    except UsageError:  # an operator of the user's own, whose oracle is not here
        return ()


def _waivers(
    summary: Summary, findings: Sequence[FindingCard], runs: Sequence[RunDirectory], files: Sequence[Path]
) -> Iterator[WaiverRow]:
    known: Mapping[str, Waiver] = {entry.id: entry for entry in read_waivers([*shipped_waivers(), *files])}
    day = max(date.fromisoformat(run.manifest.started[:10]) for run in runs)
    for identifier, number in sorted(summary.waivers.items()):
        entry = known.get(identifier)
        yield WaiverRow(
            id=identifier,
            failures=number,
            findings=tuple(card.id for card in findings if identifier in card.waivers),
            reason=entry.reason if entry is not None else None,
            owner=entry.owner if entry is not None else None,
            expiry=entry.expiry.isoformat() if entry is not None else None,
            link=entry.link if entry is not None else None,
            where=entry.where if entry is not None else None,
            expired=entry.expiry < day if entry is not None else None,
        )


def _kill_matrix() -> Mapping[str, Any] | None:
    """What `aclnn-cts faults` found with this version of the harness; None where it does not ship."""
    path = Path(__file__).resolve().parents[2] / "reports" / "kill_matrix.json"
    if not path.is_file():
        return None
    document = json.loads(path.read_bytes())
    if not isinstance(document, dict) or document.get("format") != KILL_MATRIX_FORMAT:
        return None
    return document


def trial_rows(paths: Sequence[Path], *, result: str | None = None) -> Iterator[TrialRow]:
    """All trials of the runs, or those with one result, in a stream."""
    for run in _directories(paths):
        name = run.path.resolve().name
        with run.results() as results:
            for record in results.records():
                if result is None or record.verdict.result == result:
                    yield _trial_row(name, record)


def _trial_row(run: str, record: Record) -> TrialRow:
    verdict, case, signature = record.verdict, record.trial.case, record.signature
    worst = max((deviation.share for deviation in verdict.deviations), default=0.0)
    return TrialRow(
        run=run,
        trial_id=record.trial_id,
        operator=case.operator,
        product=case.product,
        promise=record.trial.promise,
        kind=case.origin.kind,
        constraint=case.origin.constraint or signature.constraint,
        result=verdict.result,
        why=verdict.kind,
        message=verdict.message,
        waiver=record.waiver,
        dtype=signature.dtype,
        mode=verdict.mode or signature.mode,
        output=signature.output,
        status=returned_word(record),
        share=plain(worst),
        seconds=record.seconds,
        case=json.dumps(case_to_json(case, origin=False)["arguments"], ensure_ascii=False)
        if verdict.result == Result.FAILED
        else "",
    )
