"""How a campaign ends: its summary in sixteen lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aclnn_cts.campaign.session import Ended
from aclnn_cts.campaign.status import OperatorStatus, Status
from aclnn_cts.cli.campaign_words import (
    APART,
    apart,
    beside,
    brief,
    described,
    operator_table,
    percent,
    standing,
    worst,
)
from aclnn_cts.cli.output import LONGEST_LINE, count, show_table, span, wrap
from aclnn_cts.cli.screen import verdict_style
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.store.run_directory import FAILURES
from aclnn_cts.store.run_verdict import explained, headline
from aclnn_cts.store.summary import result_line

__all__ = ["show_campaign_end"]

LINES = 16
OPERATORS_SHOWN, FEW = 5, 3
"""Operators that are shown, and where findings need the room."""
VIOLATIONS_SHOWN = 3
CAUSES_SHOWN, CAUSES_BESIDE_FINDINGS = 4, 1
"""Lines of why a campaign is inconclusive."""


def show_campaign_end(out: Console, ended: Ended, path: Path) -> None:
    """The verdict, operators, findings, the next command and the RESULT line.

    Sixteen lines, of which each fits the width on a terminal; elsewhere a line is as long as what it says.
    """
    status, summary = ended.status, ended.summary
    on = f" on {status.ran_on}" if status.ran_on else ""
    before = f"{span(status.seconds)}{on}, {summary.total.cases} cases in {count(status.chunks, 'chunk')}: {ended.why}."
    violations = [Text(text, style="red") for text in summary.violations[:VIOLATIONS_SHOWN]]
    if len(summary.violations) > VIOLATIONS_SHOWN:
        violations.append(Text(f"... and {len(summary.violations) - VIOLATIONS_SHOWN} more in {path / 'summary.json'}"))
    found = sorted(standing(status), key=lambda each: -each.failures)
    if summary.verdict == RunVerdict.INCONCLUSIVE:
        causes = islice(explained(summary.conclusion), CAUSES_BESIDE_FINDINGS if found else CAUSES_SHOWN)
        violations += [Text(line, style="yellow") for line in causes]
    verdict = Text(f"Verdict: {headline(summary.conclusion)}.", style=verdict_style(summary.verdict))
    report, result = f"Next: aclnn-cts report {shlex.quote(str(path))} -o report.html", result_line(summary, path)
    # Without operators and findings; two lines more have the heads of both.
    lines = (
        _height(out, verdict.plain)
        + len(Text(before).wrap(out, min(out.width, LONGEST_LINE)))
        + _height(out, report)
        + _height(out, result)
    )
    room = LINES - 2 - lines - len(violations)
    operators, rest = _operators(status.operators, room, len(found))
    with_note = apart(operators)
    room -= len(operators) + with_note
    out.print(verdict, soft_wrap=True)
    wrap(out, before)
    show_table(out, _table(operators, len(operators) + rest, out.width))
    if with_note:
        _print(out, Text(APART))
    title = _title(status, len(found), min(room, len(found)), terminal=out.is_terminal)
    _print(out, Text(title))
    for finding in found[:room]:
        _print(out, Text(brief(finding) if out.is_terminal else f"  {described(finding)}", style="red"))
    for text in violations:
        _print(out, text)
    out.print(report, soft_wrap=True)
    sys.stdout.flush()
    click.echo(result)


def _operators(operators: Sequence[OperatorStatus], room: int, findings: int) -> tuple[list[OperatorStatus], int]:
    """Those that are shown, and how many are left out: more of them where findings need no more room."""
    ordered = worst(operators)
    room -= apart(ordered[:OPERATORS_SHOWN])
    most = max(min(OPERATORS_SHOWN, room - findings), min(FEW, room - 2), 1)
    return ordered[:most], len(ordered) - len(ordered[:most])


def _title(status: Status, number: int, shown: int, *, terminal: bool) -> str:
    title = f"{count(number, 'finding')}, {beside(status)}"
    if not number:
        return title
    what = f"; the most frequent {shown}" if shown < number else ""
    return f"{title}{what}; trial files {FAILURES}/*DIGITS.json:" if terminal else f"{title}{what}:"


def _table(operators: Sequence[OperatorStatus], number: int, width: int) -> Table:
    head = "operator" if number <= len(operators) else f"operator (worst {len(operators)} of {number})"
    names = [item.name.removeprefix("aclnn") for item in operators]
    pairs = [Text(percent(item.coverage["pairs"]), justify="right") for item in operators]
    return operator_table(head, names, operators, pairs, width=width)


def _height(out: Console, text: str) -> int:
    """Lines that a text takes."""
    return max(-(-cell_len(text) // out.width), 1) if out.is_terminal else 1


def _print(out: Console, text: Text) -> None:
    """A line: cut to the width on a terminal, in full elsewhere."""
    if out.is_terminal:
        text.truncate(out.width, overflow="ellipsis")
    out.print(text, soft_wrap=True)
