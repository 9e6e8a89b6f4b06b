"""Cases and time until a rare fault is found: by a campaign's chunks, and by a plain search in Hypothesis."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator

import hypothesis
import msgspec
from hypothesis import HealthCheck, Phase
from rich.console import Console

from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.cli.output import show_table, table, wrap
from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.generate.strategies import valid_cases
from aclnn_cts.runs.campaign.corpus.check_coverage import CoverageFactors, check_coverage
from aclnn_cts.runs.campaign.corpus.schedule import Chunk, CorpusUpdate, Schedule, Snapshot, take_snapshot
from aclnn_cts.runs.campaign.worker import CampaignWorker
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.measure import processor_seconds
from benchmarks.rare_faults import FAULTS
from benchmarks.shown import Row
from benchmarks.stored import Rounds, figures_of

NAME = "campaign-faults"
"""Of the stored figures."""

NEEDED = ("plain cases", "campaign cases", "plain seconds", "campaign seconds")
"""Until a fault is found, by fault; a round is a seed."""

LIMIT = 4000
"""Cases after which a search for a fault is given up."""
EASY = 500
"""Cases within which the plain search finds a fault that is not rare."""
GOAL = 0.2


def faults(specs: Specs, target: Target, seeds: int) -> Rounds:
    """Each fault looked for with each seed, both ways."""
    found: dict[str, tuple[float, ...]] = {}
    spec = specs["aclnnSoftmaxBackward"]
    for fault in FAULTS:
        settings = RunnerSettings(adapter=f"benchmarks.rare_faults:RareFaults,fault={fault}", target=target)
        host = InProcessHost(load(parse_adapter_word(settings.adapter)).open(target, specs))
        runner = TrialRunner(specs=specs, host=host, settings=settings, is_waived=lambda _record: True)
        plain = [_search_plain(runner, spec, seed) for seed in range(seeds)]
        ours = [_search_campaign(runner, spec, specs, seed) for seed in range(seeds)]
        columns = (*zip(plain, ours, strict=True),)
        for place, what in enumerate(("cases", "seconds")):
            found[f"plain {what}, {fault}"] = tuple(float(left[place]) for left, _ in columns)
            found[f"campaign {what}, {fault}"] = tuple(float(right[place]) for _, right in columns)
    return found


def show_faults(out: Console, rounds: Rounds) -> None:
    """A row a fault."""
    made = table("fault", *NEEDED, "time ratio")
    columns = [figures_of(rounds, name) for name in NEEDED]
    shares = _shares(rounds)
    for fault in columns[0]:
        cases, ours, slow, fast = (column[fault].median for column in columns)
        made.add_row(
            fault,
            f"{cases:.0f}" + ("+" if cases >= LIMIT else ""),
            f"{ours:.0f}",
            f"{slow:.2f}",
            f"{fast:.2f}",
            f"{shares[fault]:.2f}" if fault in shares else "(easy)",
        )
    wrap(out, "Until a fault is found, medians of the seeds, in processor time", style="bold")
    show_table(out, made)
    out.print()


def shown(rounds: Rounds) -> Iterator[Row]:
    """The campaign's time over the plain search's, for the faults that this needs many cases for."""
    shares = _shares(rounds)
    number = len(figures_of(rounds, NEEDED[0]))
    what = (
        f"time to find a rare fault, as a share of the plain search's: {len(shares)} of {number} faults "
        f"need more than {EASY} cases there"
    )
    goal = f"at most {GOAL:.2f}"
    if not shares:
        yield Row(what=what, figure="none is so rare", goal=goal)
        return
    mean = statistics.geometric_mean(shares.values())
    ends = f"{min(shares.values()):.2f} to {max(shares.values()):.2f}"
    yield Row(what=what, figure=f"{mean:.2f} ({ends})", goal=goal, missed=mean > GOAL)


def _shares(rounds: Rounds) -> dict[str, float]:
    """By fault that is not easy."""
    cases, _, slow, fast = (figures_of(rounds, name) for name in NEEDED)
    return {name: fast[name].median / slow[name].median for name, item in cases.items() if item.median > EASY}


def _search_plain(runner: TrialRunner, spec: Spec, seed: int) -> tuple[int, float]:
    strategy = valid_cases(spec, runner.settings.target)
    began = processor_seconds()
    tried = 0

    class FoundError(Exception):
        pass

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=LIMIT,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @hypothesis.given(strategy)
    def test(case: Case) -> None:
        nonlocal tried
        tried += 1
        for judged in runner.run([Trial("values", case)]):
            if judged.records[0].verdict.result == Result.FAILED:
                raise FoundError

    with contextlib.suppress(FoundError):
        test()
    return tried, processor_seconds() - began


def _search_campaign(runner: TrialRunner, spec: Spec, specs: Specs, seed: int) -> tuple[int, float]:
    """The chunks of a campaign without its plan, in order, each after what those before it taught."""
    began = processor_seconds()
    factors = {spec.operator: CoverageFactors(runner.sampler(spec))}
    coverage = {name: check_coverage(each, seed=seed) for name, each in factors.items()}
    schedule = Schedule(operators=(spec,), factors=factors, product=runner.settings.target.product, seed=seed, size=200)
    waivers = waivers_of_run((), settings=runner.settings, environment={}, bindings={}, specs=specs)
    worker = CampaignWorker(runner=runner, waivers=waivers, notes=None, chunk_seconds=3600.0)
    learned = {spec.operator: CorpusUpdate()}
    snapshot = Snapshot(-1)
    tried = 0
    for index in range(schedule.planned, schedule.planned + 10_000):
        chunk = _without_plan(schedule.chunk(index, snapshot))
        result = worker.judge(chunk)
        tried += result.summary.total.cases
        if result.failures or tried >= LIMIT:
            break
        learned[spec.operator].include(result.learned)
        snapshot = take_snapshot(index, learned, coverage, factors)
    return tried, processor_seconds() - began


def _without_plan(chunk: Chunk) -> Chunk:
    """The chunk with its drawn trials alone, as the plain search has no others."""
    return msgspec.structs.replace(chunk, parts=())
