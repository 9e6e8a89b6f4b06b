"""The end of a replay on a terminal: what became of each finding, and each trial in full."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from aclnn_cts.cli.output import count, show_table, table, wrap
from aclnn_cts.cli.screen import show_errors, show_result, show_run_verdict
from aclnn_cts.core.verdict import ToleranceVerdict, Verdict
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.explain import explain_record, replay_command
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.summary import Summary
from aclnn_cts.triage.replay_status import FindingReplay, ReplayStatus
from aclnn_cts.triage.run_settings import run_of


def show_answers(
    out: Console,
    summary: Summary,
    run: Path,
    settings: RunnerSettings,
    stems: Sequence[str],
    answers: Sequence[FindingReplay],
    *,
    kept: bool,
    as_json: bool,
) -> None:
    """The end of a replay, with what became of each finding in the place of its findings.

    `stems`: of the operators. `kept`: as of `show_end`. `as_json`: the answers are printed as JSON already.
    """
    show_run_verdict(out, summary, RunDirectory(run))
    if not as_json:
        _show_each(out, answers)
    show_errors(out, summary)
    if command := _next_of(settings, stems, answers):
        out.print(Text(f"Next: {command}"), soft_wrap=True)
    show_result(out, summary, run if kept else None)


def _next_of(settings: RunnerSettings, stems: Sequence[str], answers: Sequence[FindingReplay]) -> str:
    """The command to type next: the first finding that still fails in full, then as programs; or the operators' run."""
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
                benchmark=settings.benchmark,
                tolerances=settings.measuring.gate if run_of(entry.file) is None else (),
            )
    if any(entry.answer != ReplayStatus.FIXED for entry in answers):
        return ""
    edition = f" --edition {shlex.quote(settings.edition)}" if settings.edition else ""
    return (
        f"aclnn-cts run {' '.join(stems)} --adapter {shlex.quote(settings.adapter)} --product {settings.target.product}"
        f"{folders}{edition}"
    )


def _show_each(out: Console, answers: Sequence[FindingReplay]) -> None:
    """What became of each finding."""
    styles = {
        ReplayStatus.FIXED: "green",
        ReplayStatus.SAME: "red",
        ReplayStatus.OTHER: "red",
        ReplayStatus.FAILS: "red",
    }
    for entry in answers:
        waived = entry.record is not None and entry.record.waiver
        word = f"{entry.answer} (waived)" if waived else entry.answer
        out.print(Text(word, style=styles.get(entry.answer, "")) + Text(f": {entry.file.stem}"), soft_wrap=True)
        if entry.message:
            wrap(out, entry.message, indent=2)
    if len(answers) > 1:
        counts = Counter(entry.answer for entry in answers)
        said = ", ".join(f"{number} {word}" for word, number in counts.items())
        wrap(out, f"{count(len(answers), 'finding')}: {said}")
    out.print()


def show_records(out: Console, run: Path, specs: Specs) -> None:
    """Every trial of a run in full."""
    with RunDirectory(run).results() as results:
        for record in results.records():
            for line in explain_record(record, specs[record.trial.case.operator]):
                wrap(out, line.lstrip(), indent=len(line) - len(line.lstrip()))
            if record.verdict.tolerances:
                out.print()
                _show_tolerances(out, record.verdict)
            out.print()


def _show_tolerances(out: Console, verdict: Verdict) -> None:
    """The derived bound and all tolerances, each with what is left of its limit."""
    made = table("tolerance", "output", "says", "headroom", "because", right=["headroom"])
    for number, deviation in enumerate(verdict.deviations):
        word = ToleranceVerdict.FAIL if deviation.beyond else ToleranceVerdict.PASS
        text = f"largest error {deviation.error_ratio:.3g} of its bound"
        made.add_row(
            "" if number else "derived bound", deviation.output, word, _headroom(1.0 - deviation.error_ratio), text
        )
    benchmarks: dict[str, None] = {}
    for name, outputs in verdict.tolerances.items():
        for number, (output, result) in enumerate(outputs.items()):
            judged = result.verdict != ToleranceVerdict.NOT_APPLICABLE
            left = _headroom(float(result.headroom)) if judged else "-"
            word = result.verdict if judged else "n/a"
            made.add_row("" if number else name, output, word, left, result.message)
            benchmarks |= {f"{output}: {result.benchmark}": None} if result.benchmark else {}
    show_table(out, made)
    for text in benchmarks:
        wrap(out, f"benchmark of {text}")


def _headroom(headroom: float) -> str:
    """Of the limit; far beyond it the number says no more than that."""
    return f"{headroom:.0%}" if headroom >= -99.0 else "< -9900%"
