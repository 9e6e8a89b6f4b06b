"""What a run shows: a bar while it goes on a terminal, and at the end a table, the findings and the RESULT line."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from aclnn_cts.checks.precision_probe import precision_used
from aclnn_cts.cli.output import OutsideConsole, count, note, show_table, table, wrap
from aclnn_cts.cli.streams import silence
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import printable_lines
from aclnn_cts.core.verdict import Result, RunVerdict
from aclnn_cts.findings.explain import replay_command
from aclnn_cts.findings.finding_groups import FindingGroup, finding_groups
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.counts import Counts
from aclnn_cts.store.events import BatchJudged, Event, Notice, PhaseStarted, Planned, RunFinished, RunStarted
from aclnn_cts.store.manifest import ran_on
from aclnn_cts.store.output_file import OutputFile, begins
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.store.run_verdict import explained, headline
from aclnn_cts.store.summary import Summary, result_line

__all__ = ["PROGRESS_LINES", "ProgressFile", "Screen", "show_end"]

PROGRESS_LINES = begins(rb'\Z|\{"seconds": [0-9.]+, "planned": ')
"""Files that `ProgressFile` has written; at first they are empty."""
FINDINGS_SHOWN = 12
_STYLES = {
    RunVerdict.FAILS: "red",
    RunVerdict.INCONCLUSIVE: "yellow",
    RunVerdict.CONFORMS: "green",
    RunVerdict.CONFORMS_WITH_WAIVERS: "green",
}


class Screen:
    """A progress bar on standard error, on a terminal alone; notices always."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        if sys.stderr.isatty():
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("failed {task.fields[failed]}"),
                TimeElapsedColumn(),
                console=OutsideConsole(stderr=True),
                transient=True,
            )
        self._task = None if self._progress is None else self._progress.add_task("planning", total=0, failed=0)
        self._planned = 0
        self._failed = 0

    def __call__(self, event: Event, /) -> None:
        """Take one event of the run; where nobody reads what is shown any more, the run goes on without."""
        try:
            self._show(event)
        except OSError:
            silence(sys.stderr)
            self._progress = None

    def _show(self, event: Event) -> None:
        if isinstance(event, Notice):
            click.echo(printable_lines(f"note: {event.message}"), err=True)
        if self._progress is None or self._task is None:
            return
        if isinstance(event, RunStarted):
            self._progress.start()
        elif isinstance(event, PhaseStarted):
            self._progress.update(self._task, description=f"{event.operator.removeprefix('aclnn')} {event.name}")
        elif isinstance(event, Planned):
            self._planned += event.number
            self._progress.update(self._task, total=self._planned)
        elif isinstance(event, BatchJudged):
            self._failed += sum(record.verdict.result == "failed" for record in event.records)
            self._progress.update(self._task, advance=len(event.records), failed=self._failed)
        elif isinstance(event, RunFinished):
            self._progress.stop()

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        if self._progress is not None:
            with contextlib.suppress(OSError):
                self._progress.stop()


class ProgressFile:
    """`--progress FILE`: a line of JSON for each part of the run, for a program that watches.

    Where it cannot be written any more, a note says so and the run goes on.
    """

    def __init__(self, output: OutputFile) -> None:
        self._output: OutputFile | None = output
        output.write(b"")
        self._began = time.monotonic()
        self._counts = Counts()

    def __call__(self, event: Event, /) -> None:
        """Append what changed."""
        if isinstance(event, Planned):
            self._counts.cases += event.number
            return
        if isinstance(event, BatchJudged):
            for record in event.records:
                self._counts.count(record.verdict.result, reason=record.verdict.kind, waived=bool(record.waiver))
        elif not isinstance(event, RunFinished):
            return
        document = {
            "seconds": round(time.monotonic() - self._began, 3),
            "planned": self._counts.cases,
            "passed": self._counts.passed,
            "failed": self._counts.failed,
            "waived": self._counts.waived,
            "errors": self._counts.errors,
            "skipped": self._counts.skipped,
            "out_of_scope": self._counts.out_of_scope,
            "finished": isinstance(event, RunFinished),
        }
        if self._output is None:
            return
        try:
            self._output.append(json.dumps(document).encode() + b"\n")
        except (HarnessError, OSError) as error:
            note(f"note: {str(error).partition(';')[0]}; the run goes on without")
            self._output = None


def show_end(out: Console, summary: Summary, run: Path, specs: Specs) -> None:
    """The table, what the findings and the errors mean, the verdict in words, and the RESULT line."""
    directory = RunDirectory(run)
    _show_table(out, summary)
    out.print()
    _show_findings(out, finding_groups(directory, specs), errors=_show_errors(out, summary))
    _show_observed(out, summary)
    _show_precision(out, directory)
    for line in verdict_lines(summary, directory):
        # One line however long: what a newcomer needs stands in the last ten.
        out.print(line, soft_wrap=True)
    click.echo(result_line(summary, run), file=out.file)


def verdict_lines(summary: Summary, run: RunDirectory) -> Iterator[Text]:
    """The verdict in words, why, what it was reached on, and what to do next: at most nine lines."""
    conclusion, total, adapter = summary.conclusion, summary.total, run.manifest.adapter
    yield Text(f"Verdict: {headline(conclusion)}.", style=f"bold {_STYLES.get(conclusion.verdict, '')}".strip())
    yield from (Text(f"  {line}") for line in explained(conclusion))
    if conclusion.verdict in (RunVerdict.CONFORMS, RunVerdict.CONFORMS_WITH_WAIVERS):
        accepted = f", {total.waived} failures are accepted by waivers" if total.waived else ""
        yield Text(f"  {total.passed} of {total.judged} judged trials passed{accepted}.")
    aside = ((total.open, "left open by the documents"), (total.out_of_scope, "out of the adapter's scope"))
    if told := ", ".join(f"{number} {what}" for number, what in aside if number):
        yield Text(f"  Planned trials: {total.cases}, of which {told}.")
    if described := ran_on(run.manifest):
        yield Text(f"Ran on: {described}")
    replay = ""
    if failures := len(run.failures()):
        strict = bool(run.manifest.settings.get("strict_limits", False))
        command = replay_command(run.path, adapter, strict_limits=strict)
        replay = f"; replay {count(failures, 'trial file')}: {command}"
    yield Text(f"Report: aclnn-cts report {shlex.quote(str(run.path))} -o report.html{replay}")


def _show_table(out: Console, summary: Summary) -> None:
    made = table("operator, kind", "run", "pass", "fail", "waived", "err", "not judged")
    made.padding = (0, 1, 0, 0)
    made.columns[0].no_wrap = made.columns[6].no_wrap = True
    for column in made.columns[1:6]:
        column.justify = "right"
    for name, operator in summary.operators.items():
        total = operator.total
        made.add_row(
            name.removeprefix("aclnn"), *_cells(total)[:-1], Text(str(total.skipped + total.out_of_scope)), style="bold"
        )
        for kind, counts in operator.kinds.items():
            made.add_row(f"  {kind or 'given'}", *_cells(counts))
    made.add_row("all", *_cells(summary.total), style="bold")
    show_table(out, made)


def _cells(counts: Counts) -> tuple[Text, ...]:
    by_number = sorted(counts.skipped_by_reason.items(), key=lambda item: -item[1])
    outside = f"{counts.out_of_scope} out of scope" if counts.out_of_scope else ""
    skipped = "\n".join([*(f"{number} {reason}" for reason, number in by_number), *filter(None, (outside,))])
    unwaived = counts.unwaived
    return (
        Text(str(counts.cases)),
        Text(str(counts.passed)),
        Text(str(unwaived), style="red" if unwaived else ""),
        Text(str(counts.waived)),
        Text(str(counts.errors), style="red" if counts.errors else ""),
        Text(skipped or "0"),
    )


def _show_precision(out: Console, run: RunDirectory) -> None:
    """Which precision was really used for FLOAT, which all formats differ from; what has one answer on one line."""
    answers: dict[tuple[str, tuple[str, ...]], list[tuple[str, str]]] = {}
    asked: dict[str, set[tuple[str, str]]] = {}
    for (operator, output, mode, dtype), names in precision_used(run).items():
        if dtype == "FLOAT":
            answers.setdefault((operator, names), []).append((output, mode))
            asked.setdefault(operator, set()).add((output, mode))
    if not answers:
        return
    wrap(out, "Precision really used, as far as probes can tell formats apart:", style="bold")
    for (operator, names), places in answers.items():
        # Outputs and modes are named where they do not all have the same answer.
        outputs, modes = (dict.fromkeys(part) for part in zip(*places, strict=True))
        words = []
        if any((output, mode) not in places for output, mode in asked[operator] if mode in modes):
            words.append(", ".join(outputs))
        if any((output, mode) not in places for output, mode in asked[operator] if output in outputs):
            words.append(", ".join(modes))
        chosen = f" {'; '.join(words)}" if words else ""
        formats = " or ".join(names) or "none that is known"
        wrap(out, f"{operator.removeprefix('aclnn')}{chosen} (FLOAT): {formats}", indent=2)
    out.print()


def _show_observed(out: Console, summary: Summary) -> None:
    """What was recorded and breaks no promise: a limit that is not enforced, say."""
    found = [(name, item) for name, operator in summary.operators.items() for item in operator.observed.values()]
    if not found:
        return
    wrap(out, "Not as the documents suggest; recorded, and a failure with --strict-limits:", style="bold")
    made = table("operator", "what", "constraint", "calls", "such as trial")
    made.columns[3].justify = "right"
    found.sort(key=lambda entry: -entry[1].number)
    for name, item in found[:FINDINGS_SHOWN]:
        made.add_row(name.removeprefix("aclnn"), item.kind, item.constraint, str(item.number), item.trial[:16])
    show_table(out, made)
    if len(found) > FINDINGS_SHOWN:
        wrap(out, f"... and {len(found) - FINDINGS_SHOWN} more in summary.json")
    out.print()


def _show_errors(out: Console, summary: Summary) -> int:
    """Why trials ended in an error, with a case of each: their number."""
    errors = [
        item
        for operator in summary.operators.values()
        for item in operator.unjudged.values()
        if item.result == Result.ERROR
    ]
    for item in sorted(errors, key=lambda entry: -entry.number)[:FINDINGS_SHOWN]:
        wrap(out, f"{count(item.number, 'trial')} ended in an error: {item.message}", style="red")
        wrap(out, f"such as {item.case} (trial {item.trial[:16]})", indent=2)
    if len(errors) > FINDINGS_SHOWN:
        wrap(out, f"... and {len(errors) - FINDINGS_SHOWN} more in summary.json")
    return len(errors)


def _show_findings(out: Console, groups: Sequence[FindingGroup], *, errors: int) -> None:
    if not groups:
        if not errors:
            wrap(out, "No findings.")
        out.print()
        return
    standing = [group for group in groups if not group.waivers]
    for group in standing[:FINDINGS_SHOWN]:
        wrap(out, f"{group.title} ({count(group.cases, 'case')}: {group.details})", style="red")
        wrap(out, group.meaning, indent=2)
        if group.shared is not None:
            wrap(out, f"What failures share: {group.shared.en}.", indent=2)
        if group.clause:
            wrap(out, f"clause {group.clause}", indent=2)
        # One line however long, so that it can be copied.
        command = replay_command(
            group.file,
            group.adapter,
            spec_folders=group.spec_folders,
            edition=group.edition,
            strict_limits=group.strict_limits,
        )
        out.print(f"  {command}", soft_wrap=True, style="dim")
    if len(standing) > FINDINGS_SHOWN:
        wrap(out, f"... and {len(standing) - FINDINGS_SHOWN} more in failures/")
    for group in groups:
        if group.waivers:
            wrap(out, f"waived: {group.title} ({count(group.cases, 'case')}) by {', '.join(group.waivers)}")
    out.print()
