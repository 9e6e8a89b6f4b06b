"""Every finding of a run made smaller, and kept with the run: where a campaign keeps its own, for reports to show."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.findings import findings_of, meets_condition
from aclnn_cts.findings.fingerprint import is_milder
from aclnn_cts.repro.keep import keep_programs
from aclnn_cts.repro.write import Programs, languages_of
from aclnn_cts.sandbox.interrupts import annotate_interrupt
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.case_files import trial_text
from aclnn_cts.store.output_file import write_atomically
from aclnn_cts.store.programs import PROGRAMS_STATE
from aclnn_cts.store.run_directory import FAILURES, FINDINGS, RunDirectory
from aclnn_cts.store.store import ResultStore
from aclnn_cts.triage.shrink import EXECUTIONS, ShrinkResult
from aclnn_cts.triage.shrink import shrink as shrink_trial
from aclnn_cts.trials.trial_runner import TrialRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkFinding:
    """What became of one finding."""

    finding: Finding
    tried: Trial
    """What shrinking began with: the smallest trial that was recorded, or what was stored before."""
    shrunk: ShrinkResult | None
    """None where the trial does not fail so any more, or was shrunk already."""
    record: Record | None
    """Of the first execution; None where it was shrunk already."""

    @property
    def fails(self) -> bool:
        """Whether the finding's trial fails, now or when it was shrunk."""
        return self.shrunk is not None or self.record is None


def size_of(trial: Trial) -> int:
    """Elements of all tensors."""
    return sum(tensor.numel for _, tensor in trial.case.tensors())


def shrink_run(
    run: RunDirectory, *, specs: Specs, settings: RunnerSettings, executions: int = EXECUTIONS, again: bool = False
) -> Iterator[ShrunkFinding]:
    """Shrink each finding of a finished run; it is stored when it is yielded, with the record of its smallest trial.

    - `executions`: at most so many a finding.
    - `again`: also findings that were shrunk before.

    Raises UsageError where the run has not finished, or used another edition of a spec than is here.
    """
    if not run.finished:
        raise UsageError(f"{run.path}: the run has not finished; shrink a trial file of it, or a run that has")
    with run.results() as results:
        findings = list(findings_of(results))
    for finding in findings:
        _check_edition(run, specs, finding.key.operator)
    with (
        settings.open_host(specs) as host,
        settings.open_benchmark(specs) or contextlib.nullcontext() as benchmark,
        ResultStore(run.path / "results.sqlite", resume=True) as store,
    ):
        runner = TrialRunner(
            specs=specs, host=host, settings=settings, is_waived=lambda _record: True, benchmark=benchmark
        )
        programs = Programs(specs=specs, spec_folders=settings.spec_folders)
        try:
            for number, finding in enumerate(findings):
                if finding.trial is None:
                    continue
                if finding.shrunk and not again:
                    yield ShrunkFinding(finding=finding, tried=finding.trial, shrunk=None, record=None)
                    continue
                made = _shrink_finding(runner, finding, finding.trial, executions)
                if made.shrunk is not None:
                    findings[number] = made.finding
                    _keep(store, run, findings, made.finding, programs)
                yield made
        except KeyboardInterrupt as error:
            raise annotate_interrupt(error, f"what was shrunk is kept in {run.path}") from None
        finally:
            store.finish()


def _check_edition(run: RunDirectory, specs: Specs, operator: str) -> None:
    spec = specs.get(operator)
    if spec is None:
        raise UsageError(f"{run.path}: findings of {operator}, of which no spec is here; name its folder with --specs")
    used = run.manifest.specs.get(f"{spec.stem}.yaml")
    if used is not None and used != spec.sha256:
        raise UsageError(
            f"{run.path}: was made with another edition of the spec of {operator} than the one here; run again, or "
            "shrink a trial file"
        )


def _shrink_finding(runner: TrialRunner, finding: Finding, trial: Trial, executions: int) -> ShrunkFinding:
    keys = {finding.key, *(item.key for item in finding.fingerprints)}

    def execute(tried: Trial) -> Record:
        return runner.run_one(tried, fresh=bool(tried.after))

    def same(record: Record) -> bool:
        """Whether a record fails like this."""
        return (
            record.verdict.result == Result.FAILED
            and record.key in keys
            and meets_condition(finding, record.trial.case)
        )

    first = execute(trial)
    if not same(first):
        return ShrunkFinding(finding=finding, tried=trial, shrunk=None, record=first)
    found = shrink_trial(
        trial,
        sampler=runner.sampler(runner.specs[trial.case.operator]),
        execute=execute,
        same=lambda record: not is_milder(record.verdict.kind, than=first.verdict.kind) and same(record),
        executions=executions,
    )
    record = found.record or first
    changed = msgspec.structs.replace(
        finding,
        trial=found.trial,
        record=record,
        message=record.verdict.message,
        executions=found.executions,
        shrunk=True,
        complete=found.complete,
    )
    return ShrunkFinding(finding=changed, tried=trial, shrunk=found, record=first)


def _keep(
    store: ResultStore, run: RunDirectory, findings: Sequence[Finding], changed: Finding, programs: Programs
) -> None:
    """Store a finding, and write its trial file with the programs that show it."""
    assert changed.trial is not None  # noqa: S101 - it was made smaller
    file = run.path / FAILURES / changed.file
    write_atomically(file, trial_text(changed.trial))
    kept = keep_programs(
        file,
        changed.trial,
        key=changed.key,
        record=changed.record,
        programs=programs,
        languages=languages_of(run.manifest),
    )
    store.append((), state={FINDINGS: tuple(findings), PROGRAMS_STATE + changed.file: kept})
