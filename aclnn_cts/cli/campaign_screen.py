"""What a campaign shows: a screen on a terminal, a line a minute elsewhere, and its end in fifteen lines."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from aclnn_cts.cli.output import count, show_table, table, wrap
from aclnn_cts.core.errors import UsageError
from aclnn_cts.engine.campaign.dispatch import Health
from aclnn_cts.engine.campaign.finding import Finding
from aclnn_cts.engine.campaign.promise_coverage import Share
from aclnn_cts.engine.campaign.session import Ended
from aclnn_cts.engine.campaign.status import OperatorStatus, Status
from aclnn_cts.engine.files import write_atomically
from aclnn_cts.engine.summary import result_line

__all__ = ["CampaignScreen", "ProgressJson", "show_campaign_end"]

EVERY = 60.0
"""Seconds between two lines where there is no terminal."""

BAR = 12
OPERATORS_SHOWN = 6
SLOTS_SHOWN = 8
ENDING_LINES = 15


class CampaignScreen:
    """On a terminal the campaign at a glance, 80 columns by 24 lines; elsewhere one line a minute. Standard error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._said = 0.0
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def __call__(self, status: Status, /) -> None:
        """Show a moment."""
        if self._live is not None:
            self._live.update(screen(status, self._path, width=self._console.width, height=self._console.height))
            self._live.refresh()
        elif time.monotonic() - self._said >= EVERY:
            if self._said:
                click.echo(line(status), err=True)
            self._said = time.monotonic()

    def notice(self, message: str, /) -> None:
        """A line of its own, above the screen."""
        if self._live is not None:
            self._console.print(f"note: {message}", soft_wrap=True)
        else:
            click.echo(f"note: {message}", err=True)

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def line(status: Status) -> str:
    """A moment in a line."""
    total = status.summary.total
    standing = [finding for finding in status.findings if not finding.waiver]
    return (
        f"{span(status.seconds)} chunk {status.chunks} ({status.phase}), {total.cases} cases, {status.rate:.0f}/s, "
        f"failed {total.failed - total.waived}, {count(len(standing), 'finding')} ({status.waiting} to confirm), "
        f"errors {total.errors}, coverage {percent(status.covered)}, "
        f"workers {sum(slot.health != Health.OUT for slot in status.slots)}/{len(status.slots)}, "
        f"disk {status.disk_bytes >> 20} MiB"
    )


def screen(status: Status, path: Path, *, width: int, height: int) -> RenderableType:
    """The screen of a moment; it keeps to the terminal's size."""
    width = min(width, 120)
    room = max(height - 1, 10)
    head = [_title(status, path, width), *_ran_on(status, width), *_figures(status)]
    slots = _slots(status, width)
    operators = _operators(status, width)
    used = len(head) + len(slots) + 2 + min(len(status.operators), OPERATORS_SHOWN)
    findings = _findings(status, width, max(room - used - 1, 1))
    return Group(*head, *slots, operators, *findings)


def _title(status: Status, path: Path, width: int) -> Text:
    limit = "" if status.limit_seconds is None else f" of {span(status.limit_seconds)}"
    text = Text(f"campaign {span(status.seconds)}{limit}", style="bold")
    text.append(f"  {path}", style="dim")
    if status.ending:
        text.append(f"  ending: {status.ending}", style="yellow")
    return _cut(text, width)


def _ran_on(status: Status, width: int) -> list[Text]:
    return [_cut(Text(f"on {status.ran_on}"), width)] if status.ran_on else []


def _figures(status: Status) -> list[Text]:
    total = status.summary.total
    unwaived = total.failed - total.waived
    first = Text(f"{total.cases} cases  {status.rate:.0f}/s  chunk {status.chunks}")
    if status.limit_chunks is not None:
        first.append(f" of {status.limit_chunks}")
    first.append(f" ({status.phase or 'starting'})  disk {status.disk_bytes >> 20} of {status.disk_limit >> 20} MiB")
    second = Text(f"passed {total.passed}  ")
    second.append(f"failed {unwaived}", style="red" if unwaived else "")
    second.append(f"  waived {total.waived}  ")
    second.append(f"errors {total.errors}", style="red" if total.errors else "")
    second.append(f"  skipped {total.skipped}")
    return [first, second]


def _slots(status: Status, width: int) -> list[Text]:
    """Devices with their health, as many as fit on two lines."""
    styles = {Health.BUSY: "green", Health.READY: "", Health.OPENING: "yellow", Health.OUT: "red"}
    if len(status.slots) > SLOTS_SHOWN:
        words = {health: sum(slot.health == health for slot in status.slots) for health in styles}
        text = Text(f"{len(status.slots)} workers: ")
        text.append(", ".join(f"{number} {health}" for health, number in words.items() if number))
        lost = sum(slot.lost for slot in status.slots)
        return [_cut(text.append(f"; {lost} lost" if lost else ""), width)]
    text = Text()
    for slot in status.slots:
        text.append(f"{slot.name} ")
        text.append(slot.health, style=styles.get(slot.health, ""))
        text.append(f" (lost {slot.lost})  " if slot.lost else "  ")
    return [_cut(text, width)]


def _operators(status: Status, width: int) -> RenderableType:
    """Operators by the worst share of the bound."""
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, width=width)
    made.add_column("operator, worst first", no_wrap=True, overflow="ellipsis")
    for name in ("cases", "fail", "worst", "rules", "limits", "laws"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("pairs", no_wrap=True)
    ordered = sorted(status.operators, key=lambda item: (-item.worst, item.name))
    for item in ordered[:OPERATORS_SHOWN]:
        made.add_row(
            item.name.removeprefix("aclnn").removesuffix("Backward"),
            str(item.cases),
            Text(str(item.failed), style="red" if item.failed else ""),
            f"{item.worst:.2f}",
            *(percent(item.coverage[name]) for name in ("constraints", "limits", "laws")),
            _bar(item.coverage["pairs"]),
        )
    return made


def _bar(share: Share) -> Text:
    full = int(share.part * BAR)
    text = Text("\N{FULL BLOCK}" * full, style="green" if share.met == share.of else "cyan")
    text.append("\N{LIGHT SHADE}" * (BAR - full), style="dim")
    return text.append(f" {percent(share)}")


def _findings(status: Status, width: int, room: int) -> list[Text]:
    standing = [finding for finding in status.findings if not finding.waiver]
    waived = len(status.findings) - len(standing)
    title = Text(f"{count(len(standing), 'finding')}", style="bold red" if standing else "bold")
    title.append(f", {waived} waived, {status.waiting} to confirm", style="")
    return [title, *(_cut(Text(describe(finding)), width) for finding in reversed(standing[-max(room - 1, 0) :]))]


def describe(finding: Finding) -> str:
    """A finding in a line."""
    signature = finding.signature
    promise = "" if signature.promise in ("values", "status") else signature.promise
    parts = (signature.kind, signature.output, promise, signature.constraint, signature.mode, signature.dtype)
    told = ", ".join(part for part in (*parts, signature.symptom) if part)
    operator = signature.operator.removeprefix("aclnn")
    return f"{finding.confirmed or 'to confirm'}, {count(finding.failures, 'case')}: {operator}: {told}"


def _cut(text: Text, width: int) -> Text:
    text.truncate(width, overflow="ellipsis")
    text.no_wrap = True
    return text


def percent(share: Share) -> str:
    """Of what can be covered; all of it alone is 100%."""
    return "100%" if share.met == share.of else f"{min(share.part, 0.999):.1%}"


def span(seconds: float) -> str:
    """`1:02:03`."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


class ProgressJson:
    """`--progress FILE`: the moment as one JSON object, written anew each time, whole or not at all."""

    def __init__(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise UsageError(f"--progress {path}: {path.parent} is no folder; make it first, or name another file")
        self._path = path
        self._written = 0.0

    def __call__(self, status: Status, /) -> None:
        """Write a moment, at most once a second but for the last."""
        if status.ending or time.monotonic() - self._written >= 1.0:
            self._written = time.monotonic()
            write_atomically(self._path, json.dumps(progress(status)).encode() + b"\n")

    def notice(self, message: str, /) -> None:
        """Not part of a moment."""


def progress(status: Status) -> dict[str, Any]:
    """A moment as plain JSON values."""
    total = status.summary.total
    return {
        "seconds": round(status.seconds, 1),
        "limit_seconds": status.limit_seconds,
        "chunks": status.chunks,
        "limit_chunks": status.limit_chunks,
        "phase": status.phase,
        "ran_on": status.ran_on,
        "cases": total.cases,
        "cases_per_second": round(status.rate, 1),
        "passed": total.passed,
        "failed": total.failed,
        "waived": total.waived,
        "errors": total.errors,
        "skipped": total.skipped,
        "findings": sum(not finding.waiver for finding in status.findings),
        "to_confirm": status.waiting,
        "workers": [{"name": slot.name, "health": slot.health, "lost": slot.lost} for slot in status.slots],
        "operators": [_operator_json(item) for item in status.operators],
        "disk_bytes": status.disk_bytes,
        "disk_limit": status.disk_limit,
        "ending": status.ending,
    }


def _operator_json(item: OperatorStatus) -> dict[str, Any]:
    return {
        "name": item.name,
        "cases": item.cases,
        "failed": item.failed,
        "worst_share": item.worst,
        "coverage": {name: [share.met, share.of] for name, share in item.coverage.items()},
        "pairs_by_factor": {name: [share.met, share.of] for name, share in item.factors.items()},
        "pairs_tried_and_not_judged": item.unjudged,
    }


def show_campaign_end(out: Console, ended: Ended, path: Path) -> None:
    """At most fifteen lines: operators, findings, the report's command and the RESULT line."""
    status, summary = ended.status, ended.summary
    total = summary.total
    wrap(out, f"{span(status.seconds)}, {total.cases} cases in {count(status.chunks, 'chunk')}: {ended.why}.")
    made = table("operator", "cases", "fail", "worst", "rules", "limits", "laws", "pairs")
    made.padding = (0, 1, 0, 0)
    for column in made.columns[1:]:
        column.justify = "right"
    ordered = sorted(status.operators, key=lambda item: (-item.worst, item.name))
    shown = 5
    for item in ordered[:shown]:
        made.add_row(
            item.name.removeprefix("aclnn"),
            str(item.cases),
            str(item.failed),
            f"{item.worst:.2f}",
            *(percent(item.coverage[name]) for name in ("constraints", "limits", "laws", "pairs")),
        )
    show_table(out, made)
    standing = sorted((each for each in status.findings if not each.waiver), key=lambda each: -each.failures)
    waived = len(status.findings) - len(standing)
    lines = 3 + min(len(ordered), shown) + len(summary.violations) + bool(status.ran_on)
    room = max(ENDING_LINES - lines - 3, 1)
    out.print(f"{count(len(standing), 'finding')}, {waived} waived, in {path / 'failures'}")
    for finding in standing[: room if len(standing) <= room else room - 1]:
        out.print(_cut(Text(f"  {describe(finding)}", style="red"), max(out.width, 40)))
    if len(standing) > room:
        out.print(f"  ... and {len(standing) - room + 1} more")
    for text in summary.violations:
        out.print(_cut(Text(text, style="red"), max(out.width, 40)))
    for told in _ran_on(status, max(out.width, 40)):
        out.print(told)
    out.print(f"report: aclnn-cts report {path} -o report.html", soft_wrap=True)
    sys.stdout.flush()
    click.echo(result_line(summary, path))
