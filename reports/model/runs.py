"""What run directories hold as it is: facts of each run, its specs and files, and each trial on one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from aclnn_cts.adapters.protocol import SOFTWARE_DEVICE
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outside import YAML_BYTES, number_or_word, sha256_of
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.findings.findings import FindingIndex, findings_of
from aclnn_cts.reports.model.acceptance import EvidenceFile, RunFacts, TrialRow, VerdictRow
from aclnn_cts.reports.model.acceptance_rows import FindingCard
from aclnn_cts.reports.model.collect import returned_word
from aclnn_cts.speclang.load import SHARED_FILES, Specs, load_spec_file
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import FactSource, is_software, ran_on, version_of
from aclnn_cts.store.run_directory import RunDirectory, read_document, read_run_file
from aclnn_cts.store.run_verdict import insufficiency_of_run, percent


def directories(paths: Sequence[Path]) -> list[RunDirectory]:
    """The runs at these paths; UsageError for what is none, and for one that stands twice."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if (resolved := path.resolve()) in seen:
            raise UsageError(f"{path}: the same run as {seen[resolved]}; give each run once")
        seen[resolved] = path
    return [RunDirectory(path) for path in paths]


def specs_of_runs(runs: Sequence[RunDirectory], shipped: Specs) -> dict[str, Spec]:
    """The specs as the runs used them, by operator; UsageError where two runs used different editions of one."""
    found: dict[str, Spec] = {}
    first: dict[str, Path] = {}
    for run in runs:
        for path in run.specs():
            if path.suffix != ".yaml" or path.stem in SHARED_FILES:
                continue
            digest = hashlib.sha256(read_run_file(path, limit=YAML_BYTES)).hexdigest()
            spec = shipped.find(path.stem) if path.stem in shipped.names else None
            if spec is None or spec.sha256 != digest:
                spec = load_spec_file(path)
            before = found.setdefault(spec.operator, spec)
            first.setdefault(spec.operator, path)
            if before.sha256 != digest:
                raise UsageError(
                    f"{path}: another edition of the spec of {spec.operator} than {first[spec.operator]}; report runs "
                    "of different editions apart, or give one as --baseline"
                )
    return found


def run_facts(run: RunDirectory, *, statuses: bool | None) -> RunFacts:
    """One run, from its manifest and its summary."""
    manifest, summary = run.manifest, run.summary()
    seconds, interrupted = run_end(run)
    conclusion = summary.conclusion
    return RunFacts(
        name=run.path.resolve().name,
        path=run.path.resolve(),
        manifest=manifest,
        ran_on=ran_on(manifest),
        ran_on_zh=ran_on(manifest, "zh"),
        version=version_of(manifest),
        software=is_software(manifest),
        target=msgspec.to_builtins(manifest.target),
        seconds=seconds,
        finished=run.finished,
        interrupted=interrupted,
        conclusion=conclusion,
        insufficient=insufficient_run(run),
        operators=tuple(
            VerdictRow(operator=name, found=found, percent=percent(found.share), ends=summary.operator(name).total)
            for name, found in conclusion.operators.items()
        ),
        ends=summary.total,
        discrepancies=summary.discrepancies(),
        violations=tuple(summary.violations),
        problems=tuple(summary.problems),
        notes={note.text: note for note in (*summary.notes, *summary.holes())},
        environment=tuple(
            (name, "" if fact.value in (None, FactSource.UNKNOWN) else str(fact.value), fact.known)
            for name, fact in sorted(manifest.environment.items())
        ),
        environment_zh={name: fact.zh for name, fact in manifest.environment.items() if fact.zh},
        statuses=statuses,
    )


def insufficient_run(run: RunDirectory) -> tuple[str, ...]:
    """Why acceptance cannot rest on a run, in codes."""
    seconds, interrupted = run_end(run)
    finished = seconds is not None and not interrupted
    return tuple(
        item.value
        for item in insufficiency_of_run(run.summary().terms, profile=run.manifest.profile, finished=finished)
    )


def run_end(run: RunDirectory) -> tuple[float | None, bool]:
    """How long a run took, None where it has not finished; and whether it was interrupted."""
    if not run.finished:
        return None, False
    path = run.path / "summary.json"
    document: Mapping[str, object] = read_document(path)
    seconds = document.get("seconds")
    return (float(seconds) if isinstance(seconds, (int, float)) else None), bool(document.get("interrupted"))


def evidence_files(run: RunDirectory) -> Iterator[EvidenceFile]:
    """The files of a run directory; recorded outputs, each named by its SHA-256, are one line."""
    name = run.path.resolve().name
    for path, what in (
        (run.path / "manifest.json", "manifest"),
        (run.path / "summary.json", "summary"),
        (run.path / "results.sqlite", "records"),
        *((path, "spec") for path in run.specs()),
        *((path, "waiver") for path in run.waivers()),
        *((path, "failure") for path in run.failures()),
    ):
        if path.is_file():
            yield EvidenceFile(
                run=name,
                path=str(path.relative_to(run.path)),
                bytes=path.stat().st_size,
                sha256=sha256_of(path, expected="a file of a run", error=HarnessError),
                what=what,
            )
    blobs = [path.stat().st_size for path in (run.path / "blobs").glob("*")]
    if blobs:
        yield EvidenceFile(run=name, path=f"blobs/ ({len(blobs)})", bytes=sum(blobs), sha256="", what="blobs")


def trial_rows(
    paths: Sequence[Path], *, result: str | None = None, findings: Iterable[FindingCard] = ()
) -> Iterator[TrialRow]:
    """All trials of the runs, or those with one result, in a stream; `findings` are the cards of the runs' report."""
    cards = {file: card.id for card in findings for file in card.files}
    for run in directories(paths):
        name = run.path.resolve().name
        stand_in = f" ({SOFTWARE_DEVICE})" if is_software(run.manifest) else ""
        verdict = run.summary().verdict.words
        with run.results() as results:
            found = findings_of(results) if cards else ()
            index = FindingIndex(found)
            for record in results.records():
                if result is None or record.verdict.result == result:
                    is_found = bool(found) and record.verdict.result == Result.FAILED
                    card = cards.get((name, found[index.number_of(record)].file), "") if is_found else ""
                    yield _trial_row(name, record, stand_in, card, verdict)


def _trial_row(run: str, record: Record, stand_in: str, finding: str, of_run: str) -> TrialRow:
    verdict, case, fingerprint = record.verdict, record.trial.case, record.fingerprint
    worst = max((deviation.error_ratio for deviation in verdict.deviations), default=0.0)
    return TrialRow(
        run=run,
        trial_id=record.trial_id,
        operator=case.operator,
        product=case.product + stand_in,
        check=record.trial.check,
        kind=case.origin.kind,
        constraint=case.origin.constraint or fingerprint.clause,
        result=verdict.result,
        why=verdict.kind,
        message=verdict.message,
        waiver=record.waiver,
        dtype=fingerprint.dtype,
        mode=verdict.mode or fingerprint.mode,
        output=fingerprint.output,
        status=returned_word(record),
        error_ratio=number_or_word(worst),
        seconds=record.seconds,
        case=json.dumps(case_to_json(case, origin=False)["arguments"], ensure_ascii=False)
        if verdict.result == Result.FAILED
        else "",
        finding=finding,
        verdict=of_run,
    )
