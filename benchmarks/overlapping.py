"""What it saves that an isolated implementation is at work on the next batch while one is judged, by the wall."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console

from aclnn_cts.cli.output import show_table, table, wrap
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.target import Target
from aclnn_cts.runs.campaign.worker import CampaignWorker
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import plan_parts, profile
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.campaign_rates import CASES, open_alone, random_chunk
from benchmarks.measure import Figure, geometric_mean
from benchmarks.stored import Rounds

NAME = "overlap"
"""Of the stored figures, which are called `<adapter>, <column>`."""

COLUMNS = ("a chunk", "a quick run's plan")

ADAPTERS = {"loopback": "loopback", "torch": "torch", "waits 0.5 ms": "benchmarks.waiting_device:Waiting"}
"""By what the table calls them; the last is the reference, whose calls wait as those of a device elsewhere."""

NEEDED = tuple(ADAPTERS)


def overlap(out: Console, chosen: Sequence[Spec], target: Target, rounds: int) -> Rounds:
    """Of a campaign's chunk and of a run's plan: the means over the operators."""
    made = table("adapter", "operator", *COLUMNS)
    means: dict[str, tuple[float, ...]] = {}
    for name, adapter in ADAPTERS.items():
        columns: tuple[list[Figure], ...] = ([], [])
        try:
            with open_alone(adapter, target) as worker:
                for spec in chosen:
                    works = (_chunk(worker, spec), _plan(worker.runner, spec))
                    figures = [_saved(worker.runner, work, rounds) for work in works]
                    for column, figure in zip(columns, figures, strict=True):
                        column.append(figure)
                    made.add_row(name, spec.operator.removeprefix("aclnn"), *(item.text(".2f") for item in figures))
        except HarnessError as error:
            wrap(out, f"{name}: {error}")
            continue
        found = [geometric_mean(column) for column in columns]
        made.add_row(name, "geometric mean", *(item.text(".2f") for item in found))
        means |= {f"{name}, {label}": item.values for label, item in zip(COLUMNS, found, strict=True)}
    wrap(
        out,
        "Wall time of one batch after the other over that with the next batch under way while one is judged, in turns "
        "(above 1: overlapping is faster)",
        style="bold",
    )
    show_table(out, made)
    out.print()
    return means


def _chunk(worker: CampaignWorker, spec: Spec) -> Callable[[int], object]:
    return lambda number: worker.judge(random_chunk(spec, number, CASES))


def _plan(runner: TrialRunner, spec: Spec) -> Callable[[int], object]:
    """The parts of a quick run, as one worker of it runs them."""
    parts = plan_parts([spec], product=runner.settings.target.product, chosen=profile("quick"))
    return lambda number: sum(len(judged.records) for _, _, judged in runner.run_parts(parts, seed=number))


def _saved(runner: TrialRunner, work: Callable[[int], object], rounds: int) -> Figure:
    """Wall time without over with, round by round."""
    work(0)
    values = []
    for number in range(1, rounds + 1):
        seconds = {}
        for overlapped in (number % 2 == 0, number % 2 == 1):
            runner.overlapped = overlapped
            began = time.perf_counter()
            work(number)
            seconds[overlapped] = time.perf_counter() - began
        values.append(seconds[False] / seconds[True])
    runner.overlapped = True
    return Figure(tuple(values))
