"""`aclnn-cts compare`: what changed between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console

from aclnn_cts.cli.options import command, json_option
from aclnn_cts.cli.output import begin, console, count, emit, joined, show_rows, wrap
from aclnn_cts.core.faults import fault_name

if TYPE_CHECKING:
    from aclnn_cts.triage.comparison import (
        CaseCount,
        CauseCount,
        Comparison,
        EndChange,
        FindingChange,
        RunSide,
        ShareChange,
    )

T = TypeVar("T")

_SHOWN = 12
"""Rows of a table for a person; `--json` has all."""
_CAUSES = 3

_COUNTED = {
    "before": "",
    "after": "",
    "unwaived_before": "",
    "unwaived_after": "",
    "new": "did not fail in A",
    "added": "of trials of B alone",
    "fixed": "pass in B",
    "otherwise": "fail in another way in one of the two",
    "unjudged": "without a verdict in B",
    "removed": "of trials of A alone",
}
"""Figures of a finding, and the words for those that are shown where they are not 0."""


@command(example="aclnn-cts compare runs/before runs/after")
@click.argument("before", metavar="DIR_A", type=click.Path(path_type=Path))
@click.argument("after", metavar="DIR_B", type=click.Path(path_type=Path))
@json_option
def compare(*, before: Path, after: Path, as_json: bool) -> int:
    """Say what changed from run DIR_A to run DIR_B, trial by trial, and why as far as the records tell.

    Exit code 1 where any trial was added, removed, ended otherwise, or moved within its bound.
    """
    begin(f"{before} against {after}")
    from aclnn_cts.triage.compare import compare_runs, comparison_to_json

    found = compare_runs(before, after)
    if as_json:
        emit(comparison_to_json(found))
    else:
        _show(console(), found)
    return 1 if found.changed else 0


def _show(out: Console, found: Comparison) -> None:
    for letter, side in (("A", found.before), ("B", found.after)):
        wrap(out, f"{letter}: {_side(side)}")
    out.print()
    if found.plans_differ:
        wrap(
            out,
            f"the plans differ (seed {found.before.seed} in A, {found.after.seed} in B): few trials were run in both,"
            " and those called new or added were not run before; compare runs of one seed to see changes",
        )
    totals = found.totals()
    words = (
        f"{count(totals['common'], 'trial')} in both: {totals['fixed']} fixed, {totals['still_failing']} still failing,"
        f" {totals['other_ends']} ended otherwise, {totals['moved_shares']} moved within their bounds;"
        f" {totals['new_failures']} new failures; {totals['added_cases']} added, {totals['removed_cases']} removed"
    )
    wrap(out, words)
    if "fuzz" in (found.before.command, found.after.command):
        wrap(
            out,
            "a campaign keeps the records of few of its trials: those of A or B alone may have been run in the other",
        )
    _differences(out, found)
    _findings(out, found.findings, found.before, found.after)
    _section(out, "ended otherwise", found.ends, _end)
    _cases(out, "added: trials of B alone", found.added)
    _cases(out, "removed: trials of A alone", found.removed)
    moved = "moved within their bounds: trials that pass in both, error as a share of the bound"
    _section(out, moved, found.shares, _share)
    if not found.changed:
        out.print("\nno trial was added, removed, ended otherwise, or moved within its bound")


def _side(side: RunSide) -> str:
    profile = f"{side.profile}, " if side.profile else ""
    ran_on = f"; ran on {side.ran_on}" if side.ran_on else ""
    products = joined(side.products) + (" (software device)" if side.software else "")
    unfinished = "" if side.finished else "; not finished: trials that it lacks may not have been reached"
    return (
        f"{side.path}: {side.command} of {side.adapter} for {products}, {profile}seed {side.seed},"
        f" {side.started}: {side.verdict}, {count(side.cases, 'case')}, {side.passed} passed, {side.failed} failed"
        f" ({side.waived} waived), {side.errors} errors, {side.skipped} skipped,"
        f" {side.out_of_scope} out of scope{unfinished}{ran_on}"
    )


def _differences(out: Console, found: Comparison) -> None:
    out.print()
    if not found.differences:
        out.print("what was run, and on what: nothing that is recorded differs")
        return
    rows = [(item.name, _value(item.before), _value(item.after), item.cause or "-") for item in found.differences]
    show_rows(out, ("differs", "A", "B", "may be the cause as"), rows)


def _value(value: object) -> str:
    if value is None:
        return "not stated"
    text = (
        value
        if isinstance(value, str)
        else joined([str(item) for item in value])
        if isinstance(value, list)
        else str(value)
    )
    is_hash = len(text) == 64 and not text.strip("0123456789abcdef")
    return f"{text[:12]}…" if is_hash else text


def _findings(out: Console, findings: Iterable[FindingChange], before: RunSide, after: RunSide) -> None:
    """By state; checks, modes and dtypes are details of a finding."""
    from aclnn_cts.triage.comparison import FindingState

    states: dict[str, list[FindingChange]] = {}
    for item in findings:
        states.setdefault(item.state, []).append(item)
    for state, items in states.items():
        side = None if state == FindingState.STILL else after if state == FindingState.NEW else before
        _section(out, f"{state}: {count(len(items), 'finding')}", items, partial(_finding, side=side))


def _finding(out: Console, item: FindingChange, *, side: RunSide | None) -> None:
    """`side`: the run that has its trial file, where it is not in both."""
    from aclnn_cts.store.run_directory import failure_name

    fingerprint = item.fingerprint
    place = f" of {fingerprint.output}" if fingerprint.output else ""
    operator = fingerprint.operator.removeprefix("aclnn")
    wrap(out, f"{operator}: {fault_name(fingerprint.fault)}{place} ({_details(item)})", indent=2)
    wrap(out, _numbers(item), indent=4)
    _causes(out, item.causes)
    if side is not None:
        wrap(out, f"such as {side.path}/failures/{failure_name(fingerprint)}", indent=4)


def _details(item: FindingChange) -> str:
    fields = ("check", "clause", "mode", "dtype")
    words = [sorted({getattr(each, name) for each in item.fingerprints} - {""}) for name in fields]
    return "; ".join(joined(part) for part in words if part)


def _numbers(item: FindingChange) -> str:
    parts = [f"{item.before} failed in A, {item.after} in B"]
    parts += [f"{number} {words}" for name, words in _COUNTED.items() if words and (number := getattr(item, name))]
    if waivers := {*item.waivers_before, *item.waivers_after}:
        unwaived = f"unwaived {item.unwaived_before} in A, {item.unwaived_after} in B"
        parts.append(f"{unwaived}; waived by {joined(sorted(waivers))}")
    return "; ".join(parts)


def _causes(out: Console, causes: Iterable[CauseCount]) -> None:
    told: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    for cause in causes:
        told[cause.cause, cause.possible, cause.because] += cause.number
    for (name, possible, because), number in told.most_common(_CAUSES):
        perhaps = f", perhaps {joined(possible)}" if possible else ""
        wrap(out, f"cause of {number}: {name}{perhaps} ({because})", indent=4)


def _end(out: Console, item: EndChange) -> None:
    words = f"{item.operator} | {item.check}: {count(item.number, 'trial')} {item.before} in A, {item.after} in B"
    wrap(out, words, indent=2)
    _causes(out, item.causes)


def _cases(out: Console, title: str, cases: tuple[CaseCount, ...]) -> None:
    if not cases:
        return
    out.print()
    rows = [
        (f"{item.operator}, {item.product}", item.check, fault_name(item.kind), str(item.number), str(item.failed))
        for item in cases[:_SHOWN]
    ]
    show_rows(out, (title, "check", "kind", "trials", "failed"), rows)
    _more(out, len(cases))


def _share(out: Console, item: ShareChange) -> None:
    name = " | ".join(part for part in (item.operator, item.mode, item.dtype) if part)
    wrap(
        out,
        f"{name}: worst {_percent(item.before.share)} in A ({item.before.output}),"
        f" {_percent(item.after.share)} in B ({item.after.output}); of {count(item.trials, 'trial')}"
        f" {item.rose} rose, {item.fell} fell",
        indent=2,
    )
    _causes(out, item.causes)


def _section(out: Console, title: str, items: Sequence[T], show: Callable[[Console, T], None]) -> None:
    """A title and the first of the items; nothing where there are none."""
    if not items:
        return
    out.print(f"\n{title}")
    for item in items[:_SHOWN]:
        show(out, item)
    _more(out, len(items))


def _percent(share: float | str) -> str:
    return share if isinstance(share, str) else f"{share:.3%}"


def _more(out: Console, number: int) -> None:
    if number > _SHOWN:
        out.print(f"  and {number - _SHOWN} more; --json has all")
