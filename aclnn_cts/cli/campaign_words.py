"""What the screen, the lines, the progress file and the end of a campaign say in the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aclnn_cts.campaign.corpus.check_coverage import Share
from aclnn_cts.campaign.fleet.slots import Slot
from aclnn_cts.campaign.status import EXAMINES, OperatorStatus, Status, UnderWay
from aclnn_cts.cli.output import count, span
from aclnn_cts.cli.progress_line import Moment
from aclnn_cts.cli.screen import OPERATORS_SHOWN, short_name, show_end
from aclnn_cts.core.fault_words import fault_name
from aclnn_cts.core.printable import printable
from aclnn_cts.findings.distinct import distinct
from aclnn_cts.findings.finding import Confirmed, Finding
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.run_directory import failure_name

SORTS = {"constraints": "rules", "limits": "limits", "laws": "laws", "pairs": "pairs"}
"""Sorts of coverage, and the heads of their columns."""

APART = "-N: so many more were tried, and cannot be given to it or judged"
STILL = 5.0
"""Seconds without news after which a person is told how long it has been."""

_BRIEF = {
    Confirmed.WAITING: "to confirm",
    Confirmed.ORDER: "order",
    Confirmed.DEVICE: "one device",
    Confirmed.UNKNOWN: "unconfirmed",
}
_DIGITS = 6
"""Of the hash that ends the name of a finding's file: enough to tell it from others."""

T = TypeVar("T", bound=OperatorStatus)


def percent(share: Share) -> str:
    """Of what can be covered, all of it alone being 100%; and how many things were tried and never judged."""
    part = "100%" if share.met == share.of else f"{min(share.part, 0.999):.1%}"
    return f"{part} -{share.apart}" if share.apart else part


def apart(operators: Sequence[OperatorStatus]) -> bool:
    """Whether anything stands apart (`Share.apart`)."""
    return any(share.apart for item in operators for share in item.coverage.values())


def worst(operators: Sequence[T]) -> list[T]:
    """By the worst share of the bound."""
    return sorted(operators, key=lambda item: (-item.worst, item.name))


def standing(status: Status) -> list[Finding]:
    """The findings without a waiver, each fault once, in the order in which they were met."""
    return [finding for finding in distinct(status.findings) if not finding.waiver]


def moment_of(status: Status) -> Moment:
    """The figures that a campaign has in common with a run."""
    left = None if status.limit_seconds is None else max(status.limit_seconds - status.seconds, 0.0)
    return Moment(
        seconds=status.seconds,
        counts=status.summary.total,
        planned=None,
        findings=len(standing(status)),
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
        **{SORTS[sort]: [Text(percent(item.coverage[sort])) for item in operators] for sort in list(SORTS)[:-1]},
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


def place(slot: Slot, number: int) -> str:
    """What tells a slot from others: its device where it has one of its own, else its number."""
    found = re.search(r"\bdevice[ =]([^,\s]+)", slot.device)
    if found is not None:
        return found[1]
    # A cluster names the node, and what of it was given.
    return slot.device if " " in slot.device else str(number)


def at_work(work: UnderWay) -> str:
    """What a worker is at: `chunk 3: 17/77, 0:00:40 without news`."""
    what = "a finding" if work.chunk == EXAMINES else "pinned cases"
    if work.chunk >= 0:
        what = f"chunk {work.chunk}"
    told = f"{what}: {work.judged}/{work.of}" if work.of else what
    if work.still < STILL:
        return told
    # A finding is looked into without a word.
    return f"{told}, {span(work.still)} without news" if work.of else f"{told} for {span(work.still)}"


def brief(finding: Finding) -> str:
    """A finding in a line, what tells it from others first; before it the digits that its file's name ends with."""
    key = finding.key
    told = _told(finding).replace(" the assumed", "")
    digits = Path(failure_name(key)).stem[-_DIGITS:]
    confirmed = _BRIEF.get(finding.confirmed, finding.confirmed)
    return f"{digits} {confirmed} {finding.failures}x {short_name(key.operator)}: {told}"


def _told(finding: Finding) -> str:
    key = finding.key
    check = "" if key.check in ("values", "status") else key.check
    parts = (key.clause, key.dtype, fault_name(finding.kind or key.fault), key.answer)
    return ", ".join(part for part in (*parts, key.output, key.mode, check) if part)


def show_campaign_end(out: Console, status: Status, path: Path, specs: Specs) -> None:
    """The verdict, operators with their coverage, findings, the next command and the RESULT line."""
    show_end(
        out,
        status.summary,
        path,
        specs,
        session=f"{span(status.seconds)}, {count(status.chunks, 'chunk')}: {status.ending}.",
        operators=_table(status, out.width),
        confirmed={
            failure_name(finding.key): finding.confirmed or "to be confirmed"
            for finding in status.findings
            if finding.confirmed != Confirmed.ALWAYS
        },
    )


def _table(status: Status, width: int) -> Table:
    """Operators by the worst share of the bound, with what of their documents was covered."""
    shown = worst(status.operators)[:OPERATORS_SHOWN]
    names = [short_name(item.name) for item in shown]
    pairs = [Text(percent(item.coverage["pairs"]), justify="right") for item in shown]
    made = operator_table("operator", names, shown, pairs, width=width)
    if len(shown) < len(status.operators):
        made.add_row(f"... {len(status.operators) - len(shown)} more")
    made.caption = APART if apart(shown) else None
    made.caption_justify = "left"
    return made
