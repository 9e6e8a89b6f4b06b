"""Judged cases a second: of a campaign's worker, of the bare loop, and of the same search written plainly."""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence

import hypothesis
from hypothesis import HealthCheck, Phase
from rich.console import Console

from aclnn_cts.adapters.protocol import Call
from aclnn_cts.cli.output import wrap
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.strategies import valid_cases
from aclnn_cts.runs.campaign.corpus.schedule import RANDOM, Chunk, chunk_trials
from aclnn_cts.runs.campaign.jobs import CampaignService
from aclnn_cts.runs.campaign.resuming import CHUNK_TRIALS
from aclnn_cts.runs.campaign.worker import CampaignWorker, open_worker
from aclnn_cts.sandbox.limits import freeze_objects
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.hypothesis_driver import plain_examples
from benchmarks.measure import interleave, rate, stay_on_one_core
from benchmarks.shown import Row, row
from benchmarks.stored import Rounds, figures_of
from benchmarks.tables import Column, mean, mean_ratio, show_operators, slowest_and_fastest

NAME = "campaign-rates"
"""Of the stored figures."""

OWN, PLAIN = "without the adapter's time", "plain search"
DEVICE, CAMPAIGN, BARE = "software device", "campaign", "bare loop"
BY_HYPOTHESIS = "campaign's cases by Hypothesis"
NEEDED = (OWN, PLAIN, DEVICE, CAMPAIGN, BARE, BY_HYPOTHESIS)

CASES, PLAIN_CASES = 1000, 100
"""Of a turn; a whole chunk where the campaign is measured by itself."""
TURNS = 3
"""Of a round, where what is compared takes nearly the same time."""


def random_chunk(spec: Spec, number: int, draws: int) -> Chunk:
    """A chunk of random cases and nothing else."""
    return Chunk(index=number, seed=1, snapshot="", phase=RANDOM, operator=spec.operator, draws=draws)


@contextlib.contextmanager
def open_alone(adapter: str, target: Target) -> Iterator[CampaignWorker]:
    """A campaign's worker in this process, closed afterwards."""
    settings = RunnerSettings(adapter=adapter, target=target)
    worker = open_worker(CampaignService(settings=settings, waivers=(), chunk_seconds=3600.0), None)
    with worker.runner.host:
        yield worker


def _bare(runner: TrialRunner, spec: Spec, draws: int) -> Callable[[int], int]:
    """Generator, adapter and judge, and nothing else."""

    def work(number: int) -> int:
        trials = [item.trial for item in chunk_trials(random_chunk(spec, number, draws), runner.sampler(spec))]
        return sum(len(judged.records) for judged in runner.run(trials))

    return work


def _campaign(worker: CampaignWorker, spec: Spec, draws: int) -> Callable[[int], int]:
    def work(number: int) -> int:
        return worker.judge(random_chunk(spec, number, draws)).summary.total.cases

    return work


def _hypothesis(runner: TrialRunner, spec: Spec, draws: int) -> Callable[[int], int]:
    """The same cases drawn by Hypothesis, one judged at a time."""
    strategy = valid_cases(spec, runner.settings.target)

    def work(number: int) -> int:
        done = 0

        @hypothesis.seed(number)
        @hypothesis.settings(
            max_examples=draws,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(strategy)
        def test(case: Case) -> None:
            nonlocal done
            for judged in runner.run([Trial("values", case)]):
                done += len(judged.records)

        test()
        return done

    return work


class _Uncounted:
    """What `plain_examples` tells, for nobody."""

    calls = 0
    elements = 0


def _plainly(spec: Spec) -> Callable[[int], int]:
    """The search as one writes it without this project, and without the time of a kernel."""
    from benchmarks.plain import PLAIN as TESTS  # noqa: PLC0415 - it imports torch
    from benchmarks.plain import use_one_thread  # noqa: PLC0415 - as above

    use_one_thread()
    return plain_examples(TESTS[spec.operator], PLAIN_CASES, _Uncounted(), dense=True, kernel=False)


def rates(out: Console, chosen: Sequence[Spec], target: Target, rounds: int, *, alone: bool = False) -> Rounds:
    """Judged cases a second against a plain search, and what isolation and the campaign itself cost.

    `alone`: the searches that these are compared with are left out.
    """
    stay_on_one_core()
    with open_alone("reference", target) as worker, contextlib.ExitStack() as stack:
        found = _against_plain(out, chosen, worker, rounds, alone=alone)
        try:
            device: CampaignWorker | None = stack.enter_context(open_alone("loopback", target))
        except HarnessError as error:
            wrap(out, f"no software device: {error}")
            device = None
        return {**found, **_of_the_engine(out, chosen, worker, device, rounds, alone=alone)}


def shown(rounds: Rounds) -> Iterator[Row]:
    """The geometric means over the operators; what was not measured is left out."""
    yield row(
        "judged cases a second, the reference adapter's own time taken out",
        mean(rounds, OWN),
        least=3000,
        note=slowest_and_fastest(rounds, OWN),
    )
    if figures_of(rounds, PLAIN):
        yield row(
            "the same over the same search written plainly in Hypothesis (its arrays, NumPy in float64, "
            "`assert_close`), without a kernel",
            mean_ratio(rounds, OWN, PLAIN),
            ".1f",
            unit="times",
            least=10,
        )
    if figures_of(rounds, DEVICE):
        yield row(
            "judged cases a second through the isolated software device",
            mean(rounds, DEVICE),
            least=1000,
            note=slowest_and_fastest(rounds, DEVICE),
        )
    yield row("bare loop over campaign", mean_ratio(rounds, BARE, CAMPAIGN), ".2f", most=1.1)
    yield row(
        "judged cases a second over a campaign's own cases, drawn and judged one by one by Hypothesis",
        mean_ratio(rounds, CAMPAIGN, BY_HYPOTHESIS),
        ".1f",
        unit="times",
    )


def _against_plain(out: Console, chosen: Sequence[Spec], worker: CampaignWorker, rounds: int, *, alone: bool) -> Rounds:
    found = {}
    has_torch = importlib.util.find_spec("torch") is not None
    plainly = _plainly if has_torch and not alone else None
    searches = {spec.operator: plainly(spec) for spec in chosen} if plainly is not None else {}
    freeze_objects()  # what the plain way has imported too, which is in no campaign's worker
    for spec in chosen:
        plain = searches.get(spec.operator)
        own, written = [], []
        for number in range(rounds + 1):
            own.append(_without_adapter(worker, spec, number))
            if plain is not None:
                written.append(rate(plain, number))
        found[f"{OWN}, {spec.operator}"] = tuple(own[1:])
        if written:
            found[f"{PLAIN}, {spec.operator}"] = tuple(written[1:])
    show_operators(
        out,
        "Judged cases a second of processor time, tensors up to 1,024 elements",
        [
            Column(title="no adapter", name=OWN),
            Column(title="plain", name=PLAIN),
            Column(title="ratio", name=OWN, over=PLAIN, form=".1f"),
        ],
        found,
    )
    if alone:
        return found
    wrap(
        out,
        "no adapter: the reference, its own time taken out; plain: the search written plainly in Hypothesis, its "
        "arrays of up to 256 elements drawn one by one, NumPy in float64 and torch.testing.assert_close, without a "
        "kernel",
    )
    if not has_torch:
        wrap(out, 'torch is not installed, whose assert_close the plain search calls: pip install "aclnn-cts[torch]"')
    out.print()
    return found


def _of_the_engine(
    out: Console,
    chosen: Sequence[Spec],
    worker: CampaignWorker,
    device: CampaignWorker | None,
    rounds: int,
    *,
    alone: bool,
) -> Rounds:
    found = {}
    for spec in chosen:
        works = {CAMPAIGN: _campaign(worker, spec, CASES), BARE: _bare(worker.runner, spec, CASES)}
        if not alone:
            works[BY_HYPOTHESIS] = _hypothesis(worker.runner, spec, CASES // 5)
        for name, figure in zip(works, interleave(tuple(works.values()), rounds, turns=TURNS), strict=True):
            found[f"{name}, {spec.operator}"] = figure.values
        if device is not None:
            [isolated] = interleave((_campaign(device, spec, CASES),), rounds)
            found[f"{DEVICE}, {spec.operator}"] = isolated.values
    show_operators(
        out,
        "The same on the software device and by Hypothesis",
        [
            Column(title="device", name=DEVICE),
            Column(title="overhead", name=BARE, over=CAMPAIGN, form=".2f"),
            Column(title="by Hypothesis", name=BY_HYPOTHESIS),
            Column(title="ratio", name=CAMPAIGN, over=BY_HYPOTHESIS, form=".1f"),
        ],
        found,
    )
    if alone:
        return found
    wrap(
        out,
        "device: isolated; overhead: the bare loop of generator, adapter and judge over the campaign, both on the "
        "reference; by Hypothesis: the campaign's own cases, drawn and judged one by one by it, and the ratio to that",
    )
    out.print()
    return found


def _without_adapter(worker: CampaignWorker, spec: Spec, number: int) -> float:
    """Cases a second with the time that the adapter itself took subtracted."""
    host = worker.runner.host
    spent = 0.0
    original = host.run

    def timed(calls: Sequence[Call]) -> list[Outcome]:
        nonlocal spent
        began = time.process_time()
        try:
            return original(calls)
        finally:
            spent += time.process_time() - began

    host.run = timed  # type: ignore[method-assign]  # for this measurement alone
    try:
        began = time.process_time()
        cases = worker.judge(random_chunk(spec, number, CHUNK_TRIALS)).summary.total.cases
        return cases / (time.process_time() - began - spent)
    finally:
        host.run = original  # type: ignore[method-assign]  # as it was
