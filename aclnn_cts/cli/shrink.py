"""What is made of one failing trial: `aclnn-cts shrink`, `repro` and `waive add`."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from aclnn_cts.cli.options import (
    byte_size,
    command,
    edition_option,
    number_of_phases,
    output_file,
    output_option,
    phases_option,
    specs_option,
)
from aclnn_cts.cli.output import begin, console, count, join_words, note, wrap
from aclnn_cts.cli.run import adapter_option, benchmark_option, call_timeout_option, read_trials, strict_limits_option
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.faults import fault_name
from aclnn_cts.core.printable import quote
from aclnn_cts.sandbox.limits import DEFAULT_MAX_BYTES
from aclnn_cts.store.output_file import STANDARD_OUTPUT, begins_with

if TYPE_CHECKING:
    from aclnn_cts.core.case import Case
    from aclnn_cts.core.fingerprint import Fingerprint
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.execution.settings import RunnerSettings


_SOURCE = "shrunk from "
_SHRUNK = begins_with(rb'\{\n  "format": "aclnn-cts/trial/.*\n    +"source": "' + _SOURCE.encode())


@command(example="aclnn-cts shrink runs/night/failures/0a1b2c3d.json --adapter cann -o small.json")
@click.argument("source", metavar="FILE|RUN", type=click.Path(path_type=Path))
@adapter_option("As in `run`. For a run: needed where its adapter is your own code or has options.", required=False)
@output_option(text="For a file: where the smallest trial is written. A run keeps its own.")
@click.option(
    "--executions",
    default=200,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of executions.",
)
@click.option(
    "--max-bytes",
    callback=byte_size(),
    metavar="SIZE",
    help="Maximum size of one call's arguments, such as 64MiB; default: 1GiB. A number alone is in bytes.",
)
@phases_option(default=None, text="For a file: how many phases are called; default: as many as the trial says.")
@call_timeout_option
@strict_limits_option
@click.option("--unsafe", is_flag=True, help="Also make calls that must never reach a device (software devices only).")
@benchmark_option
@click.option("--reshrink", "again", is_flag=True, help="For a run: also shrink findings that were shrunk before.")
@specs_option
@edition_option
def shrink(  # noqa: PLR0913 - one parameter an option
    *,
    source: Path,
    adapter: str | None,
    out: Path | None,
    executions: int,
    max_bytes: int | None,
    phases: str | None,
    call_seconds: int | None,
    strict_limits: bool,
    unsafe: bool,
    benchmark: str,
    again: bool,
    folders: tuple[Path, ...],
    edition: str,
) -> int:
    """Shrink a failing trial, or every finding of a run. The exit code is 1 where one still fails, else 0.

    Of a FILE the smallest trial goes to --output. Those of a RUN are kept with it: `report` shows them from then on,
    and `replay RUN` makes them.
    """
    begin(f"shrinking {source}")
    if source.is_dir():
        for word, given in (
            ("-o", out),
            ("--max-bytes", max_bytes),
            ("--phases", phases),
            ("--call-timeout", call_seconds),
            ("--strict-limits", strict_limits),
            ("--unsafe", unsafe),
            ("--edition", edition),
        ):
            if given:
                raise UsageError(
                    f"{word}: {source} is a run, which has its own; leave {word} out, or name a trial file"
                )
        return _run(source, adapter=adapter, benchmark=benchmark, executions=executions, again=again, folders=folders)
    if not source.exists():
        raise UsageError(f"{source}: no such file or folder; name a trial file or the directory of a run")
    if adapter is None or out is None:
        word = "--adapter" if adapter is None else "-o"
        raise UsageError(f"{source}: a file is shrunk with --adapter A and -o FILE; {word} is missing")
    if again:
        raise UsageError("--reshrink: is for a run; leave it out")
    from aclnn_cts.core.target import Target
    from aclnn_cts.execution.settings import RunnerSettings
    from aclnn_cts.triage.run_settings import run_of, with_settings_of_run

    settings = RunnerSettings(
        adapter=adapter,
        target=Target(),
        spec_folders=folders,
        edition=edition,
        max_bytes=max_bytes if max_bytes is not None else DEFAULT_MAX_BYTES,
        call_seconds=call_seconds,
        strict_limits=strict_limits,
        unsafe=unsafe,
        benchmark=benchmark,
    )
    run = run_of(source)
    if run is not None:
        settings = with_settings_of_run(settings, run)
    elif benchmark:
        raise UsageError(f"--benchmark {benchmark}: {source} lies in no run, whose criteria compare with it")
    return _file(source, out=out, executions=executions, phases=phases, settings=settings)


def _run(
    path: Path, *, adapter: str | None, benchmark: str, executions: int, again: bool, folders: tuple[Path, ...]
) -> int:
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.store.run_directory import RunDirectory
    from aclnn_cts.triage.run_settings import settings_of
    from aclnn_cts.triage.shrink_run import shrink_run, size_of

    run = RunDirectory(path)
    settings = settings_of(run, adapter=adapter, benchmark=benchmark, spec_folders=folders)
    screen = console()
    failing = {False: 0, True: 0}
    smaller = 0
    for made in shrink_run(
        run,
        specs=load_specs(settings.spec_folders, edition=settings.edition),
        settings=settings,
        executions=executions,
        again=again,
    ):
        failing[bool(made.finding.waiver)] += made.fails
        assert made.finding.trial is not None  # noqa: S101 - what was looked into has one
        if made.shrunk is not None:
            now = size_of(made.finding.trial)
            smaller += made.finding.trial.id != made.tried.id
            rest = "" if made.shrunk.complete else " (the limit: smaller ones may be left)"
            executed = count(made.shrunk.executions, "execution")
            said = f"{count(size_of(made.tried), 'element')} before, {now} now, {executed}{rest}"
        elif made.record is None:
            said = f"shrunk before, {count(size_of(made.tried), 'element')}; --reshrink does it anew"
        else:
            verdict = made.record.verdict
            ended = f"{verdict.result} ({fault_name(verdict.kind)})" if verdict.kind else verdict.result
            said = f"does not fail so by itself: {ended}; left as it was recorded"
        wrap(screen, f"{made.finding.file.removesuffix('.json')}: {said}")
    waived = f" and {count(failing[True], 'waived finding')}" if failing[True] else ""
    wrap(
        screen,
        f"{path}: {count(failing[False], 'finding')}{waived} still failing; {smaller} made smaller;"
        " `report` shows them so",
    )
    return 1 if any(failing.values()) else 0


def _file(
    file: Path,
    *,
    out: Path,
    executions: int,
    phases: str | None,
    settings: RunnerSettings,
) -> int:
    """`settings`: but for the target and the phases, which are the trial's."""
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.core.verdict import Record, Result
    from aclnn_cts.findings.fingerprint import is_milder
    from aclnn_cts.sandbox.interrupts import annotate_interrupt
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.store.case_files import trial_text
    from aclnn_cts.triage.shrink import ShrinkInterrupted
    from aclnn_cts.triage.shrink import shrink as shrink_trial
    from aclnn_cts.triage.shrink_run import size_of
    from aclnn_cts.trials.checks.registry import as_trial
    from aclnn_cts.trials.trial_runner import TrialRunner

    output = output_file(out, written_by_us=_SHRUNK)
    specs = load_specs(settings.spec_folders, edition=settings.edition)
    entries = read_trials((file,), specs)
    if len(entries) != 1:
        raise UsageError(f"{file}: {len(entries)} trials; shrinking takes one: give a file with one")
    entry = entries[0]
    case = entry.case if isinstance(entry, Trial) else entry
    spec = specs[case.operator]
    trial = as_trial(spec, entry)
    settings = replace(settings, target=case.target, phases=number_of_phases(phases, [case]))
    screen = console(errors=output.is_standard_output)
    with settings.open_host(specs) as host, settings.open_benchmark(specs) or contextlib.nullcontext() as benchmark:
        runner = TrialRunner(
            specs=specs, host=host, settings=settings, is_waived=lambda _record: True, benchmark=benchmark
        )

        def execute(tried: Trial) -> Record:
            return runner.run_one(tried, fresh=bool(tried.after))

        first = execute(trial)
        if first.verdict.result == Result.PASSED:
            wrap(screen, f"{file}: the trial conforms, so there is nothing to shrink; {output} is not written")
            return 0
        if first.verdict.result != Result.FAILED:
            raise HarnessError(
                f"{file}: {first.verdict.result} ({fault_name(first.verdict.kind)}): {first.verdict.message}"
            )
        stopped: KeyboardInterrupt | None = None
        try:
            found = shrink_trial(
                trial,
                sampler=runner.sampler(spec),
                execute=execute,
                same=lambda record: (
                    record.verdict.result == Result.FAILED
                    and record.key == first.key
                    and not is_milder(record.verdict.kind, than=first.verdict.kind)
                ),
                executions=executions,
            )
        except ShrinkInterrupted as error:
            found, stopped = error.shrunk, error
    if stopped is not None and found.record is None:
        raise annotate_interrupt(stopped, f"nothing smaller was found yet; {output} is not written")
    output.write(trial_text(_marked(found.trial, file)))
    record = found.record or first
    size = f"{size_of(trial)} elements before, {size_of(found.trial)} now"
    if stopped is not None:
        raise annotate_interrupt(stopped, f"the smallest trial found so far is kept in {output}: {size}")
    wrap(screen, f"{fault_name(record.verdict.kind)}: {record.verdict.message}")
    rest = "" if found.complete else "; the limit was reached before everything was tried (--executions)"
    wrap(screen, f"{output}: {size}, after {count(found.executions, 'execution')}{rest}")
    return 1


def _marked(trial: Trial, file: Path) -> Trial:
    """The trial, whose origin says what it was shrunk from."""
    before = trial.case.origin.source or str(file)
    source = before if before.startswith(_SOURCE) else f"{_SOURCE}{before}"
    origin = msgspec.structs.replace(trial.case.origin, source=source, corners=())
    return msgspec.structs.replace(trial, case=msgspec.structs.replace(trial.case, origin=origin))


@command(example="aclnn-cts repro runs/night/failures/0a1b2c3d.json --language cpp,python -o programs")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--language",
    default="cpp",
    show_default=True,
    metavar="NAME,...",
    help="cpp or python for a library; numpy or torch for a function of yours; several with commas.",
)
@output_option(text="The program, or a folder for several.", required=True, metavar="OUT")
@click.option("--call", type=click.IntRange(min=1), metavar="N", help="Only this one of several calls.")
@specs_option
def repro(*, file: Path, language: str, out: Path, call: int | None, folders: tuple[Path, ...]) -> None:
    """Write a standalone program that reproduces the case of FILE: it exits with 0 if it conforms, 1 if not.

    A trial with several calls is made whole, in its call mode: two streams, a repeatable executor, many refused calls.
    The program judges each call, and compares those that must be equal.
    """
    from aclnn_cts.repro.write import WRITTEN_BY_US, Programs
    from aclnn_cts.speclang.load import load_specs
    from aclnn_cts.store.programs import SUFFIXES

    languages = tuple(dict.fromkeys(word.strip() for word in language.split(",")))
    for word in languages:
        if word not in SUFFIXES:
            raise UsageError(f"--language: {quote(word)}; expected any of {', '.join(SUFFIXES)}")
    if len(languages) > 1 and out == STANDARD_OUTPUT:
        raise UsageError(f"-o {out}: standard output takes one program, not {len(languages)}; name a folder")
    outputs = {
        word: output_file(
            out / f"repro{SUFFIXES[word]}" if len(languages) > 1 or out.is_dir() else out,
            written_by_us=WRITTEN_BY_US[word],
            make_folder=True,
        )
        for word in languages
    }
    specs = load_specs(folders)
    trials = read_trials((file,), specs)
    if len(trials) != 1:
        raise UsageError(f"{file}: {len(trials)} cases; a program shows one: give a file with one")
    programs = Programs(specs=specs, spec_folders=folders)
    fingerprint = _fingerprint(file, trials[0])
    for word, text in programs.texts(trials[0], languages, call=call, fingerprint=fingerprint).items():
        outputs[word].write(text.encode())
        note(f"{outputs[word]}: written; its first lines say how to build and run it")
    for line in programs.program(trials[0], call=call).about:
        note(line)


def _fingerprint(file: Path, item: Trial | Case) -> Fingerprint | None:
    """Of the failure that a run has kept in the file; None of any other file."""
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.store.run_directory import FAILURES
    from aclnn_cts.triage.replay_status import recorded_findings

    folder = file.absolute().parent
    if folder.name != FAILURES or not isinstance(item, Trial):
        return None
    found = recorded_findings(folder).get(file.name)
    return None if found is None else found.key


@command(example="aclnn-cts waive add runs/night/failures/0a1b2c3d.json -o waivers.yaml")
@click.argument("finding", metavar="FINDING", type=click.Path(path_type=Path))
@output_option(
    text="The waiver file (.yaml), with the finding's trial in `cases` beside it; standard output where left out."
)
def add(*, finding: Path, out: Path | None) -> int:
    """Draft a waiver for FINDING, a trial file in a run's folder `failures`.

    Scope and pinned case follow from the run. Reason, owner and expiry are left for a person: until they are filled in,
    `run --waivers FILE` refuses the file.
    """
    from aclnn_cts.findings.waivers.draft import UNFILLED_DRAFT, draft_waiver

    output = output_file(out or STANDARD_OUTPUT, written_by_us=UNFILLED_DRAFT, make_folder=True)
    if out is None or output.is_stream:
        draft = draft_waiver(finding, pinned=str(finding.absolute()))
        output.write(draft.text.encode())
    else:
        if out.suffix != ".yaml":
            raise UsageError(f"-o {out}: expected a name that ends in .yaml")
        draft = draft_waiver(finding, pinned="cases/{name}")
        pinned = output_file(
            out.parent / "cases" / draft.case_name,
            written_by_us=lambda file: file.read() == draft.case,
            make_folder=True,
        )
        pinned.write(draft.case)
        output.write(draft.text.encode())
        note(f"{output}: drafted, its pinned case in {pinned}")
    if draft.waived_by:
        note(f"failures of this finding are waived already, by {join_words(draft.waived_by)}")
    note("fill in reason, owner and expiry, and narrow the scope where other cases must not hide behind it")
    return 0
