"""`aclnn-cts replay`: recorded trials once more."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.text import Text

from aclnn_cts.cli.options import (
    command,
    edition_option,
    json_option,
    number_of_phases,
    phases_option,
    product_option,
    specs_option,
)
from aclnn_cts.cli.output import begin, console, count, emit, note, show_table, table, wrap
from aclnn_cts.cli.run import adapter_option, case_of, limits_options, read_trials
from aclnn_cts.core.errors import UsageError

if TYPE_CHECKING:
    from aclnn_cts.core.case import Case
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.core.verdict import Record, Verdict
    from aclnn_cts.runs.run import RunOptions
    from aclnn_cts.speclang.load import Specs
    from aclnn_cts.store.summary import Summary
    from aclnn_cts.triage.replay_status import Answered, Recorded


@command(example="aclnn-cts replay runs/night --adapter cann")
@click.argument("source", metavar="FILE|DIR", type=click.Path(path_type=Path))
@adapter_option
@click.option(
    "-v", "--verbose", is_flag=True, help="Show each trial in full: case, rules, outcome, worst elements, tolerances."
)
@phases_option(default=None, text="How many phases are called; default: as many as the trials say.")
@json_option
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
    out: Path | None,
    folders: tuple[Path, ...],
    edition: str,
) -> int:
    """Run the trials of a case or trial file again, or all findings of a run, and show whether each still fails."""
    begin(f"{source} on {adapter}")
    from aclnn_cts.cli.screen import show_end
    from aclnn_cts.core.trial import Trial
    from aclnn_cts.execution.measuring import Measuring, chosen_tolerances
    from aclnn_cts.execution.settings import BenchSettings
    from aclnn_cts.findings.waivers.file import read_waivers, shipped_waivers
    from aclnn_cts.runs.run import RunOptions
    from aclnn_cts.speclang.load import load_specs

    measuring = Measuring(gate=chosen_tolerances(tolerances), always=verbose)
    if source.is_dir() and not edition:
        edition = _edition_of(source)
    specs = load_specs(folders, edition=edition)
    files = _files(source)
    trials = read_trials(files, specs, regular=source.is_dir())
    of_one = len(trials) == 1 and isinstance(trials[0], Trial)
    findings = _Findings.of(source, files, trials) if source.is_dir() or of_one else None
    cases = [case_of(item) for item in trials]
    products = sorted({case.product for case in cases})
    if product is not None and products != [product]:
        raise UsageError(f"--product {product}: {source} holds cases of {', '.join(products)}; leave it out")
    if len(products) != 1:
        raise UsageError(f"{source}: cases of {', '.join(products) or 'no product'}; replay takes those of one product")
    names = {case.operator for case in cases}
    scratch = contextlib.ExitStack()
    path = out if out is not None else Path(scratch.enter_context(_folder()), "run")
    options = RunOptions(
        command="replay",
        arguments=tuple(sys.argv[2:]),
        specs=specs,
        operators=tuple(spec for spec in specs.values() if spec.operator in names),
        settings=BenchSettings(
            adapter=adapter,
            target=cases[0].target,
            spec_folders=folders,
            edition=edition,
            max_bytes=max_bytes,
            phases=number_of_phases(phases, cases),
            call_seconds=call_seconds,
            strict_limits=strict_limits,
            unsafe=unsafe,
            measuring=measuring,
        ),
        out=path,
        trials=findings.rounds if findings is not None else trials,
        sentinels=False,
        pins=False,
        waivers=read_waivers([*shipped_waivers(), *waivers]),
    )
    with scratch:
        summary = _run(options, kept=out is not None)
        out_console = console(errors=as_json)
        if verbose:
            _tell(out_console, path, specs)
        if findings is None:
            if as_json:
                _emit_records(path)
            show_end(out_console, summary, path, specs, kept=out is not None)
        else:
            _show_answers(out_console, options, summary, findings.answers(path), kept=out is not None, as_json=as_json)
    return summary.exit_code


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


def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where a replay is kept that nobody asked to keep."""
    return tempfile.TemporaryDirectory(prefix="aclnn-cts-replay-")


def _edition_of(run: Path) -> str:
    """That of a run whose trials are made again; none for another folder with trial files."""
    from aclnn_cts.store.run_directory import MANIFEST, RunDirectory

    return RunDirectory(run).manifest.edition if (run / MANIFEST).exists() else ""


def _files(source: Path) -> tuple[Path, ...]:
    if not source.is_dir():
        return (source,)
    from aclnn_cts.triage.replay_status import failures_in, stood_for

    apart = stood_for(source)
    files = tuple(file for file in failures_in(source) if file.name not in apart)
    if apart:
        note(f"{count(len(apart), 'trial')} not made: alone they conform, and others that are made stand for them")
    if not files:
        raise UsageError(f"{source}: holds no findings to replay; give a run with some, or a case or trial file")
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """The findings of a directory, or of one trial file, which are answered for one by one."""

    trials: tuple[Trial | Case, ...]
    known: Sequence[tuple[Path, Trial]]
    recorded: Mapping[str, Recorded]

    @staticmethod
    def of(source: Path, files: tuple[Path, ...], trials: tuple[Trial | Case, ...]) -> _Findings:
        from aclnn_cts.core.trial import Trial
        from aclnn_cts.triage.replay_status import recorded_findings

        known = [(file, item) for file, item in zip(files, trials, strict=True) if isinstance(item, Trial)]
        recorded = recorded_findings(
            source if source.is_dir() else source.absolute().parent, {file.name: trial for file, trial in known}
        )
        return _Findings(trials=trials, known=known, recorded=recorded)

    @property
    def rounds(self) -> tuple[Trial | Case, ...]:
        """What is to be run, in this order."""
        from aclnn_cts.triage.replay_status import repeats

        return (*self.trials, *repeats(self.known, self.recorded))

    def answers(self, path: Path) -> list[Answered]:
        """What became of each in the run at `path`."""
        from aclnn_cts.store.run_directory import RunDirectory
        from aclnn_cts.triage.replay_status import answer

        wanted: dict[str, list[Record]] = {trial.id: [] for _, trial in self.known}
        with RunDirectory(path).results() as results:
            for record in results.records():
                if record.trial_id in wanted:
                    wanted[record.trial_id].append(record)
        return answer(self.known, self.recorded, wanted)


def _show_answers(
    out: Console, options: RunOptions, summary: Summary, answers: Sequence[Answered], *, kept: bool, as_json: bool
) -> None:
    """The end of a run, with what became of each finding in the place of its findings."""
    from aclnn_cts.cli.screen import show_errors, show_result, show_verdict
    from aclnn_cts.store.run_directory import RunDirectory

    show_verdict(out, summary, RunDirectory(options.out))
    _show(out, answers, as_json=as_json)
    show_errors(out, summary)
    if command := _next(options, answers):
        out.print(Text(f"Next: {command}"), soft_wrap=True)
    show_result(out, summary, options.out if kept else None)


def _next(options: RunOptions, answers: Sequence[Answered]) -> str:
    """The command to type next: the first finding that still fails in full, then as programs; or the operators' run."""
    from aclnn_cts.findings.explain import replay_command
    from aclnn_cts.triage.replay_status import Answer

    settings = options.settings
    folders = "".join(f" --specs {shlex.quote(str(folder))}" for folder in settings.spec_folders)
    for entry in answers:
        if entry.failures and (entry.record is None or not entry.record.waiver):
            if settings.measuring.always:  # -v: it has been shown in full
                return f"aclnn-cts repro {shlex.quote(str(entry.file))} --language cpp,python -o programs{folders}"
            return replay_command(
                entry.file,
                settings.adapter,
                spec_folders=settings.spec_folders,
                edition=settings.edition,
                strict_limits=settings.strict_limits,
            )
    if any(entry.answer != Answer.FIXED for entry in answers):
        return ""
    names = " ".join(spec.stem for spec in options.operators)
    edition = f" --edition {shlex.quote(settings.edition)}" if settings.edition else ""
    return (
        f"aclnn-cts run {names} --adapter {shlex.quote(settings.adapter)} --product {settings.target.product}"
        f"{folders}{edition}"
    )


def _show(out: Console, answers: Sequence[Answered], *, as_json: bool) -> None:
    """What became of each finding."""
    if as_json:
        for entry in answers:
            emit(_words(entry))
        return
    from aclnn_cts.triage.replay_status import Answer, by_finding

    styles = {Answer.FIXED: "green", Answer.SAME: "red", Answer.OTHER: "red", Answer.FAILS: "red"}
    for entry in answers:
        waived = entry.record is not None and entry.record.waiver
        word = f"{entry.answer} (waived)" if waived else entry.answer
        out.print(Text(word, style=styles.get(entry.answer, "")) + Text(f": {entry.file.stem}"), soft_wrap=True)
        if entry.message:
            wrap(out, entry.message, indent=2)
    if len(answers) > 1:
        counts = by_finding(answers)
        said = ", ".join(f"{number} {word}" for word, number in counts.items())
        files = f" ({count(len(answers), 'trial file')})" if counts.total() < len(answers) else ""
        wrap(out, f"{count(counts.total(), 'finding')}{files}: {said}")
    out.print()


def _words(entry: Answered) -> dict[str, object]:
    before, record = entry.before, entry.record
    return {
        "finding": entry.file.stem,
        "file": str(entry.file),
        "answer": entry.answer,
        "because": entry.message,
        "group": before.finding if before is not None else None,
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


def _tell(out: Console, path: Path, specs: Specs) -> None:
    from aclnn_cts.findings.explain import explain
    from aclnn_cts.store.run_directory import RunDirectory

    with RunDirectory(path).results() as results:
        for record in results.records():
            for line in explain(record, specs[record.trial.case.operator]):
                wrap(out, line.lstrip(), indent=len(line) - len(line.lstrip()))
            if record.verdict.tolerances:
                out.print()
                _show_tolerances(out, record.verdict)
            out.print()


def _show_tolerances(out: Console, verdict: Verdict) -> None:
    """The derived bound and all tolerances, each with what is left of its limit."""
    from aclnn_cts.core.verdict import ToleranceVerdict

    made = table("tolerance", "output", "says", "headroom", "because")
    made.columns[3].justify = "right"
    for number, deviation in enumerate(verdict.deviations):
        word = ToleranceVerdict.FAIL if deviation.beyond else ToleranceVerdict.PASS
        text = f"largest error {deviation.share:.3g} of its bound"
        made.add_row("" if number else "derived bound", deviation.output, word, _percent(1.0 - deviation.share), text)
    benchmarks: dict[str, None] = {}
    for name, outputs in verdict.tolerances.items():
        for number, (output, result) in enumerate(outputs.items()):
            judged = result.verdict != ToleranceVerdict.NOT_APPLICABLE
            left = _percent(float(result.headroom)) if judged else "-"
            word = result.verdict if judged else "n/a"
            made.add_row("" if number else name, output, word, left, result.message)
            benchmarks |= {f"{output}: {result.benchmark}": None} if result.benchmark else {}
    show_table(out, made)
    for text in benchmarks:
        wrap(out, f"benchmark of {text}")


def _percent(headroom: float) -> str:
    """Of the limit; far beyond it the number says no more than that."""
    return f"{headroom:.0%}" if headroom >= -99.0 else "< -9900%"
