"""`aclnn-cts compare`: what changed between two runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aclnn_cts.cli.options import command, json_option
from aclnn_cts.cli.output import begin, join_words
from aclnn_cts.cli.render import Fields, RepeatedView, TableView, TextLine, View, show
from aclnn_cts.core.faults import fault_name

if TYPE_CHECKING:
    from aclnn_cts.triage.comparison import FindingChange, RunComparison

_SHOWN = 12
"""Rows of a table for a person; `--json` has all."""

_CASES = {
    "operator": "{operator}, {product}",
    "check": "{check}",
    "kind": "{kind}",
    "trials": "{number}",
    "failed": "{failed}",
}

_SIDE = (
    "{letter}: {path}: {command} of {adapter} for {products}[{?software} (software device)],[ {profile},] seed {seed},"
    " {started}: {verdict}, {cases:case}, {passed} passed, {failed} failed ({waived} waived), {errors} errors,"
    " {skipped} skipped, {out_of_scope} out of scope[{!finished}; not finished: trials that it lacks may not have been"
    " reached][; ran on {ran_on}]"
)

_VIEW: View = (
    RepeatedView("sides", (_SIDE,)),
    "",
    TextLine(
        "{?plans_differ}the plans differ (seed {before.seed} in A, {after.seed} in B): few trials were run in both, and"
        " those called new or added were not run before; compare runs of one seed to see changes"
    ),
    TextLine(
        "{totals.common:trial} in both: {totals.fixed} fixed, {totals.still_failing} still failing, {totals.other_ends}"
        " ended otherwise, {totals.moved_shares} moved within their bounds; {totals.new_failures} new failures;"
        " {totals.added_cases} added, {totals.removed_cases} removed"
    ),
    TextLine(
        "{?campaign}a campaign keeps the records of few of its trials: those of A or B alone may have been run in the"
        " other"
    ),
    "",
    "{!differences}what was run, and on what: nothing that is recorded differs",
    TableView("differs", {"differs": "{name}", "A": "{before|not stated}", "B": "{after|not stated}"}),
    RepeatedView(
        "states",
        (
            "",
            "{state}: {findings:finding}",
            RepeatedView(
                "findings",
                (
                    TextLine("{short}: {fault}[ of {fingerprint.output}][ ({details})]", indent=2),
                    TextLine(
                        "{before} failed in A, {after} in B[; {new} did not fail in A][; {added} of trials of B alone]"
                        "[; {fixed} pass in B][; {otherwise} fail in another way in one of the two][; {unjudged}"
                        " without a verdict in B][; {removed} of trials of A alone][{?waivers}; unwaived"
                        " {unwaived_before|0} in A, {unwaived_after|0} in B; waived by {waivers}]",
                        indent=4,
                    ),
                    TextLine("such as {file}", indent=4),
                ),
                most=_SHOWN,
            ),
        ),
    ),
    RepeatedView(
        "ends",
        (TextLine("{operator} | {check}: {number:trial} {before} in A, {after} in B", indent=2),),
        most=_SHOWN,
        title="ended otherwise",
    ),
    TableView("added", _CASES, most=_SHOWN, title="added: trials of B alone"),
    TableView("removed", _CASES, most=_SHOWN, title="removed: trials of A alone"),
    RepeatedView(
        "shares",
        (
            TextLine(
                "{operator}[ | {mode}][ | {dtype}]: worst {before.percent} in A ({before.output}), {after.percent} in B"
                " ({after.output}); of {trials:trial} {rose} rose, {fell} fell",
                indent=2,
            ),
        ),
        most=_SHOWN,
        title="moved within their bounds: trials that pass in both, error as a share of the bound",
    ),
    "{!changed}",
    "{!changed}no trial was added, removed, ended otherwise, or moved within its bound",
)


@command(example="aclnn-cts compare runs/before runs/after")
@click.argument("before", metavar="DIR_A", type=click.Path(path_type=Path))
@click.argument("after", metavar="DIR_B", type=click.Path(path_type=Path))
@json_option
def compare(*, before: Path, after: Path, as_json: bool) -> int:
    """Say what changed from run DIR_A to run DIR_B: findings that are new, fixed or still failing, trial by trial.

    Exit code 1 where any trial was added, removed, ended otherwise, or moved within its bound.
    """
    begin(f"{before} against {after}")
    from aclnn_cts.triage.compare import compare_runs, comparison_to_json

    found = compare_runs(before, after)
    document = comparison_to_json(found)
    show(document, _VIEW, {} if as_json else _words(found, document), as_json=as_json)
    return 1 if found.changed else 0


def _words(found: RunComparison, document: Fields) -> Fields:
    """What the text says in other words than the document."""
    states: dict[str, list[Fields]] = {}
    for change, fields in zip(found.findings, document["findings"], strict=True):
        states.setdefault(change.state, []).append({**fields, **_finding(change, found)})
    cases = {
        name: [{**item, "kind": fault_name(item["kind"])} for item in document[name]] for name in ("added", "removed")
    }
    return {
        **cases,
        "sides": [{"letter": "A", **document["before"]}, {"letter": "B", **document["after"]}],
        "plans_differ": found.plans_differ,
        "campaign": "fuzz" in (found.before.command, found.after.command),
        "differs": [{name: _short(value) for name, value in item.items()} for item in document["differences"]],
        "states": [{"state": state, "findings": items} for state, items in states.items()],
        "shares": [
            {**item, **{side: {**item[side], "percent": _percent(item[side]["share"])} for side in ("before", "after")}}
            for item in document["shares"]
        ],
    }


def _finding(item: FindingChange, found: RunComparison) -> Fields:
    """A finding's names, and its trial file where one run alone has it."""
    from aclnn_cts.core.finding import failure_name
    from aclnn_cts.triage.comparison import FindingState

    side = found.after if item.state == FindingState.NEW else found.before
    is_of_one = item.state != FindingState.STILL
    return {
        "short": item.fingerprint.operator.removeprefix("aclnn"),
        "fault": fault_name(item.fingerprint.fault),
        "details": "; ".join(_details(item)),
        "waivers": sorted({*item.waivers_before, *item.waivers_after}),
        "file": f"{side.path}/failures/{failure_name(item.fingerprint)}" if is_of_one else None,
    }


def _details(item: FindingChange) -> Iterator[str]:
    """Checks, clauses, modes and dtypes of a finding."""
    for name in ("check", "clause", "mode", "dtype"):
        if words := sorted({getattr(each, name) for each in item.fingerprints} - {""}):
            yield join_words(words)


def _short(value: object) -> object:
    return f"{value[:12]}…" if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else value


def _percent(error_ratio: float | str) -> str:
    return error_ratio if isinstance(error_ratio, str) else f"{error_ratio:.3%}"
