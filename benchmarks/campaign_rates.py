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
from aclnn_cts.cli.output import show_table, table, wrap
from aclnn_cts.core.case import Case
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.campaign.chunk import RANDOM, Chunk, chunk_trials
from aclnn_cts.engine.campaign.jobs import WorkerOptions
from aclnn_cts.engine.campaign.worker import CampaignWorker, open_worker
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.generate.strategies import valid_cases
from aclnn_cts.spec.model import Spec
from benchmarks.hypothesis_driver import plain_examples
from benchmarks.measure import Figure, geometric_mean, interleave, rate, ratio

__all__ = ["CASES", "open_alone", "random_chunk", "rates"]

CASES, PLAIN_CASES = 1000, 100
"""Of a round."""


def random_chunk(spec: Spec, number: int, draws: int) -> Chunk:
    """A chunk of random cases and nothing else."""
    return Chunk(index=number, seed=1, snapshot="", phase=RANDOM, operator=spec.operator, draws=draws)


@contextlib.contextmanager
def open_alone(adapter: str, target: Target) -> Iterator[CampaignWorker]:
    """A campaign's worker in this process, closed afterwards."""
    settings = BenchSettings(adapter=adapter, target=target)
    worker = open_worker(WorkerOptions(settings=settings, waivers=(), chunk_seconds=3600.0), None)
    with worker.bench.host:
        yield worker


def _bare(bench: Bench, spec: Spec, draws: int) -> Callable[[int], int]:
    """Generator, adapter and judge, and nothing else."""

    def work(number: int) -> int:
        trials = [item.trial for item in chunk_trials(random_chunk(spec, number, draws), bench.sampler(spec))]
        return sum(len(judged.records) for judged in bench.run(trials))

    return work


def _campaign(worker: CampaignWorker, spec: Spec, draws: int) -> Callable[[int], int]:
    def work(number: int) -> int:
        return worker.judge(random_chunk(spec, number, draws)).summary.total.cases

    return work


def _hypothesis(bench: Bench, spec: Spec, draws: int) -> Callable[[int], int]:
    """The same cases drawn by Hypothesis, one judged at a time."""
    strategy = valid_cases(spec, bench.settings.target)

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
            for judged in bench.run([Trial("values", case)]):
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
    from benchmarks.plain import PLAIN, use_one_thread  # noqa: PLC0415 - it imports torch

    use_one_thread()
    return plain_examples(PLAIN[spec.operator], PLAIN_CASES, _Uncounted(), dense=True, kernel=False)


def rates(out: Console, chosen: Sequence[Spec], target: Target, rounds: int) -> None:
    """Judged cases a second against a plain search, and what isolation and the campaign itself cost."""
    with open_alone("reference", target) as worker, contextlib.ExitStack() as stack:
        _against_plain(out, chosen, worker, rounds)
        try:
            device: CampaignWorker | None = stack.enter_context(open_alone("loopback", target))
        except HarnessError as error:
            wrap(out, f"no software device: {error}")
            device = None
        _of_the_engine(out, chosen, worker, device, rounds)


def _against_plain(out: Console, chosen: Sequence[Spec], worker: CampaignWorker, rounds: int) -> None:
    section = _Rates(("no adapter", "plain", "ratio"), (".0f", ".0f", ".1f"))
    plainly = _plainly if importlib.util.find_spec("torch") is not None else None
    for spec in chosen:
        plain = None if plainly is None else plainly(spec)
        own, written = [], []
        for number in range(rounds + 1):
            own.append(_without_adapter(worker, spec, number))
            if plain is not None:
                written.append(rate(plain, number))
        ours = Figure(tuple(own[1:]))
        theirs = Figure(tuple(written[1:])) if written else None
        section.add(spec, ours, theirs, None if theirs is None else ratio(ours, theirs))
    section.show(
        out,
        "Judged cases a second of processor time, tensors up to 1,024 elements. no adapter: the reference, its own "
        "time taken out (goal 3,000); plain: the search written plainly in Hypothesis, its arrays of up to 256 "
        "elements drawn one by one, NumPy in float64 and torch.testing.assert_close, without a kernel; ratio: goal 10",
    )
    if plainly is None:
        wrap(out, 'torch is not installed, whose assert_close the plain search calls: pip install "aclnn-cts[torch]"')


def _of_the_engine(
    out: Console, chosen: Sequence[Spec], worker: CampaignWorker, device: CampaignWorker | None, rounds: int
) -> None:
    section = _Rates(("device", "overhead", "by Hypothesis", "ratio"), (".0f", ".2f", ".0f", ".1f"))
    for spec in chosen:
        works = (
            _campaign(worker, spec, CASES),
            _bare(worker.bench, spec, CASES),
            _hypothesis(worker.bench, spec, CASES // 5),
        )
        campaign, bare, by_hypothesis = interleave(works, rounds)
        isolated = None
        if device is not None:
            [isolated] = interleave((_campaign(device, spec, CASES),), rounds)
        section.add(spec, isolated, ratio(bare, campaign), by_hypothesis, ratio(campaign, by_hypothesis))
    section.show(
        out,
        "The same on the software device, isolated (goal 1,000); overhead: the bare loop of generator, adapter and "
        "judge over the campaign (goal at most 1.10); by Hypothesis: the campaign's own cases, drawn and judged one "
        "by one by it, and the ratio to that",
    )


class _Rates:
    """A table with a row an operator and their geometric mean; None: not measured."""

    def __init__(self, columns: tuple[str, ...], forms: tuple[str, ...]) -> None:
        self._table = table("operator", *columns)
        for column in self._table.columns[1:]:
            column.justify = "right"
        self._forms = forms
        self._columns: list[list[Figure]] = [[] for _ in columns]

    def add(self, spec: Spec, *figures: Figure | None) -> None:
        for column, figure in zip(self._columns, figures, strict=True):
            if figure is not None:
                column.append(figure)
        self._row(spec.operator.removeprefix("aclnn"), figures)

    def _row(self, name: str, figures: Sequence[Figure | None]) -> None:
        cells = (
            "-" if figure is None else figure.text(form) for figure, form in zip(figures, self._forms, strict=True)
        )
        self._table.add_row(name, *cells)

    def show(self, out: Console, title: str) -> None:
        self._row("geometric mean", [geometric_mean(column) if column else None for column in self._columns])
        wrap(out, title)
        show_table(out, self._table)
        out.print()


def _without_adapter(worker: CampaignWorker, spec: Spec, number: int) -> float:
    """Cases a second with the time that the adapter itself took subtracted."""
    host = worker.bench.host
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
        cases = worker.judge(random_chunk(spec, number, CASES)).summary.total.cases
        return cases / (time.process_time() - began - spent)
    finally:
        host.run = original  # type: ignore[method-assign]  # as it was
