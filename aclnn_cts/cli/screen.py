"""What a run or a replay shows: how far it is; then the verdict, what was judged, the findings, the next command."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from aclnn_cts.cli.output import OutsideConsole, count, note, show_rows, show_table, span, table, wrap
from aclnn_cts.cli.progress_line import EVERY, ProgressFile, RunMeter, progress_document, progress_line
from aclnn_cts.cli.streams import silence
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.printable import printable_lines
from aclnn_cts.core.regime import Regime
from aclnn_cts.core.verdict import LEFT_OPEN, Result, RunVerdict, SkipReason
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.counts import ObservationCount
from aclnn_cts.store.events import BatchJudged, Event, Notice, OperatorFinished, PhaseStarted, RunFinished, RunStarted
from aclnn_cts.store.manifest import Manifest, ran_on
from aclnn_cts.store.run_directory import FAILURES, RunDirectory
from aclnn_cts.store.run_verdict import RunPlan, corners_text, explain_conclusion, headline, percent
from aclnn_cts.store.summary import Summary, result_line
from aclnn_cts.trials.checks.precision_probe import precision_used

if TYPE_CHECKING:
    from aclnn_cts.findings.finding_text import FindingText

FINDINGS_SHOWN = 12
OPERATORS_SHOWN = 12
SOME = 3
EMPTY_SHOWN = 6
"""Lines of cells without a judged call."""
REGIMES_WIDTH = 76
"""Columns that the table of size regimes takes; narrower terminals show it as text."""
BAR_FROM, SHORT_BELOW = 110, 72
"""Columns of a terminal: where the progress line has a bar before it, and where it is short."""
_STYLES = {
    RunVerdict.FAILS: "red",
    RunVerdict.INCONCLUSIVE: "yellow",
    RunVerdict.CONFORMS: "green",
    RunVerdict.CONFORMS_WITH_WAIVERS: "green",
}


class Screen:
    """How far a run is, on standard error: a bar on a terminal, a line a minute elsewhere; notices always.

    - `run`: the run's directory; each of its first findings is shown as soon as it is found, with its trial file.
    """

    def __init__(self, file: ProgressFile | None = None, *, run: Path | None = None) -> None:
        self._meter = RunMeter()
        self._run = run
        self._found: set[str] = set()
        """Trial files of the findings that were shown."""
        self._file = file
        self._progress: Progress | None = None
        self._said = time.monotonic()
        self._short = False
        if sys.stderr.isatty():
            shown = OutsideConsole(stderr=True)
            self._short = shown.width < SHORT_BELOW
            wide = (TextColumn("{task.fields[part]}"), BarColumn(bar_width=None)) if shown.width >= BAR_FROM else ()
            self._progress = Progress(*wide, TextColumn("{task.description}"), console=shown, transient=True)
        self._task = None if self._progress is None else self._progress.add_task("opening", total=None, part="")

    def __call__(self, event: Event, /) -> None:
        """Take one event of the run; where nobody reads what is shown any more, the run goes on without."""
        self._meter(event)
        self._keep(event)
        try:
            self._show(event)
        except OSError:
            silence(sys.stderr)
            self._progress = None

    def _keep(self, event: Event) -> None:
        """Write the file; where that is not possible any more, a note says so and the run goes on."""
        if self._file is None or not isinstance(event, (BatchJudged, RunFinished)):
            return
        finished = isinstance(event, RunFinished)
        try:
            self._file.write(progress_document(self._meter.moment()) | {"finished": finished}, last=finished)
        except (HarnessError, OSError) as error:
            note(f"note: {str(error).partition(';')[0]}; the run goes on without")
            self._file = None

    def _show(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._print(f"note: {event.message}")
        elif isinstance(event, BatchJudged) and self._run is not None:
            self._show_new(self._run)
        elif isinstance(event, OperatorFinished):
            self._print(self._meter.operator_line(event.operator))
        if self._progress is None or self._task is None:
            if isinstance(event, BatchJudged) and time.monotonic() - self._said >= EVERY:
                self._said = time.monotonic()
                click.echo(progress_line(self._meter.moment()), err=True)
            return
        if isinstance(event, RunStarted):
            self._progress.start()
        elif isinstance(event, PhaseStarted):
            self._progress.update(self._task, part=f"{event.operator.removeprefix('aclnn')} {event.name}")
        elif isinstance(event, BatchJudged):
            moment = self._meter.moment()
            self._progress.update(
                self._task,
                total=moment.planned,
                completed=moment.counts.ended,
                description=progress_line(moment, short=self._short),
            )
        elif isinstance(event, RunFinished):
            self._progress.stop()

    def _show_new(self, run: Path) -> None:
        """Name the findings that the last batch brought; the end has them all with condition and command."""
        new = [item for item in self._meter.findings if item.file not in self._found]
        if not new or len(self._found) >= FINDINGS_SHOWN:
            return
        from aclnn_cts.findings.finding_text import title_of

        for finding in new[: FINDINGS_SHOWN - len(self._found)]:
            lines = (
                f"{span(self._meter.moment().seconds)}  found {title_of(finding)}: {finding.message.partition(';')[0]}",
                f"         {shlex.quote(str(run / FAILURES / finding.file))}",
            )
            for line in lines:
                self._print(line)
            self._found.add(finding.file)

    def _print(self, line: str) -> None:
        """A line on standard error, above the progress where a terminal shows one."""
        if self._progress is None:
            click.echo(printable_lines(line), err=True)
        else:
            self._progress.console.print(Text(printable_lines(line)), soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        if self._progress is not None:
            with contextlib.suppress(OSError):
                self._progress.stop()


def show_end(
    out: Console,
    summary: Summary,
    run: Path,
    specs: Specs,
    *,
    kept: bool = True,
    session: str = "",
    operators: Table | None = None,
) -> None:
    """The verdict, what was judged and what not, the findings, the next command, and the RESULT line.

    - `kept`: whether the run's directory stays; else nothing names it.
    - `session`: how a campaign went, in a line.
    - `operators`: a table in the place of the usual one.
    """
    directory = RunDirectory(run)
    show_run_verdict(out, summary, directory, session=session)
    _show_lacking(
        out, [specs[name] for name, found in summary.operators.items() if name in specs and found.total.judged]
    )
    table_of = operators if operators is not None else _operators(summary)
    if table_of is not None:
        show_table(out, table_of)
        out.print()
    found = _finding_texts(directory, specs) if summary.total.failed else ()
    where = str(run / FAILURES) if kept else ""
    show_findings(out, found, where=where, errors=show_errors(out, summary))
    _show_observed(out, summary)
    if summary.terms is not None and summary.terms.plan == RunPlan.CAMPAIGN:
        # A longer campaign reaches more.
        show_regimes(out, summary)
    _show_precision(out, directory)
    if kept:
        show_next(out, found, run)
    show_result(out, summary, run if kept else None)


def _finding_texts(run: RunDirectory, specs: Specs) -> tuple[FindingText, ...]:
    # A run without failures needs none of what describes findings.
    from aclnn_cts.findings.finding_text import finding_texts

    return finding_texts(run, specs)


def show_run_verdict(out: Console, summary: Summary, directory: RunDirectory, *, session: str = "") -> None:
    """How the end begins: the verdict, and what was and was not judged; `session` as of `show_end`."""
    conclusion = summary.conclusion
    style = f"bold {_STYLES.get(conclusion.verdict, '')}".strip()
    out.print(Text(f"Verdict: {headline(conclusion)}.", style=style), soft_wrap=True)
    for line in (_ran_on(directory.manifest), *map(capital, explain_conclusion(conclusion)), *filter(None, [session])):
        wrap(out, line, indent=2)
    _show_judged(out, summary)
    out.print()


def show_result(out: Console, summary: Summary, run: Path | None) -> None:
    """How the end ends: the RESULT line, which no width breaks. `run`: None where the directory does not stay."""
    out.file.flush()
    click.echo(result_line(summary, run), file=out.file)


def _ran_on(manifest: Manifest) -> str:
    """What the verdict was reached on."""
    described = ran_on(manifest) or "a device without a name"
    profile = f", profile {manifest.profile}" if manifest.profile else ""
    return f"Ran on: {described}; {manifest.adapter}, {manifest.target.product}{profile}, seed {manifest.seed}."


def capital(text: str) -> str:
    """The text as a sentence begins, where that is a word: names and paths stay as they are."""
    is_word = text.partition(" ")[0].isalpha() and not text.startswith("aclnn")
    return text[:1].upper() + text[1:] if is_word else text


def _show_judged(out: Console, summary: Summary) -> None:
    """What was judged of what must be, as the RESULT line has it; then what was not, with the three largest reasons."""
    total, conclusion = summary.total, summary.conclusion
    each = " of each operator" if len(conclusion.operators) > 1 else ""
    least = "at least " if each and conclusion.share < 1.0 else ""
    wrap(
        out,
        f"Judged: {least}{percent(conclusion.share)}% of what must be judged{each}; {count(total.judged, 'trial')}:"
        f" {total.passed} passed, {total.judged_unwaived} failed, {total.judged_waived} failed with a waiver.",
    )
    missed = [
        f"{short_name(name)} {corner}" if each else corner
        for name, item in conclusion.operators.items()
        for corner in item.missed_corners
    ]
    if missed and corners_text(conclusion.operators.values()):
        some = "; ".join(missed[:SOME])
        wrap(out, f"Not judged: {count(len(missed), 'corner')}: {some}{'; ...' if len(missed) > SOME else '.'}")
    left = total.cases - total.judged
    if not left:
        return
    outside = ", ".join(
        f"{name} {number}" for name, number in sorted(total.out_of_scope_by_reason.items(), key=lambda item: -item[1])
    )
    counted = [
        *((number, _SKIPS.get(name, name)) for name, number in total.skipped_by_reason.items()),
        (total.out_of_scope, f"not offered by the adapter ({outside})"),
        (total.twin_failed, "whose valid twin failed"),
        (total.errors, "ended in an error of the harness"),
    ]
    reasons = sorted((item for item in counted if item[0]), key=lambda item: -item[0])
    wrap(out, f"Not judged: {left} of {count(total.cases, 'planned trial')}:")
    for number, text in reasons[:SOME]:
        wrap(out, f"{number} {text}", indent=2)
    if rest := sum(number for number, _ in reasons[SOME:]):
        wrap(out, f"{rest} for other reasons, which `aclnn-cts report` lists", indent=2)


def _show_lacking(out: Console, judged: Iterable[Spec]) -> None:
    """Of documents that do not say all that a formula needs, what the verdict is not about."""
    if lacking := [f"{short_name(spec.operator)}: {spec.lacks[0].en}" for spec in judged if spec.lacks]:
        named = f"{count(len(lacking), 'document')} (all: `aclnn-cts ops --all`)"
        wrap(out, f"Not said by {named}: {' '.join(lacking[:SOME])}{' ...' if lacking[SOME:] else ''}\n")


_SKIPS = {
    SkipReason.OPEN: "left open by the documents",
    SkipReason.UNSAFE: "must not reach a real device",
    SkipReason.STOPPED: "not tried any more",
}


def _operators(summary: Summary) -> Table | None:
    """A line for each operator, those with the most failures first, where there are several."""
    operators = sorted(summary.operators.items(), key=lambda item: (-item[1].total.unwaived, -item[1].total.errors))
    if len(operators) < 2:
        return None
    errors = ("err",) if summary.total.errors else ()
    numbers = ("trials", "pass", "fail", "waived", *errors, "not judged")
    made = table("operator", *numbers, "verdict", right=numbers)
    made.padding = (0, 0 if made.box is not None else 1, 0, 0)
    verdicts = summary.conclusion.operators
    for name, operator in operators[:OPERATORS_SHOWN]:
        counts, found = operator.total, verdicts.get(name)
        made.add_row(
            short_name(name),
            str(counts.cases),
            str(counts.passed),
            Text(str(counts.unwaived), style="red" if counts.unwaived else ""),
            str(counts.waived),
            *((Text(str(counts.errors), style="red" if counts.errors else ""),) if errors else ()),
            str(counts.skipped + counts.out_of_scope),
            Text(found.verdict.words, style=_STYLES.get(found.verdict, "")) if found is not None else "-",
        )
    if len(operators) > OPERATORS_SHOWN:
        made.add_row(f"... {len(operators) - OPERATORS_SHOWN} more", style="dim")
    return made


def short_name(operator: str) -> str:
    """An operator's name where room is scarce: without `aclnn` and `Backward`."""
    return operator.removeprefix("aclnn").removesuffix("Backward")


def show_next(out: Console, found: Sequence[FindingText], run: Path) -> None:
    """The command to type next, and the one that makes the report; each on one line, so that it can be copied."""
    report = f"aclnn-cts report {shlex.quote(str(run))} -o report.html"
    first = next((item for item in found if not item.finding.waiver), None)
    out.print(Text(f"Next: {first.replay if first is not None else report}"), soft_wrap=True)
    if first is not None:
        out.print(Text(f"Report: {report}"), soft_wrap=True)


def _show_precision(out: Console, run: RunDirectory) -> None:
    """Where a format narrower than FLOAT was used, as far as probes tell; what has one answer on one line."""
    answers: dict[tuple[str, tuple[str, ...]], list[tuple[str, str]]] = {}
    asked: dict[str, set[tuple[str, str]]] = {}
    for (operator, output, mode, dtype), names in precision_used(run).items():
        if dtype == "FLOAT" and names and "FLOAT" not in names:
            answers.setdefault((operator, names), []).append((output, mode))
        if dtype == "FLOAT":
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
        formats = " or ".join(names)
        wrap(out, f"{operator.removeprefix('aclnn')}{chosen} (FLOAT): {formats}", indent=2)
    out.print()


def show_regimes(out: Console, summary: Summary) -> None:
    """How many calls of each size regime were judged on values, by dtype and layout, and the empty cells by name."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    empty: dict[str, list[str]] = {}
    for name, operator in summary.operators.items():
        for cell, number in operator.cells.items():
            regime, dtype, layout = cell.split(" ", 2)
            rows.setdefault((dtype, layout), Counter())[regime] += number
            if not number:
                empty.setdefault(f"{short_name(name)} {dtype} {layout}", []).append(regime)
    if not rows:
        return
    regimes = [item.value for item in Regime if any(item.value in counts for counts in rows.values())]
    wrap(out, "Calls judged on values, by size regime:", style="bold")
    numbers = {
        f"{dtype} {layout}": [str(counts[regime]) if regime in counts else "-" for regime in regimes]
        for (dtype, layout), counts in rows.items()
    }
    _show_cells(out, regimes, numbers)
    if empty:
        wrap(out, f"Not reached: {count(sum(map(len, empty.values())), 'cell')}:")
        for place, names in list(empty.items())[:EMPTY_SHOWN]:
            wrap(out, f"{place}: {', '.join(names)}", indent=2)
        if len(empty) > EMPTY_SHOWN:
            wrap(out, "... and more, which `aclnn-cts report` shows", indent=2)
    out.print()


def _show_cells(out: Console, regimes: Sequence[str], numbers: Mapping[str, Sequence[str]]) -> None:
    """A table of the size regimes, or running text where the terminal is too narrow for it."""
    if out.width < REGIMES_WIDTH:
        for name, line in numbers.items():
            said = ", ".join(f"{regime} {number}" for regime, number in zip(regimes, line, strict=True))
            wrap(out, f"{name}: {said}", indent=2)
        return
    lines = [(name, *line) for name, line in numbers.items()]
    show_rows(out, ("dtype, layout", *regimes), lines, right=regimes)


def _show_observed(out: Console, summary: Summary) -> None:
    """What was recorded and breaks no rule: a limit that is not enforced, say."""
    observed = [(name, item) for name, operator in summary.operators.items() for item in operator.observed.values()]
    _show_left_open(out, [entry for entry in observed if entry[1].kind in LEFT_OPEN])
    found = [entry for entry in observed if entry[1].kind not in LEFT_OPEN]
    if not found:
        return
    wrap(out, "Not as the documents suggest; recorded, and a failure with --strict-limits:", style="bold")
    found.sort(key=lambda entry: -entry[1].number)
    rows = [
        (name.removeprefix("aclnn"), item.kind, item.constraint, str(item.number), item.trial[:16])
        for name, item in found[:FINDINGS_SHOWN]
    ]
    show_rows(out, ("operator", "what", "constraint", "calls", "such as trial"), rows, right=["calls"])
    if len(found) > FINDINGS_SHOWN:
        wrap(out, f"... and {len(found) - FINDINGS_SHOWN} more in summary.json")
    out.print()


def show_openness(out: Console, summary: Summary) -> None:
    """A line for each operator, dtype and check of which some elements are open, the most open first."""
    rows = summary.openness
    if not rows:
        return
    wrap(out, "Left open by the documents, of the calls whose values were looked at:", style="bold")
    lines = [
        (
            short_name(row.operator),
            row.dtype,
            row.check,
            f"{row.open.share:.1%}",
            f"{row.open.open_calls} of {row.open.calls}",
            f"{row.open.open} of {row.open.elements}",
            row.open.usual_reason,
        )
        for row in rows
        if row.open.open
    ]
    if lines:
        columns = ("operator", "dtype", "check", "open", "calls", "elements", "mostly since")
        show_rows(out, columns, lines, right=["open", "calls", "elements"])
    if rest := len(rows) - len(lines):
        wrap(out, f"{count(rest, 'other dtype and check', 'other dtypes and checks')}: nothing is open")
    out.print()


def _show_left_open(out: Console, found: Sequence[tuple[str, ObservationCount]]) -> None:
    """A line for each kind of what the documents leave open, with the most frequent place."""
    for kind in LEFT_OPEN:
        alike = [entry for entry in found if entry[1].kind == kind.value]
        if not alike:
            continue
        operator, usual = max(alike, key=lambda entry: entry[1].number)
        total = sum(item.number for _, item in alike)
        where = (
            f"{operator.removeprefix('aclnn')}, {usual.constraint}: {usual.number}, such as trial {usual.trial[:16]}"
        )
        wrap(out, f"Left open by the documents, recorded: {kind.value} in {count(total, 'trial')} ({where})")
        out.print()


def show_errors(out: Console, summary: Summary) -> int:
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


def show_findings(out: Console, found: Sequence[FindingText], *, where: str, errors: int = 0) -> None:
    """Two lines for each finding without a waiver: what fails under which condition, and the clause.

    `where`: the folder of their trial files; empty where there is none.
    """
    standing = [item for item in found if not item.finding.waiver]
    if standing:
        wrap(out, f"{count(len(standing), 'finding')}:", style="bold")
    elif not errors:
        wrap(out, "No findings." if not found else "No findings without a waiver.")
    for number, item in enumerate(standing[:FINDINGS_SHOWN], start=1):
        out.print(_line(out, f"{number:2} {item.what}", "red"), soft_wrap=True)
        out.print(_line(out, f"   {item.clause}", "dim"), soft_wrap=True)
    if len(standing) > FINDINGS_SHOWN:
        more = f", whose trial files are in {where}" if where else ""
        wrap(out, f"   ... and {len(standing) - FINDINGS_SHOWN} more{more}")
    waived = Counter(item.finding.waiver for item in found if item.finding.waiver)
    if waived:
        named = ", ".join(f"{name} ({number})" for name, number in waived.items())
        said = named if len(waived) <= SOME else f"{len(waived)} waivers, which `aclnn-cts report` names"
        wrap(out, f"{count(waived.total(), 'waived finding')}, by waiver: {said}")
    out.print()


def _line(out: Console, text: str, style: str) -> Text:
    """One line: cut to the width on a terminal, in full elsewhere."""
    line = Text(printable_lines(text), style=style)
    if out.is_terminal:
        line.truncate(out.width, overflow="ellipsis")
    return line
