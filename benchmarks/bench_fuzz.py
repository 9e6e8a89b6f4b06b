"""What a campaign costs and finds: `make bench-fuzz`. Every figure is a ratio or a rate of processor time."""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import msgspec
from hypothesis import HealthCheck, Phase
from rich.console import Console

from aclnn_cts.adapters.registry import choose, load
from aclnn_cts.cli.output import console, show_table, table, wrap
from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Result
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.campaign.chunk import Chunk
from aclnn_cts.engine.campaign.factors import Factors
from aclnn_cts.engine.campaign.feedback import Learned, Snapshot
from aclnn_cts.engine.campaign.promise_coverage import promise_coverage
from aclnn_cts.engine.campaign.schedule import Schedule, take_snapshot
from aclnn_cts.engine.campaign.session import CampaignOptions, fuzz
from aclnn_cts.engine.campaign.status import Status
from aclnn_cts.engine.campaign.stopping import Stop
from aclnn_cts.engine.campaign.worker import CampaignWorker
from aclnn_cts.engine.collector import keep_for_good
from aclnn_cts.engine.host import InProcessHost
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.engine.waivers import waivers_of_run
from aclnn_cts.generate.strategies import valid_cases
from aclnn_cts.spec.load import Specs, load_specs
from aclnn_cts.spec.model import Spec
from benchmarks.campaign_rates import open_alone, random_chunk, rates
from benchmarks.measure import Figure, processor_seconds
from benchmarks.overlapping import overlap
from benchmarks.rare_faults import FAULTS

PLAIN_LIMIT = 4000
"""Cases after which a search for a fault is given up."""


def _fuzzed(
    specs: Specs, chosen: tuple[Spec, ...], target: Target, *, workers: int, chunks: int, seed: int = 0
) -> float:
    """Cases a second of wall time of a whole campaign, its start and end left out."""
    folder = Path(tempfile.mkdtemp(prefix="aclnn-cts-bench-"))
    seen: list[tuple[float, int]] = []

    class Watch:
        def __call__(self, status: Status, /) -> None:
            seen.append((status.seconds, status.summary.total.cases))

        def notice(self, message: str, /) -> None: ...

    try:
        options = CampaignOptions(
            arguments=(),
            specs=specs,
            operators=chosen,
            settings=BenchSettings(adapter="reference", target=target),
            out=folder / "run",
            stop=Stop(chunks=chunks),
            workers=workers,
            seed=seed,
        )
        fuzz(options, [Watch()])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    first = next(entry for entry in seen if entry[1])
    last = seen[-1]
    return (last[1] - first[1]) / (last[0] - first[0])


def scaling(out: Console, specs: Specs, chosen: tuple[Spec, ...], target: Target, rounds: int) -> None:
    """From one worker to two, by the wall: what else runs on the machine counts."""
    load = os.getloadavg()[0]
    values = []
    for number in range(rounds):
        one, two = (_fuzzed(specs, chosen, target, workers=workers, chunks=24, seed=number) for workers in (1, 2))
        values.append(two / one)
    figure = Figure(tuple(values))
    wrap(
        out,
        f"From one worker to two: {figure.text('.2f')} times the cases a second of wall time (goal 1.8); "
        f"{len(os.sched_getaffinity(0))} cores, with a load of {load:.1f} before",
    )
    out.print()


def memory(out: Console, spec: Spec, target: Target, cases: int) -> None:
    """Whether the memory of a worker grows over many cases."""
    with open_alone("reference", target) as worker:
        marks = []
        chunk = 2000
        for number in range(max(cases // chunk, 4)):
            worker.judge(random_chunk(spec, number, chunk))
            marks.append(_resident())
    tenth = max(len(marks) // 10, 1)
    before, after = statistics.median(marks[tenth : 2 * tenth + 1]), statistics.median(marks[-tenth:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    wrap(
        out,
        f"Memory of a worker over {len(marks) * chunk} cases of {spec.operator}: {int(before) >> 20} MiB after a "
        f"tenth, {int(after) >> 20} MiB at the end ({after / before - 1.0:+.1%}); peak {peak} MiB",
    )
    out.print()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def faults(out: Console, specs: Specs, target: Target, seeds: int) -> None:
    """Cases and time until a fault is found, by a campaign's chunks and by a plain search in Hypothesis."""
    made = table("fault", "plain cases", "campaign cases", "plain s", "campaign s", "time ratio")
    shares = []
    for fault in FAULTS:
        settings = BenchSettings(adapter=f"benchmarks.rare_faults:RareFaults,fault={fault}", target=target)
        spec = specs["aclnnSoftmaxBackward"]
        host = InProcessHost(load(choose(settings.adapter)).open(target, specs))
        bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)
        plain = [_search_plain(bench, spec, seed) for seed in range(seeds)]
        ours = [_search_campaign(bench, spec, specs, seed) for seed in range(seeds)]
        cases = statistics.median(found[0] for found in plain)
        slow, fast = (statistics.median(found[1] for found in side) for side in (plain, ours))
        if cases > 500:
            shares.append(fast / slow)
        made.add_row(
            fault,
            f"{cases:.0f}" + ("+" if cases >= PLAIN_LIMIT else ""),
            f"{statistics.median(found[0] for found in ours):.0f}",
            f"{slow:.2f}",
            f"{fast:.2f}",
            f"{fast / slow:.2f}" if cases > 500 else "(easy)",
        )
    wrap(
        out,
        f"Until a fault is found, medians of {seeds} seeds in processor time; goal: at most 0.20 of the plain search's "
        "time for the faults that it needs more than 500 cases for",
    )
    show_table(out, made)
    if shares:
        wrap(out, f"geometric mean of these ratios: {statistics.geometric_mean(shares):.2f}")
    out.print()


def _search_plain(bench: Bench, spec: Spec, seed: int) -> tuple[int, float]:
    strategy = valid_cases(spec, bench.settings.target)
    began = processor_seconds()
    tried = 0

    class FoundError(Exception):
        pass

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=PLAIN_LIMIT,
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
        for judged in bench.run([Trial("values", case)]):
            if judged.records[0].verdict.result == Result.FAILED:
                raise FoundError

    with contextlib.suppress(FoundError):
        test()
    return tried, processor_seconds() - began


def _search_campaign(bench: Bench, spec: Spec, specs: Specs, seed: int) -> tuple[int, float]:
    """The chunks of a campaign without its plan, in order, each after what those before it taught."""
    began = processor_seconds()
    factors = {spec.operator: Factors(bench.sampler(spec))}
    coverage = {name: promise_coverage(each, seed=seed) for name, each in factors.items()}
    schedule = Schedule(operators=(spec,), factors=factors, product=bench.settings.target.product, seed=seed, size=200)
    waivers = waivers_of_run((), settings=bench.settings, environment={}, specs=specs)
    worker = CampaignWorker(specs=specs, bench=bench, waivers=waivers, notes=None, chunk_seconds=3600.0)
    learned = {spec.operator: Learned()}
    snapshot = Snapshot(-1)
    tried = 0
    for index in range(schedule.planned, schedule.planned + 10_000):
        chunk = replace_parts(schedule.chunk(index, snapshot))
        result = worker.judge(chunk)
        tried += result.summary.total.cases
        if result.failures or tried >= PLAIN_LIMIT:
            break
        learned[spec.operator].include(result.learned)
        snapshot = take_snapshot(index, learned, coverage, factors)
    return tried, processor_seconds() - began


def replace_parts(chunk: Chunk) -> Chunk:
    """The chunk with its drawn trials alone, as the plain search has no others."""
    return msgspec.structs.replace(chunk, parts=())


def main(arguments: Sequence[str]) -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_fuzz", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds of each measurement (5)")
    parser.add_argument("--cases", type=int, default=200_000, metavar="N", help="cases of the look at memory (200000)")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="searches for each fault (10)")
    parser.add_argument(
        "--only", default="rates,scaling,overlap,memory,faults", metavar="NAME,...", help="parts of it (all)"
    )
    parser.add_argument(
        "--store", action="store_true", help="keep the figures on overlapping for docs/campaigns.md (then: make docs)"
    )
    parser.add_argument("operators", nargs="*", metavar="OP", help="operators (all)")
    options = parser.parse_args(arguments)
    if options.store and (options.operators or "overlap" not in options.only.split(",")):
        parser.error("--store keeps the figures on overlapping of all operators: name none, and have overlap in --only")
    specs, target = load_specs(), Target()
    chosen = specs.select(options.operators)
    out = console()
    parts = options.only.split(",")
    keep_for_good()  # as a campaign's worker does
    if "rates" in parts:
        rates(out, chosen, target, options.rounds)
    if "scaling" in parts:
        scaling(out, specs, chosen, target, min(options.rounds, 3))
    if "overlap" in parts:
        overlap(out, chosen, target, options.rounds, store=options.store)
    if "memory" in parts:
        memory(out, chosen[-1], target, options.cases)
    if "faults" in parts:
        faults(out, specs, target, options.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
