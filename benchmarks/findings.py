"""`make bench-findings`: how many findings a seeded fault is, and whether two faults at once stay two findings.

Each fault is run on its operator's quick plan to the end, and in the first chunks of a campaign. Of the faults that
the plan finds, pairs of one operator are drawn by seed and switched on together. `--record FILE` keeps the fingerprints
of all failures: another grouping can be tried on them without a device, and a measurement can be made in slices.
It also keeps what each failing call came to, which tells the pairs of which one fault alone shows.
`--store` keeps the figures for `docs/power.md`, which `make docs` makes from them. Run as
`python -m benchmarks.findings` from the checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from operator import itemgetter
from pathlib import Path

import msgspec

from aclnn_cts.campaign.corpus.check_coverage import Factors
from aclnn_cts.campaign.corpus.schedule import Schedule, Snapshot
from aclnn_cts.campaign.fleet.worker import CampaignWorker
from aclnn_cts.checks.laws import law_ids
from aclnn_cts.checks.plan import PROFILES, plan_parts
from aclnn_cts.core.case import DEFAULT_PRODUCT, Target
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.group import Group, group
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.mutants.fault_catalogue import read_catalogue
from aclnn_cts.mutants.power import Task, expanded, switched_on
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
MASKED = "one fault alone shows"
"""1 of each pair of which each failing trial fails as with one of its faults, down to the bytes of its outputs: no
grouping tells of both."""

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
    calls: tuple[str, ...]
    """A digest of each failing trial and of what its calls came to."""

    @property
    def findings(self) -> tuple[Group, ...]:
        """As a run groups them."""
        return group(dict(self.failures))


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
        """Whether one of its faults alone shows in a pair."""
        calls = {*self.known[OF_PAIR, pair].calls}
        return any(calls <= {*self.known[IN_RUN, name].calls} for name in pair.split(","))


def _recorded(what: str, name: str, records: Iterable[Record]) -> Recorded:
    failed = [record for record in records if record.verdict.result == Result.FAILED]
    numbers = Counter(record.fingerprint for record in failed)
    return Recorded(what, name, tuple(numbers.items()), tuple(map(_digest, failed)))


def _digest(record: Record) -> str:
    """Of the trial, its fingerprint, and what its calls answered and wrote; without addresses and times."""
    came_to = [
        (
            outcome.ended,
            outcome.status,
            outcome.signal,
            [msgspec.structs.replace(state, stray=None) for _, state in sorted(outcome.buffers.items())],
        )
        for outcome in chain.from_iterable(record.attempts)
    ]
    whole = msgspec.json.encode((record.trial_id, record.fingerprint, came_to))
    return hashlib.sha256(whole).hexdigest()[:16]


@contextlib.contextmanager
def _bench(name: str, given: Worker) -> Iterator[Bench]:
    """A device with a fault, or a pair of them."""
    settings = BenchSettings(adapter="loopback:timeout=6", target=Target(product=DEFAULT_PRODUCT))
    limits = Limits(call_seconds=30.0)
    with (
        switched_on(name),
        ProcessHost(
            settings.adapter, target=settings.target, limits=limits, workers=given.workers, spare=False
        ) as host,
    ):
        yield Bench(specs=given.specs, host=host, settings=settings, explained=lambda _record: True)


def _of_run(what: str, task: tuple[str, str], given: Worker) -> Recorded:
    """What fails with a fault or a pair in the whole of its operator's plan."""
    name, operator = task
    plan = Task(id=name, operator=operator, seed=0, profile=PROFILES["quick"])
    parts = plan_parts([given.specs[operator]], product=DEFAULT_PRODUCT, chosen=plan.profile, laws=law_ids)
    with _bench(name, given) as bench:
        trials = chain.from_iterable(expanded(plan, part, bench) for part in parts if not given.stopped())
        return _recorded(what, name, (record for judged in bench.run(trials) for record in judged.records))


def _in_campaign(what: str, task: tuple[str, str], given: Worker) -> Recorded:
    """What fails with a fault in the first chunks of its operator."""
    name, operator = task
    spec = given.specs[operator]
    with _bench(name, given) as bench:
        factors = {operator: Factors(bench.sampler(spec))}
        schedule = Schedule(operators=(spec,), factors=factors, product=DEFAULT_PRODUCT, seed=0, size=500)
        waivers = waivers_of_run((), settings=bench.settings, environment={}, specs=given.specs)
        worker = CampaignWorker(bench=bench, waivers=waivers, notes=None, chunk_seconds=600.0)
        results = [worker.judge(schedule.chunk(index, Snapshot(-1))) for index in range(CHUNKS)]
    return _recorded(what, name, (record for result in results for record in result.records))


def _record(book: _Book, what: str, operators: Mapping[str, str], workers: int) -> None:
    """Record what nothing is known of yet."""
    # The trials of an operator are generated once for neighbours.
    tasks = sorted(book.missing(what, operators).items(), key=itemgetter(1))
    if not tasks or book.is_over():
        return
    work = functools.partial(_in_campaign if what == IN_CAMPAIGN else _of_run, what)
    with contextlib.closing(spread(work, tasks, workers=workers, advice="run with fewer")) as made:
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
    if numbers := {name: item.median for name, item in figures_of(rounds, OF_PAIR).items()}:
        share = sum(number >= 2 for number in numbers.values()) / len(numbers)
        what = (
            f"pairs of faults of one operator, switched on together, that are at least two findings (of {len(numbers)})"
        )
        yield Row(what=what, figure=f"{share:.1%}", goal=f"at least {APART:.0%}", missed=share < APART)
    if masked := [name for name, item in figures_of(rounds, MASKED).items() if item.median]:
        what = f"pairs of which one fault alone shows, down to the bytes: no grouping tells of both (of {len(numbers)})"
        yield Row(what=what, figure=f"{len(masked)}")
        both = [number for name, number in numbers.items() if name not in masked]
        what = f"pairs of which both faults show, that are at least two findings (of {len(both)})"
        yield Row(what=what, figure=f"{sum(number >= 2 for number in both) / max(len(both), 1):.1%}")


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
    _record(book, IN_RUN, operators, options.workers)
    found = {name: operators[name] for name in book.numbers(IN_RUN, operators)}
    pairs: list[str] = []
    if not book.missing(IN_RUN, operators):
        pairs = [",".join(pair) for pair in pairs_of(found, options.pairs, options.seed)]
        _record(book, OF_PAIR, {pair: operators[pair.partition(",")[0]] for pair in pairs}, options.workers)
    if not options.no_campaign:
        _record(book, IN_CAMPAIGN, found, options.workers)
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
