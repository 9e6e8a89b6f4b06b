"""What a campaign shows while it runs and at its end: a screen on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import platform
import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from aclnn_cts.cli.output import OutsideConsole, count, span
from aclnn_cts.cli.progress_line import EVERY, ProgressFile, RunStatus, progress_document, progress_line
from aclnn_cts.cli.screen import OPERATORS_SHOWN, short_name, show_end
from aclnn_cts.cli.streams import silence
from aclnn_cts.core.finding import Confirmation, Finding
from aclnn_cts.core.printable import printable, printable_lines
from aclnn_cts.findings.finding_text import title_of
from aclnn_cts.findings.findings import merge_findings
from aclnn_cts.runs.campaign.corpus.check_coverage import CoveredShare
from aclnn_cts.runs.campaign.status import EXAMINES, CampaignStatus, OperatorStatus, SlotActivity
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.output_file import OutputFile
from aclnn_cts.store.run_directory import FAILURES
from aclnn_cts.workers.slots import Slot, SlotHealth

BAR = 12
"""Columns of a bar; half of it on a narrow terminal."""
NARROW, WIDE = 80, 100
_OPERATORS_ON_SCREEN = 6
SLOT_LINES = 2

_STYLES = {SlotHealth.BUSY: "green", SlotHealth.READY: "", SlotHealth.OPENING: "yellow", SlotHealth.OUT: "red"}


class CampaignScreen:
    """On a terminal the campaign at a glance, 80 columns by 24 lines; elsewhere one line a minute. Standard error.

    It goes on without a word where nobody reads any more; the first time OSError says so.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._console = OutsideConsole(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._said = time.monotonic()

    def begin(self, begins: str) -> None:
        """Say at once what begins."""
        try:
            click.echo(printable_lines(begins), err=True)
            if self._console.is_terminal:
                waiting = Text("opening the implementation, and finding out what can be covered ...", style="dim")
                self._live = Live(waiting, console=self._console, auto_refresh=False, transient=True)
                self._live.start(refresh=True)
        except OSError:
            self._unread()

    def __call__(self, status: CampaignStatus, /) -> None:
        """Show a moment."""
        try:
            if self._live is not None:
                self._live.update(
                    status_screen(status, self._path, width=self._console.width, height=self._console.height)
                )
                self._live.refresh()
            elif time.monotonic() - self._said >= EVERY:
                self._said = time.monotonic()
                click.echo(printable_lines(status_line(status)), err=True)
        except OSError:
            self._unread()
            raise

    def notice(self, message: str, /) -> None:
        """A line of its own, above the screen."""
        try:
            if self._live is not None:
                self._console.print(f"note: {printable_lines(message)}", soft_wrap=True)
            else:
                click.echo(f"note: {printable_lines(message)}", err=True)
        except OSError:
            self._unread()
            raise

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is None:
            return
        try:
            self._live.stop()
        except OSError:
            self._unread()
        self._live = None

    def _unread(self) -> None:
        self._live = None
        silence(sys.stderr)


def status_line(status: CampaignStatus) -> str:
    """A moment in a line."""
    total = status.summary.total
    told = (
        f"{progress_line(moment_of(status))}; chunk {status.chunks} ({status.phase}), "
        f"failed {total.failed - total.waived}, {status.waiting} to confirm, "
        f"errors {total.errors}, coverage {covered_percent(status.covered)}, "
        f"workers {sum(slot.health != SlotHealth.OUT for slot in status.slots)}/{len(status.slots)}, "
        f"disk {status.disk_bytes >> 20} MiB"
    )
    still = [each for each in _at_work(status) if each[0] >= EVERY]
    return f"{told}; {still[0][1]}" if still else told


def _at_work(status: CampaignStatus) -> list[tuple[float, str]]:
    """What the slots are at: seconds without news, the longest first, and words."""
    found = [
        (work.still, f"{slot_text(slot, number)} at {activity_text(work)}")
        for number, (slot, work) in enumerate(zip(status.slots, status.under_way, strict=True))
        if work is not None
    ]
    return sorted(found, key=lambda each: -each[0] if each[0] >= STILL else 0.0)


def status_screen(status: CampaignStatus, path: Path, *, width: int, height: int) -> RenderableType:
    """The screen of a moment; it keeps to the terminal's size."""
    width = min(width, 120)
    room = max(height - 1, 10)
    ran_on = [_cut(Text(f"on {status.ran_on}"), width)] if status.ran_on else []
    head = [_title(status, path, width), *ran_on, *_figures(status, width)]
    slots = [*_slots(status, width), *_under_way(status, width)]
    shown = operators_by_error(status.operators)[:_OPERATORS_ON_SCREEN]
    operators: list[RenderableType] = [_operators(status, width)]
    if has_never_judged(shown):
        operators.append(_cut(Text(APART, style="dim"), width))
    used = len(head) + len(slots) + len(shown) + len(operators)
    return Group(*head, *slots, *operators, *_findings(status, width, max(room - used, 1)))


def _title(status: CampaignStatus, path: Path, width: int) -> Text:
    limit = "" if status.limit_seconds is None else f" of {span(status.limit_seconds)}"
    text = Text(f"campaign {span(status.seconds)}{limit}", style="bold")
    text.append(f"  {path}", style="dim")
    if status.ending:
        text.append(f"  ending: {status.ending}", style="yellow")
    return _cut(text, width)


def _figures(status: CampaignStatus, width: int) -> list[Text]:
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
    second.append(f"  skipped {total.skipped}  out of scope {total.out_of_scope}")
    return [_cut(first, width), _cut(second, width)]


def _slots(status: CampaignStatus, width: int) -> list[Text]:
    """The devices of this host, or of a cluster, with their health, on at most two lines; of more, the sums."""
    words = [_slot(slot, slot_text(slot, number)) for number, slot in enumerate(status.slots)]
    lines = [Text(f"{platform.node()}:")]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(Text(" "))
        lines[-1].append(" ").append_text(word)
    if len(lines) <= SLOT_LINES and all(len(text) <= width for text in lines):
        return lines
    sums = {health: sum(slot.health == health for slot in status.slots) for health in _STYLES}
    text = Text(f"{len(status.slots)} workers: ")
    text.append(", ".join(f"{number} {health}" for health, number in sums.items() if number))
    lost = sum(slot.lost for slot in status.slots)
    text.append(f"; {lost} lost" if lost else "")
    out = [slot_text(slot, number) for number, slot in enumerate(status.slots) if slot.health == SlotHealth.OUT]
    return [_cut(text, width), *([_cut(Text(f"out: {', '.join(out)}", style="red"), width)] if out else [])]


def _slot(slot: Slot, name: str) -> Text:
    health = slot.health.upper() if slot.health == SlotHealth.OUT else slot.health
    text = Text(f"{name} ").append(health, style=_STYLES.get(slot.health, ""))
    return _plain(text.append(f"({slot.lost} lost)") if slot.lost else text)


def _under_way(status: CampaignStatus, width: int) -> list[Text]:
    """What is under way, whatever has been so for long first."""
    found = _at_work(status)
    text = Text("now: " if found else "")
    for number, (still, told) in enumerate(found):
        text.append("; " if number else "").append(told, style="yellow" if still >= STILL else "")
    return [_cut(text, width)] if found else []


def _operators(status: CampaignStatus, width: int) -> RenderableType:
    """Operators by the largest error ratio."""
    shown = operators_by_error(status.operators)[:_OPERATORS_ON_SCREEN]
    bar = BAR if width >= (WIDE if has_never_judged(shown) else NARROW) else BAR // 2
    names = [short_name(item.name) for item in shown]
    bars = [_bar(item.coverage["pairs"], bar) for item in shown]
    return operator_table("operator, worst first", names, shown, bars, width=width)


def _bar(share: CoveredShare, width: int) -> Text:
    full = int(share.part * width)
    text = Text("\N{FULL BLOCK}" * full, style="green" if share.met == share.of else "cyan")
    text.append("\N{LIGHT SHADE}" * (width - full), style="dim")
    return text.append(f" {covered_percent(share)}")


def _findings(status: CampaignStatus, width: int, room: int) -> list[Text]:
    found = unwaived_findings(status)
    title = Text(f"{count(len(found), 'finding')}", style="bold red" if found else "bold")
    waived = sum(bool(finding.waiver) for finding in merge_findings(status.findings))
    title.append(f", {waived} waived, {status.waiting} to confirm", style="")
    last = list(reversed(found))[: max(room - 1, 0)]
    if last:
        title.append(f"; the last, {FAILURES}/*DIGITS.json", style="dim")
    return [_cut(title, width), *(_cut(Text(finding_line(finding)), width) for finding in last)]


def _plain(text: Text) -> Text:
    """The same on one line and without hidden characters, which rich would send to the terminal."""
    return text if text.plain.isprintable() else Text(printable(text.plain), style=text.style)


def _cut(text: Text, width: int) -> Text:
    text = _plain(text)
    text.truncate(width, overflow="ellipsis")
    text.no_wrap = True
    return text


LAST = 20
"""Findings, and notices, that the file has."""


class ProgressJson:
    """Writes the moment: a file whole or not at all, a line of a stream."""

    def __init__(self, output: OutputFile, run: Path) -> None:
        self._file = ProgressFile(output, run)
        self._notices: deque[str] = deque(maxlen=LAST)

    def __call__(self, status: CampaignStatus, /) -> None:
        """Write a moment, at most once a second but for the last."""
        self._file.write(status_document(status) | {"notices": list(self._notices)}, last=bool(status.ending))

    def notice(self, message: str, /) -> None:
        """Keep it for the moments that follow."""
        self._notices.append(message)


def status_document(status: CampaignStatus) -> dict[str, Any]:
    """A moment as plain JSON values."""
    found = unwaived_findings(status)
    return {
        **progress_document(moment_of(status)),
        "finished": bool(status.ending),
        "host": platform.node(),
        "limit_seconds": status.limit_seconds,
        "chunks": status.chunks,
        "limit_chunks": status.limit_chunks,
        "phase": status.phase,
        "ran_on": status.ran_on,
        "to_confirm": status.waiting,
        "last_findings": [_finding(each) for each in reversed(found[-LAST:])],
        "workers": _workers(status),
        "coverage": _share(status.covered),
        "operators": [_operator(item) for item in status.operators],
        "disk_bytes": status.disk_bytes,
        "disk_limit": status.disk_limit,
        "ending": status.ending,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "text": finding_line(finding),
        "file": f"{FAILURES}/{finding.file}",
        "confirmed": finding.confirmed,
        "failures": finding.failures,
        "worker": finding.slot,
        "device": finding.device,
        "seconds": finding.seconds,
    }


def _workers(status: CampaignStatus) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for slot, work in zip(status.slots, status.under_way, strict=True):
        words: dict[str, Any] = {
            "name": slot.name,
            "device": slot.device,
            "health": slot.health,
            "lost": slot.lost,
        }
        if work is not None:
            words |= {
                "chunk": None if work.chunk == EXAMINES else work.chunk,
                "judged": work.judged,
                "of": work.of,
                "seconds_without_news": round(work.still, 1),
            }
        found.append(words)
    return found


def _operator(item: OperatorStatus) -> dict[str, Any]:
    return {
        "name": item.name,
        "cases": item.cases,
        "failed": item.failed,
        "worst_share": item.worst,
        "coverage": {name: _share(share) for name, share in item.coverage.items()},
        "pairs_by_factor": {name: _share(share) for name, share in item.factors.items()},
        "tried_and_not_judged": {name: share.apart for name, share in item.coverage.items() if share.apart},
    }


def _share(share: CoveredShare) -> list[int]:
    return [share.met, share.of]


SORTS = {"constraints": "rules", "limits": "limits", "pairs": "pairs"}
"""Sorts of coverage, and the heads of their columns."""

APART = "-N: so many more were tried, and cannot be given to it or judged"
STILL = 5.0
"""Seconds without news after which a person is told how long it has been."""

_BRIEF = {
    Confirmation.WAITING: "to confirm",
    Confirmation.ORDER: "order",
    Confirmation.DEVICE: "one device",
    Confirmation.UNKNOWN: "unconfirmed",
}
_DIGITS = 6
"""Of the hash that ends the name of a finding's file: enough to tell it from others."""

T = TypeVar("T", bound=OperatorStatus)


def covered_percent(share: CoveredShare) -> str:
    """Of what can be covered, all of it alone being 100%; and how many things were tried and never judged."""
    part = "100%" if share.met == share.of else f"{min(share.part, 0.999):.1%}"
    return f"{part} -{share.apart}" if share.apart else part


def has_never_judged(operators: Sequence[OperatorStatus]) -> bool:
    """Whether anything stands apart (`CoveredShare.apart`)."""
    return any(share.apart for item in operators for share in item.coverage.values())


def operators_by_error(operators: Sequence[T]) -> list[T]:
    """By the largest error ratio."""
    return sorted(operators, key=lambda item: (-item.worst, item.name))


def unwaived_findings(status: CampaignStatus) -> list[Finding]:
    """The findings without a waiver, each fault once, in the order in which they were met."""
    return [finding for finding in merge_findings(status.findings) if not finding.waiver]


def moment_of(status: CampaignStatus) -> RunStatus:
    """The figures that a campaign has in common with a run."""
    left = None if status.limit_seconds is None else max(status.limit_seconds - status.seconds, 0.0)
    return RunStatus(
        seconds=status.seconds,
        counts=status.summary.total,
        planned=None,
        findings=len(unwaived_findings(status)),
        rate=status.rate,
        left=left,
    )


def operator_table(
    head: str, names: Sequence[str], operators: Sequence[OperatorStatus], pairs: Sequence[Text], *, width: int
) -> Table:
    """Operators with their figures; where the width does not do, the name of an operator gives way, and no number."""
    columns = {
        "cases": [Text(str(item.cases)) for item in operators],
        "fail": [Text(str(item.failed), style="red" if item.failed else "") for item in operators],
        "worst": [Text(f"{item.worst:.2f}") for item in operators],
        **{
            SORTS[sort]: [Text(covered_percent(item.coverage[sort])) for item in operators] for sort in list(SORTS)[:-1]
        },
        SORTS["pairs"]: pairs,
    }
    widths = {name: max(len(name), *(len(cell) for cell in cells), 0) for name, cells in columns.items()}
    left = max(width - sum(each + 1 for each in widths.values()), 10)
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    made.add_column(head, no_wrap=True, overflow="ellipsis", max_width=left)
    for name, least in widths.items():
        made.add_column(name, justify="left" if pairs is columns[name] else "right", no_wrap=True, min_width=least)
    for number, name in enumerate(names):
        made.add_row(printable(name), *(cells[number] for cells in columns.values()))
    return made


def slot_text(slot: Slot, number: int) -> str:
    """What tells a slot from others: its device where it has one of its own, else its number."""
    found = re.search(r"\bdevice[ =]([^,\s]+)", slot.device)
    if found is not None:
        return found[1]
    # A cluster names the node, and what of it was given.
    return slot.device if " " in slot.device else str(number)


def activity_text(work: SlotActivity) -> str:
    """What a worker is at: `chunk 3: 17/77, 0:00:40 without news`."""
    what = "a finding" if work.chunk == EXAMINES else "pinned cases"
    if work.chunk >= 0:
        what = f"chunk {work.chunk}"
    told = f"{what}: {work.judged}/{work.of}" if work.of else what
    if work.still < STILL:
        return told
    # A finding is looked into without a word.
    return f"{told}, {span(work.still)} without news" if work.of else f"{told} for {span(work.still)}"


def finding_line(finding: Finding) -> str:
    """A finding in a line, what tells it from others first; before it the digits that its file's name ends with."""
    told = ", ".join(filter(None, (title_of(finding).replace(" the assumed", ""), finding.key.answer)))
    digits = Path(finding.file).stem[-_DIGITS:]
    confirmed = _BRIEF.get(finding.confirmed, finding.confirmed)
    return f"{digits} {confirmed} {finding.failures}x {told}"


def show_campaign_end(out: Console, status: CampaignStatus, path: Path, specs: Specs) -> None:
    """The verdict, operators with their coverage, findings, the next command and the RESULT line."""
    show_end(
        out,
        status.summary,
        path,
        specs,
        session=f"{span(status.seconds)}, {count(status.chunks, 'chunk')}: {status.ending}.",
        operators=_table(status, out.width),
    )


def _table(status: CampaignStatus, width: int) -> Table:
    """Operators by the largest error ratio, with what of their documents was covered."""
    shown = operators_by_error(status.operators)[:OPERATORS_SHOWN]
    names = [short_name(item.name) for item in shown]
    pairs = [Text(covered_percent(item.coverage["pairs"]), justify="right") for item in shown]
    made = operator_table("operator", names, shown, pairs, width=width)
    if len(shown) < len(status.operators):
        made.add_row(f"... {len(status.operators) - len(shown)} more")
    made.caption = APART if has_never_judged(shown) else None
    made.caption_justify = "left"
    return made
