"""`make bench-findings`: how many findings a seeded fault is, and whether two faults at once stay two findings.

Each fault is run on its operator's quick plan to the end, and in the first chunks of a campaign. Of the faults that
the plan finds, pairs of one operator are drawn by seed and switched on together. `--store` keeps the figures for
`docs/power.md`, which `make docs` makes from them. Run as `python -m benchmarks.findings` from the checkout.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations

from aclnn_cts.campaign.corpus.corpus import Snapshot
from aclnn_cts.campaign.corpus.factors import Factors
from aclnn_cts.campaign.corpus.schedule import Schedule
from aclnn_cts.campaign.fleet.worker import CampaignWorker
from aclnn_cts.checks.plan import PROFILES
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.fingerprint import grouped
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.mutants.fault_catalogue import read_catalogue
from aclnn_cts.mutants.power import Task, attempts, switched_on
from aclnn_cts.sandbox.interrupts import worker_context
from aclnn_cts.sandbox.limits import Limits
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.shown import Row
from benchmarks.stored import Rounds, figures_of, start, store

__all__ = ["IN_CAMPAIGN", "IN_RUN", "NAME", "OF_PAIR", "main", "pairs_of", "shown"]

NAME = "findings"
"""Of the stored figures."""

IN_RUN, IN_CAMPAIGN, OF_PAIR = "findings in a run", "findings in a campaign", "findings of a pair"
"""Of each fault or pair that was found."""

MOST_IN_RUN, MOST_IN_CAMPAIGN, APART = 1.1, 1.5, 0.95
CHUNKS = 2
"""Of a campaign, which begins with what its plan has most of."""


def pairs_of(operators: Mapping[str, str], number: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of faults of one operator, drawn by the seed; `operators` by the id of the fault."""
    known = [(one, other) for one, other in combinations(sorted(operators), 2) if operators[one] == operators[other]]
    return random.Random(seed).sample(known, min(number, len(known)))  # noqa: S311 - drawn again by the same seed


def _in_runs(operators: Mapping[str, str], workers: int) -> Iterator[tuple[str, int]]:
    """Findings by fault, or by faults with commas between them; those that no trial found are left out."""
    tasks = [
        Task(id=name, operator=operator, seed=0, profile=PROFILES["quick"], to_end=True)
        for name, operator in operators.items()
    ]
    for number, attempt in enumerate(attempts(tasks, workers=workers), 1):
        print(f"{number} of {len(tasks)}: {attempt.id}: {len(attempt.findings)} findings", flush=True)
        for text in attempt.findings if len(attempt.findings) != 1 + attempt.id.count(",") else ():
            print(f"  {text}", flush=True)
        if attempt.found:
            yield attempt.id, len(attempt.findings)


def _in_campaign(task: tuple[str, str]) -> int:
    """Findings of a fault in the first chunks of its operator."""
    name, operator = task
    specs, target = load_specs(), Target(product=DEFAULT_PRODUCT)
    settings = BenchSettings(adapter="loopback:timeout=6", target=target)
    with (
        switched_on(name),
        ProcessHost(settings.adapter, target=target, limits=Limits(call_seconds=30.0), spare=False) as host,
    ):
        bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)
        factors = {operator: Factors(bench.sampler(specs[operator]))}
        schedule = Schedule(operators=(specs[operator],), factors=factors, product=DEFAULT_PRODUCT, seed=0, size=500)
        waivers = waivers_of_run((), settings=settings, environment={}, specs=specs)
        worker = CampaignWorker(specs=specs, bench=bench, waivers=waivers, notes=None, chunk_seconds=600.0)
        results = [worker.judge(schedule.chunk(index, Snapshot(-1))) for index in range(CHUNKS)]
    failed = (record for result in results for record in result.records if record.verdict.result == Result.FAILED)
    return len(grouped(failed))


def shown(rounds: Rounds) -> Iterator[Row]:
    """The means, and the share of pairs that stay apart, beside their goals."""
    for name, most in ((IN_RUN, MOST_IN_RUN), (IN_CAMPAIGN, MOST_IN_CAMPAIGN)):
        if values := [item.median for item in figures_of(rounds, name).values()]:
            mean = statistics.fmean(values)
            single = sum(value == 1 for value in values)
            what = f"{name}, a fault (mean of {len(values)} faults, of which {single} are one finding)"
            yield Row(what=what, figure=f"{mean:.2f}", goal=f"at most {most:g}", missed=mean > most)
    if values := [item.median for item in figures_of(rounds, OF_PAIR).values()]:
        share = sum(value >= 2 for value in values) / len(values)
        what = (
            f"pairs of faults of one operator, switched on together, that are at least two findings (of {len(values)})"
        )
        yield Row(what=what, figure=f"{share:.1%}", goal=f"at least {APART:.0%}", missed=share < APART)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.findings", description=__doc__)
    parser.add_argument("--faults", type=int, metavar="N", help="so many faults, drawn by the seed (all)")
    parser.add_argument("--pairs", type=int, default=200, metavar="N", help="pairs, drawn by the seed (200)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="draws faults and pairs (0)")
    parser.add_argument("--no-campaign", action="store_true", help="leave campaigns out")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="devices at once (2)")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    faults = [entry for entry in read_catalogue(specs).faults.values() if not entry.equivalent]
    if options.faults is not None:
        draw = random.Random(options.seed)  # noqa: S311 - as above
        faults = draw.sample(faults, min(options.faults, len(faults)))
    rounds: dict[str, tuple[float, ...]] = {}
    operators: dict[str, str] = {}
    for name, number in _in_runs({entry.id: entry.operator for entry in faults}, options.workers):
        operators[name] = next(entry.operator for entry in faults if entry.id == name)
        rounds[f"{IN_RUN}, {name}"] = (float(number),)
    if not options.no_campaign:
        with ProcessPoolExecutor(options.workers, mp_context=worker_context()) as pool:
            for name, number in zip(operators, pool.map(_in_campaign, operators.items()), strict=True):
                print(f"{name}: {number} findings in a campaign", flush=True)
                if number:
                    rounds[f"{IN_CAMPAIGN}, {name}"] = (float(number),)
    pairs = pairs_of(operators, options.pairs, options.seed)
    for name, number in _in_runs({",".join(pair): operators[pair[0]] for pair in pairs}, options.workers):
        rounds[f"{OF_PAIR}, {name.replace(',', ' and ')}"] = (float(number),)
    for row in shown(rounds):
        print(f"{row.what}: {row.figure} ({row.verdict})")
    print(f"on {started.text}")
    if options.store:
        needed = (IN_RUN, OF_PAIR) if options.no_campaign else (IN_RUN, IN_CAMPAIGN, OF_PAIR)
        store(NAME, rounds, command="make bench-findings ARGS=--store", started=started, needed=needed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
