"""`aclnn-cts judge`: candidates for one operator, each with a verdict within its budget."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from aclnn_cts.cli.options import IntegerWithin, command, json_option, product_option
from aclnn_cts.cli.output import begin
from aclnn_cts.cli.render import Each, Line, View, show
from aclnn_cts.core.verdict import RunVerdict

if TYPE_CHECKING:
    from aclnn_cts.workers.pool import Surroundings

_CANDIDATE: View = (
    Line("{verdict}: {candidate}", style="bold"),
    Line("{passed} of {made:trial} passed within {seconds:.1f} s: {counts}; seed {seed}", indent=2),
    Each(
        "findings",
        (
            Line("{fault}: {sentence}", indent=2),
            Line("clause {clause}", indent=4),
        ),
    ),
    Line("{?inconclusive}{reason}", indent=2),
    Line("{where}", indent=2),
)
_WHERE = {
    "confined": "ran confined, with nothing of the suite in its reach",
    "process": "ran in a process that holds the specs",
    "none": "ran in the caller's process",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """One candidate for a worker."""

    candidate: str
    op: str
    options: dict[str, Any]


def judge_task(task: JudgeTask, given: Surroundings) -> dict[str, Any]:
    """The judgement of one candidate as JSON."""
    from aclnn_cts.candidates.judge import judge as judge_candidate

    return judge_candidate(task.candidate, task.op, workers=given.workers, **task.options).to_json()


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
    product: str | None,
    as_json: bool,
) -> int:
    """Judge implementations of an operator: functions (FILE.py:FUNCTION), shared libraries (FILE.so) or adapters.

    A function runs confined, without network, in a process that finds neither specs nor oracles. Calls are made again
    with other values at equal addresses and with equal values at others. Exit code 0: all conform.
    """
    begin(f"{', '.join(candidates)} as {op}")
    from aclnn_cts.candidates.candidate import runnable
    from aclnn_cts.candidates.check import document
    from aclnn_cts.candidates.judge import seconds_of
    from aclnn_cts.trials.plan import profile as known_profile
    from aclnn_cts.workers.pool import spread

    seconds_of(budget)
    known_profile(profile)
    document(op, product)
    for word in candidates:
        runnable(word)
    options = {
        "budget": budget,
        "seed": seed,
        "reveal": reveal,
        "fail_fast": not to_end,
        "profile": profile,
        "product": product,
    }
    tasks = [JudgeTask(candidate=word, op=op, options=options) for word in candidates]
    verdicts: set[str] = set()
    made = spread(judge_task, tasks, workers=workers, lost=lambda task: f"candidate {task.candidate}")
    with contextlib.closing(made):
        for judgement in made:
            verdicts.add(judgement["verdict"])
            show(judgement, _CANDIDATE, _words(judgement), as_json=as_json)
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
        "made": made,
        "counts": f"{counts}, {judgement['unjudged']} left open" if judgement["unjudged"] else counts,
        "inconclusive": judgement["verdict"] == RunVerdict.INCONCLUSIVE.value,
        "where": f"{where}; not possible here: {missing}" if missing else where,
    }
