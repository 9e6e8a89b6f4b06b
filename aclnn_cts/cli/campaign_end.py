"""How a campaign ends: as a run does, with what it covered."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aclnn_cts.campaign.session import Ended
from aclnn_cts.campaign.status import Status
from aclnn_cts.cli.campaign_words import APART, apart, operator_table, percent, worst
from aclnn_cts.cli.output import count, span
from aclnn_cts.cli.screen import OPERATORS_SHOWN, short_name, show_end
from aclnn_cts.findings.finding import Confirmed
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.run_directory import failure_name

__all__ = ["show_campaign_end"]


def show_campaign_end(out: Console, ended: Ended, path: Path, specs: Specs) -> None:
    """The verdict, operators with their coverage, findings, the next command and the RESULT line."""
    status = ended.status
    show_end(
        out,
        ended.summary,
        path,
        specs,
        session=f"{span(status.seconds)}, {count(status.chunks, 'chunk')}: {ended.why}.",
        operators=_table(status, out.width),
        confirmed={
            failure_name(finding.signature): finding.confirmed or "to be confirmed"
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
