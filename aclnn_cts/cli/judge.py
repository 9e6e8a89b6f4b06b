"""`aclnn-cts judge`: candidates for one operator, each with a verdict within its budget."""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aclnn_cts.cli.options import (
    IntegerWithin,
    OutputPath,
    command,
    force_option,
    json_option,
    output_file,
    product_option,
)
from aclnn_cts.cli.output import begin
from aclnn_cts.cli.render import RepeatedView, TextLine, View, show
from aclnn_cts.cli.report import FORMS
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.verdict import RunVerdict

if TYPE_CHECKING:
    from aclnn_cts.workers.pool import Surroundings

_CANDIDATE: View = (
    TextLine("{verdict}: {candidate}", style="bold"),
    TextLine("{passed} of {made:trial} passed within {seconds:.1f} s: {counts}; seed {seed}", indent=2),
    RepeatedView(
        "findings",
        (
            TextLine("{fault}: {sentence}", indent=2),
            TextLine("clause {clause}", indent=4),
        ),
    ),
    TextLine("{?inconclusive}{reason}", indent=2),
    TextLine("{where}", indent=2),
)
_WHERE = {
    "confined": "ran confined to the system, Python and its own folder",
    "process": "ran in a process that holds the specs",
    "none": "ran in the caller's process",
    "unopened": "was not run: it could not be opened",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """One candidate for a worker."""

    candidate: str
    op: str
    options: dict[str, Any]


def judge_task(task: JudgeTask, given: Surroundings) -> dict[str, Any]:
    """The judgement of one candidate as JSON; what is wrong with it keeps no other from being judged."""
    from aclnn_cts.candidates.judge import judge as judge_candidate
    from aclnn_cts.candidates.judge import judgement_without_opening

    try:
        judgement = judge_candidate(task.candidate, task.op, workers=given.workers, **task.options)
    except (HarnessError, UsageError) as error:
        kept = {name: task.options[name] for name in ("product", "seed", "reveal")}
        judgement = judgement_without_opening(task.candidate, task.op, error, **kept)
    return judgement.to_json()


@command(example="aclnn-cts judge kernel.py:softmax_backward --op softmax_backward --budget 10s")
@click.argument("candidates", nargs=-1, required=True, metavar="CANDIDATE...")
@click.option("--op", required=True, metavar="OP", help="The operator that the candidates implement.")
@click.option("--budget", default="10s", show_default=True, metavar="TIME", help="Time for each candidate.")
@click.option("--seed", type=IntegerWithin(0, 2**63 - 1), metavar="S", help="Make the calls of an earlier judgement.")
@click.option("--reveal", default=1, show_default=True, type=IntegerWithin(0), metavar="N", help="Findings to show.")
@click.option("--all", "to_end", is_flag=True, help="Go on after the first failure.")
@click.option("--profile", default="quick", show_default=True, metavar="NAME", help="quick, standard or thorough.")
@click.option(
    "--workers", default=1, show_default=True, type=IntegerWithin(1, 256), metavar="N", help="Candidates at once."
)
@click.option("--junit", type=OutputPath(), metavar="FILE", help="Also write a JUnit file: a test for each candidate.")
@click.option("--sarif", type=OutputPath(), metavar="FILE", help="Also write a SARIF file: a result for each finding.")
@force_option
@product_option
@json_option
def judge(  # noqa: PLR0913 - one parameter an option
    *,
    candidates: tuple[str, ...],
    op: str,
    budget: str,
    seed: int | None,
    reveal: int,
    to_end: bool,
    profile: str,
    workers: int,
    junit: Path | None,
    sarif: Path | None,
    product: str | None,
    as_json: bool,
) -> int:
    """Judge implementations of an operator: functions (FILE.py:FUNCTION), shared libraries (FILE.so) or adapters.

    A function runs confined, without network, in a process that finds neither specs nor oracles. Calls are made again
    with other values at equal addresses and with equal values at others. Exit code 0: all conform.
    """
    begin(f"{', '.join(candidates)} as {op}")
    from aclnn_cts.candidates.check import judged_document
    from aclnn_cts.candidates.judge import seconds_of
    from aclnn_cts.trials.plan import profile as known_profile
    from aclnn_cts.workers.pool import spread

    seconds_of(budget)
    known_profile(profile)
    files = {
        name: output_file(path, written_by_us=FORMS[name].written_by_us, option=f"--{name}")
        for name, path in (("junit", junit), ("sarif", sarif))
        if path is not None
    }
    judged_document(op, product)
    options = {
        "budget": budget,
        "seed": seed,
        "reveal": reveal,
        "fail_fast": not to_end,
        "profile": profile,
        "product": product,
    }
    tasks = [JudgeTask(candidate=word, op=op, options=options) for word in candidates]
    judgements: list[dict[str, Any]] = []
    made = spread(judge_task, tasks, workers=workers, lost=lambda task: f"candidate {task.candidate}")
    with contextlib.closing(made):
        for judgement in made:
            judgements.append(judgement)
            show(judgement, _CANDIDATE, _words(judgement), as_json=as_json)
    for name, file in files.items():
        # By its name, as `report` does: the report's libraries are an extra.
        form = getattr(importlib.import_module("aclnn_cts.reports.judgements"), f"judgements_{name}")
        file.write(form(judgements))
    verdicts = {item["verdict"] for item in judgements}
    if RunVerdict.FAILS.value in verdicts:
        return 1
    return 3 if RunVerdict.INCONCLUSIVE.value in verdicts else 0


def _words(judgement: dict[str, Any]) -> dict[str, Any]:
    """What the text has beside the document."""
    missing = ", ".join(judgement["missing"])
    where = _WHERE[judgement["isolation"]]
    made = judgement["passed"] + judgement["failed"] + judgement["unjudged"]
    counts = f"{made - judgement['repeated']} of {judgement['planned']} planned, {judgement['repeated']} repeated"
    return {
        # Without a trial there is no line of counts.
        "made": made or None,
        "counts": f"{counts}, {judgement['unjudged']} left open" if judgement["unjudged"] else counts,
        "inconclusive": judgement["verdict"] == RunVerdict.INCONCLUSIVE.value,
        "where": f"{where}; not possible here: {missing}" if missing else where,
    }
