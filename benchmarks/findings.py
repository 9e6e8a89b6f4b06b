"""`make bench-findings`: how many findings a seeded fault is, and whether two faults at once stay two findings.

Each fault is run on its operator's quick plan to the end, its failures are run again as a run does, and it is run in
the first chunks of a campaign. Of the faults that the plan finds, pairs of one operator are drawn by seed and switched
on together. `--record FILE` keeps the fingerprints of all failures: another grouping can be tried on them without a
device, and a measurement can be made in slices. `--store` keeps the figures for `docs/power.md`, which `make docs`
makes from them. Run as `python -m benchmarks.findings` from the checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from pathlib import Path

import msgspec

from aclnn_cts.campaign.corpus.check_coverage import Factors
from aclnn_cts.campaign.corpus.schedule import Schedule, Snapshot
from aclnn_cts.campaign.fleet.worker import CampaignWorker
from aclnn_cts.checks.plan import PROFILES
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.core.verdict import Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.group import Group, group
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.mutants.fault_catalogue import read_catalogue
from aclnn_cts.mutants.power import Task, attempts, switched_on
from aclnn_cts.sandbox.limits import Limits
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.sandbox.spread import Worker, spread
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.shown import Row
from benchmarks.stored import Rounds, figures_of, start, store

NAME = "findings"
"""Of the stored figures."""

IN_RUN, IN_CAMPAIGN, OF_PAIR = "findings in a run", "findings in a campaign", "findings of a pair"
"""Of each fault or pair that was found."""
MASKED = "fails as one fault"
"""1 of each pair that fails with the fingerprints of one of its faults, each as often: no grouping tells of both."""

MOST_IN_RUN, MOST_IN_CAMPAIGN, APART = 1.1, 1.5, 0.95
CHUNKS = 2
"""Of a campaign, which begins with what its plan has most of."""


def pairs_of(operators: Mapping[str, str], number: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of faults of one operator, drawn by the seed; `operators` by the id of the fault."""
    known = [(one, other) for one, other in combinations(sorted(operators), 2) if operators[one] == operators[other]]
    return random.Random(seed).sample(known, min(number, len(known)))  # noqa: S311 - drawn again by the same seed


class Recorded(msgspec.Struct, frozen=True):
    """What failed with a fault, or with a pair of them, by fingerprint."""

    what: str
    id: str
    """Of the fault, or of both with a comma between them."""
    failures: tuple[tuple[Fingerprint, int], ...]
    order_dependent: tuple[Fingerprint, ...] = ()

    @property
    def findings(self) -> tuple[Group, ...]:
        """As a run groups them."""
        return group(dict(self.failures), order_dependent=self.order_dependent)


class _Book:
    """All that was recorded, here and in a file where there is one; which is gone on with."""

    def __init__(self, path: Path | None, *, until: float) -> None:
        self._path = path
        self._until = until
        self.known: dict[tuple[str, str], Recorded] = {}
        if path is not None and path.exists():
            items = msgspec.json.Decoder(Recorded).decode_lines(path.read_bytes())
            self.known = {(item.what, item.id): item for item in items}

    def is_over(self) -> bool:
        """Whether there is no time for more."""
        return time.monotonic() >= self._until

    def missing(self, what: str, operators: Mapping[str, str]) -> dict[str, str]:
        """Those of which nothing is recorded yet."""
        return {name: operator for name, operator in operators.items() if (what, name) not in self.known}

    def add(self, item: Recorded) -> None:
        """Keep it, and say what it comes to."""
        self.known[item.what, item.id] = item
        found = item.findings
        print(f"{item.id}: {len(found)} {item.what}", flush=True)
        for entry in found if len(found) != 1 + item.id.count(",") else ():
            print(f"  {entry.fingerprints[0].text()}", flush=True)
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(item) + b"\n")

    def numbers(self, what: str, names: Iterable[str]) -> dict[str, int]:
        """Findings of each of which something is recorded; those that no trial found are left out."""
        found = {name: self.known[what, name] for name in names if (what, name) in self.known}
        return {name: len(item.findings) for name, item in found.items() if item.failures}

    def is_masked(self, pair: str) -> bool:
        """Whether a pair fails just as one of its faults does alone."""
        failures = dict(self.known[OF_PAIR, pair].failures)
        return any(failures == dict(self.known[IN_RUN, name].failures) for name in pair.split(","))


def _run(book: _Book, what: str, operators: Mapping[str, str], workers: int) -> None:
    tasks = [
        Task(id=name, operator=operator, seed=0, profile=PROFILES["quick"], to_end=True)
        # The trials of an operator are generated once for neighbours.
        for name, operator in sorted(book.missing(what, operators).items(), key=itemgetter(1))
    ]
    if not tasks or book.is_over():
        return
    with contextlib.closing(attempts(tasks, workers=workers)) as made:
        for attempt in made:
            book.add(Recorded(what, attempt.id, attempt.failures, attempt.order_dependent))
            if book.is_over():
                break


def _in_campaign(task: tuple[str, str], given: Worker) -> Recorded:
    """What fails with a fault in the first chunks of its operator."""
    name, operator = task
    specs, target = given.specs, Target(product=DEFAULT_PRODUCT)
    settings = BenchSettings(adapter="loopback:timeout=6", target=target)
    with (
        switched_on(name),
        ProcessHost(settings.adapter, target=target, limits=Limits(call_seconds=30.0), spare=False) as host,
    ):
        bench = Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)
        factors = {operator: Factors(bench.sampler(specs[operator]))}
        schedule = Schedule(operators=(specs[operator],), factors=factors, product=DEFAULT_PRODUCT, seed=0, size=500)
        waivers = waivers_of_run((), settings=settings, environment={}, specs=specs)
        worker = CampaignWorker(bench=bench, waivers=waivers, notes=None, chunk_seconds=600.0)
        results = [worker.judge(schedule.chunk(index, Snapshot(-1))) for index in range(CHUNKS)]
    failed = (record for result in results for record in result.records if record.verdict.result == Result.FAILED)
    return Recorded(IN_CAMPAIGN, name, tuple(Counter(record.fingerprint for record in failed).items()))


def _campaigns(book: _Book, operators: Mapping[str, str], workers: int) -> None:
    tasks = tuple(book.missing(IN_CAMPAIGN, operators).items())
    if not tasks or book.is_over():
        return
    with contextlib.closing(spread(_in_campaign, tasks, workers=workers, advice="run with fewer")) as made:
        for item in made:
            book.add(item)
            if book.is_over():
                break


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
    if values := [item.median for item in figures_of(rounds, MASKED).values()]:
        what = f"pairs that fail just as one of their faults does alone: no grouping tells of both (of {len(values)})"
        yield Row(what=what, figure=f"{sum(values):.0f}")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.findings", description=__doc__)
    parser.add_argument("--faults", type=int, metavar="N", help="so many faults, drawn by the seed (all)")
    parser.add_argument("--pairs", type=int, default=200, metavar="N", help="pairs, drawn by the seed (200)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="draws faults and pairs (0)")
    parser.add_argument("--no-campaign", action="store_true", help="leave campaigns out")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="devices at once (2)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep fingerprints in FILE, and go on with it")
    parser.add_argument("--seconds", type=float, metavar="T", help="stop after T seconds; --record goes on later")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    faults = [entry for entry in read_catalogue(specs).faults.values() if not entry.equivalent]
    if options.faults is not None:
        draw = random.Random(options.seed)  # noqa: S311 - as above
        faults = draw.sample(faults, min(options.faults, len(faults)))
    operators = {entry.id: entry.operator for entry in faults}
    until = math.inf if options.seconds is None else time.monotonic() + options.seconds
    book = _Book(options.record, until=until)
    _run(book, IN_RUN, operators, options.workers)
    found = {name: operators[name] for name in book.numbers(IN_RUN, operators)}
    pairs: list[str] = []
    if not book.missing(IN_RUN, operators):
        pairs = [",".join(pair) for pair in pairs_of(found, options.pairs, options.seed)]
        _run(book, OF_PAIR, {pair: operators[pair.partition(",")[0]] for pair in pairs}, options.workers)
    if not options.no_campaign:
        _campaigns(book, found, options.workers)
    rounds: dict[str, tuple[float, ...]] = {}
    for what, names in ((IN_RUN, [*operators]), (IN_CAMPAIGN, [*found]), (OF_PAIR, pairs)):
        rounds |= {
            f"{what}, {name.replace(',', ' and ')}": (float(number),)
            for name, number in book.numbers(what, names).items()
        }
    rounds |= {
        f"{MASKED}, {pair.replace(',', ' and ')}": (float(book.is_masked(pair)),)
        for pair in pairs
        if (OF_PAIR, pair) in book.known
    }
    for row in shown(rounds):
        print(f"{row.what}: {row.figure}{f' ({row.verdict})' if row.goal else ''}")
    print(f"on {started.text}")
    if options.store:
        needed = (IN_RUN, OF_PAIR) if options.no_campaign else (IN_RUN, IN_CAMPAIGN, OF_PAIR)
        chosen = [f"--faults {options.faults}"] if options.faults is not None else []
        chosen += [f"--pairs {options.pairs}", f"--seed {options.seed}", *["--no-campaign"] * options.no_campaign]
        command = f"make bench-findings ARGS='{' '.join([*chosen, '--store'])}'"
        store(NAME, rounds, command=command, started=started, needed=needed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
