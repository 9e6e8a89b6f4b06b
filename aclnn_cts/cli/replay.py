"""`aclnn-cts replay`: recorded trials once more."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts.cli.options import (
    command,
    edition_option,
    json_option,
    number_of_phases,
    phases_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import begin, console, emit
from aclnn_cts.cli.run import adapter_option, benchmark_option, case_of, limits_options, read_trials
from aclnn_cts.core.errors import UsageError

if TYPE_CHECKING:
    from aclnn_cts.core.case import Case
    from aclnn_cts.core.finding import Finding
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.core.verdict import Record
    from aclnn_cts.runs.run import RunOptions
    from aclnn_cts.store.summary import Summary
    from aclnn_cts.triage.replay_status import FindingReplay


@command(example="aclnn-cts replay runs/night --adapter cann")
@click.argument("source", metavar="FILE|DIR", type=click.Path(path_type=Path))
@adapter_option()
@click.option(
    "-v", "--verbose", is_flag=True, help="Show each trial in full: case, rules, outcome, worst elements, tolerances."
)
@phases_option(default=None, text="How many phases are called; default: as many as the trials say.")
@json_option
@benchmark_option
@limits_options
@product_option
@specs_option
@edition_option
def replay(  # noqa: PLR0913 - one parameter an option
    *,
    source: Path,
    adapter: str,
    verbose: bool,
    as_json: bool,
    product: str | None,
    phases: str | None,
    max_bytes: int,
    call_seconds: int | None,
    strict_limits: bool,
    unsafe: bool,
    waivers: tuple[Path, ...],
    tolerances: tuple[str, ...],
    benchmark: str,
    out: Path | None,
    folders: tuple[Path, ...],
    edition: str,
) -> int:
    """Run the trials of a case or trial file again, or all findings of a run, and show whether each still fails."""
    begin(f"{source} on {adapter}")
    from aclnn_cts.cli.replay_screen import show_answers, show_records
    from aclnn_cts.cli.screen import show_end
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
    from aclnn_cts.execution.settings import RunnerSettings
    from aclnn_cts.findings.waivers.file import waivers_beside_shipped
    from aclnn_cts.runs.run import RunOptions
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.triage.replay_status import repeat_rounds, replay_findings
    from aclnn_cts.triage.run_settings import run_of, with_settings_of_run

    run = run_of(source)
    if run is not None and not edition:
        edition = run.manifest.edition
    # Of a run that recorded a benchmark, the tolerances that compare with it are the run's.
    chosen = chosen_tolerances(tolerances, benchmark="" if run is not None else benchmark)
    specs = load_specs(folders, edition=edition)
    files = _files(source)
    trials = read_trials(files, specs, regular=source.is_dir())
    # The findings of a directory, or of one trial file, are answered for one by one.
    is_of_findings = source.is_dir() or (len(trials) == 1 and isinstance(trials[0], Trial))
    known, recorded = _findings(source, files, trials) if is_of_findings else ([], {})
    cases = [case_of(item) for item in trials]
    _check_product(cases, product, source)
    names = {case.operator for case in cases}
    scratch = contextlib.ExitStack()
    path = out
    if path is None:
        from aclnn_cts.store.scratch import scratch_folder

        path = Path(scratch.enter_context(scratch_folder(Path(tempfile.gettempdir()))), "run")
    settings = RunnerSettings(
        adapter=adapter,
        target=cases[0].target,
        spec_folders=folders,
        edition=edition,
        max_bytes=max_bytes,
        phases=number_of_phases(phases, cases),
        call_seconds=call_seconds,
        strict_limits=strict_limits,
        unsafe=unsafe,
        measuring=Measuring(gate=chosen, always=verbose),
        benchmark=benchmark,
    )
    if run is not None:
        settings = replace(with_settings_of_run(settings, run), phases=settings.phases)
    options = RunOptions(
        command="replay",
        arguments=tuple(sys.argv[2:]),
        specs=specs,
        operators=tuple(specs[name] for name in specs if name in names),
        settings=settings,
        out=path,
        trials=(*trials, *repeat_rounds(known, recorded)),
        sentinels=False,
        pins=False,
        waivers=waivers_beside_shipped(waivers, adapter=settings.adapter),
    )
    with scratch:
        summary = _run(options, kept=out is not None)
        out_console = console(errors=as_json)
        if verbose:
            show_records(out_console, path, specs)
        if is_of_findings:
            answers = replay_findings(known, recorded, _records(path, known))
            if as_json:
                for entry in answers:
                    emit(_words(entry))
            stems = [spec.stem for spec in options.operators]
            show_answers(
                out_console, summary, path, options.settings, stems, answers, kept=out is not None, as_json=as_json
            )
        else:
            if as_json:
                _emit_records(path)
            show_end(out_console, summary, path, specs, kept=out is not None)
    return summary.exit_code


def _findings(
    source: Path, files: Sequence[Path], trials: Sequence[Case | Trial]
) -> tuple[list[tuple[Path, Trial]], Mapping[str, Finding]]:
    """Each file with its trial, and how it failed before."""
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.triage.replay_status import recorded_findings

    known = [(file, item) for file, item in zip(files, trials, strict=True) if isinstance(item, Trial)]
    return known, recorded_findings(source if source.is_dir() else source.absolute().parent)


def _check_product(cases: Sequence[Case], product: str | None, source: Path) -> None:
    """UsageError where the cases are not of one product, the one that was asked for."""
    products = sorted({case.product for case in cases})
    if product is not None and products != [product]:
        raise UsageError(f"--product {product}: {source} holds cases of {', '.join(products)}; leave it out")
    if len(products) != 1:
        raise UsageError(f"{source}: cases of {', '.join(products) or 'no product'}; replay takes those of one product")


def _run(options: RunOptions, *, kept: bool) -> Summary:
    from aclnn_cts.cli.screen import Screen
    from aclnn_cts.runs.run import run as run_engine

    screen = Screen()
    try:
        return run_engine(options, [screen])
    except KeyboardInterrupt:
        if kept:
            raise
        raise KeyboardInterrupt("nothing is kept without -o") from None
    finally:
        screen.close()


def _files(source: Path) -> tuple[Path, ...]:
    if not source.is_dir():
        return (source,)
    from aclnn_cts.triage.replay_status import failures_in

    files = failures_in(source)
    if not files:
        raise UsageError(f"{source}: holds no findings to replay; give a run with some, or a case or trial file")
    return files


def _records(path: Path, known: Sequence[tuple[Path, Trial]]) -> dict[str, list[Record]]:
    """What the run at `path` made of known trials, by their ids."""
    from aclnn_cts.store.run_directory import RunDirectory

    wanted: dict[str, list[Record]] = {trial.id: [] for _, trial in known}
    with RunDirectory(path).results() as results:
        for record in results.records():
            if record.trial_id in wanted:
                wanted[record.trial_id].append(record)
    return wanted


def _words(entry: FindingReplay) -> dict[str, object]:
    before, record = entry.before, entry.record
    return {
        "finding": entry.file.stem,
        "file": str(entry.file),
        "answer": entry.answer,
        "because": entry.message,
        "runs": entry.runs,
        "failures": entry.failures,
        "waiver": record.waiver if record is not None else "",
        "confirmed": before.confirmed if before is not None else "",
        "alone": list(before.alone) if before is not None else [0, 0],
        "before": msgspec.to_builtins(before.key) if before is not None else None,
        "now": msgspec.to_builtins(record.key) if record is not None and entry.failures else None,
    }


def _emit_records(path: Path) -> None:
    """Each trial of a file and what came of it."""
    from aclnn_cts.store.run_directory import RunDirectory

    with RunDirectory(path).results() as results:
        for record in results.records():
            verdict = record.verdict
            emit(
                {
                    "trial": record.trial_id,
                    "operator": record.trial.case.operator,
                    "check": record.trial.check,
                    "result": verdict.result,
                    "kind": verdict.kind,
                    "message": verdict.message,
                    "waiver": record.waiver,
                }
            )
