"""`make bench-findings`: how many findings a fault is, whether two faults stay two, and whether conditions are right.

The faults are generated mutants of all operators, drawn by `--seed`. Each runs on its operator's quick plan: the trials
in whose calls it fires, all others being as the reference has them. Its failures are grouped as a run groups them, with
conditions that further calls confirm. Pairs of faults that the plan finds are switched on together. They stay two where
most calls that only one of them spoils are in another finding than most that only the other spoils. A pair of which one
spoils no call without the other is hidden, and counted apart. A condition is right where it and the trigger say the
same of 95 % of fresh valid calls. `--store` keeps the figures for `docs/power.md` and `docs/finding-cards.md`. Run as
`python -m benchmarks.findings` from the checkout.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from random import Random

from aclnn_cts.core.case import Case
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.finding_text import title_of
from aclnn_cts.findings.findings import Failures, FindingIndex
from aclnn_cts.formula.mutants import Mutant
from aclnn_cts.generate.choices import StreamChoices
from aclnn_cts.generate.predicate import compile_predicate
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.selftest.generated_mutants import draw_mutants
from aclnn_cts.selftest.kinds import STALE, describe_mutant, fires
from aclnn_cts.selftest.mutated_session import MutatedSession
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.triage.condition import with_conditions
from aclnn_cts.trials.batches import calls_of
from aclnn_cts.trials.plan import plan_parts, profile
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.shown import Row
from benchmarks.stored import Rounds, figures_of, start, store

NAME = "findings"
"""Of the stored figures."""
FINDINGS, PAIRS, CONDITIONS = "findings of a fault", "findings of a pair", "condition is right"
HIDDEN = "findings of a hidden pair"
MOST_FINDINGS, APART, RIGHT = 1.15, 0.85, 0.95
_DRAWN = 12
"""Mutants of an operator among which the plan finds some."""
_FRESH = 150
"""Valid calls on which condition and trigger are compared."""
_AGREE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one fault, or a pair of them, came to."""

    mutants: tuple[Mutant, ...]
    findings: tuple[Finding, ...]
    numbers: Mapping[str, int]
    """The number of the finding of each trial that failed, by the trial's id."""
    seconds: float
    right: bool | None = None
    """Whether the stated condition is; None where none is stated."""
    hidden: bool = False
    """Of a pair: whether one fault spoils no call without the other."""
    apart: int = 1
    """Of a pair: in how many findings its two faults are."""


class _Operator:
    """One operator on the mutated reference, with its plan."""

    def __init__(self, spec: Spec, specs: Specs, session: MutatedSession, runner: TrialRunner) -> None:
        self.spec, self._session, self._runner = spec, session, runner
        parts = plan_parts([spec], product=runner.settings.target.product, chosen=profile("quick"))
        self._plan = [trial for part in parts for trial in runner.expand(part, seed=0)]
        self._calls = [list(self._calls_of(trial, specs)) for trial in self._plan]
        session.switch()
        self._passed = {record.trial_id: record for record in self._run(self._plan)}

    def _calls_of(self, trial: Trial, specs: Specs) -> Iterator[tuple[Case, frozenset[str]]]:
        for call in calls_of(trial, specs, capabilities=self._runner.host.capabilities):
            yield call.case, frozenset(item.id for item in evaluate(self.spec, call.case).broken)

    def _run(self, trials: Sequence[Trial]) -> list[Record]:
        return [record for judged in self._runner.run(trials) for record in judged.records]

    def measure(self, *mutants: Mutant) -> Measured:
        """Run the faults together, and group what fails as a run does."""
        began = time.monotonic()
        places: set[int] = set()
        for mutant in mutants:
            met = {place for place, calls in enumerate(self._calls) if any(fires(mutant, *each) for each in calls)}
            # What is stale is of the call before, which is made as well.
            places |= met | ({place - 1 for place in met if place} if mutant.kind == STALE else set())
        self._session.switch(*mutants)
        made = {record.trial_id: record for record in self._run([self._plan[place] for place in sorted(places)])}
        records = [*(self._passed | made).values()]
        failures = Failures()
        for record in records:
            failures.add(record)

        def of(_operator: str, result: str) -> Iterator[Record]:
            return (record for record in records if record.verdict.result == result)

        found = with_conditions(failures.findings, of, self._runner)
        index = FindingIndex(found)
        return Measured(
            mutants=mutants,
            findings=found,
            numbers={item.trial_id: index.number_of(item) for item in of("", Result.FAILED)},
            seconds=time.monotonic() - began,
            right=self._is_right(mutants[0], found) if len(mutants) == 1 else None,
        )

    def measure_pair(self, one: Measured, other: Measured) -> Measured:
        """Run two faults together, of which it is known what each spoils alone."""
        both = self.measure(*one.mutants, *other.mutants)
        alone = [first.numbers.keys() - second.numbers.keys() for first, second in ((one, other), (other, one))]
        return replace(both, hidden=not all(alone), apart=findings_with_most(both.numbers, alone))

    def _is_right(self, mutant: Mutant, found: Sequence[Finding]) -> bool | None:
        stated = [compile_predicate(item.condition.when) for item in found if item.condition is not None]
        if not stated:
            return None
        sampler = self._runner.sampler(self.spec)
        fresh = [sampler.random_case(StreamChoices(77, "fresh", number), number) for number in range(_FRESH)]
        agree = sum(any(each(case) for each in stated) == fires(mutant, case, ()) for case in fresh)
        return agree >= _AGREE * len(fresh)


def findings_with_most(numbers: Mapping[str, int], trials: Iterable[Collection[str]]) -> int:
    """How many findings there are that have most of the failures in one of some sets of trials."""
    counts = [Counter(numbers[trial] for trial in some if trial in numbers) for some in trials]
    return len({number for each in counts for number, _ in each.most_common(1)})


def measured(spec: Spec, specs: Specs, *, seed: str, faults: int, pairs: int) -> Iterator[Measured]:
    """So many faults of an operator that its plan finds, then so many pairs of them."""
    target = Target(product=spec.usual_product)
    session = MutatedSession(target, specs)
    settings = RunnerSettings(adapter="reference", target=target)
    random = Random(f"{seed}/{spec.stem}")  # noqa: S311 - drawn again by the same seed
    drawn = list(draw_mutants(spec, target, seed=seed, count=_DRAWN))
    random.shuffle(drawn)
    with InProcessHost(session) as host:
        runner = TrialRunner(
            specs=specs, host=host, settings=settings, is_waived=lambda _record: True, sample_waived=True
        )
        operator = _Operator(spec, specs, session, runner)
        found: list[Measured] = []
        for mutant in drawn:
            if len(found) == faults:
                break
            single = operator.measure(mutant)
            if single.findings:
                found.append(single)
                yield single
        together = list(combinations(found, 2))
        random.shuffle(together)
        for pair in islice(together, pairs):
            yield operator.measure_pair(*pair)


def shown(rounds: Rounds, only: Callable[[str], bool] = lambda _name: True) -> Iterator[Row]:
    """The figures beside their goals."""
    values = [item.median for item in figures_of(rounds, FINDINGS).values()]
    if values and only(FINDINGS):
        mean, single = statistics.fmean(values), sum(value == 1 for value in values)
        what = f"findings of a fault (mean of {len(values)} faults, of which {single} are one finding)"
        yield Row(what=what, figure=f"{mean:.2f}", goal=f"at most {MOST_FINDINGS:g}", missed=mean > MOST_FINDINGS)
    values = [item.median for item in figures_of(rounds, PAIRS).values()]
    if values and only(PAIRS):
        share = sum(value >= 2 for value in values) / len(values)
        what = f"pairs of faults of one operator that stay two findings (of {len(values)})"
        yield Row(what=what, figure=f"{share:.0%}", goal=f"at least {APART:.0%}", missed=share < APART)
    hidden = len(figures_of(rounds, HIDDEN))
    if hidden and only(HIDDEN):
        yield Row(what="pairs of which one fault spoils no call without the other, counted apart", figure=str(hidden))
    values = [item.median for item in figures_of(rounds, CONDITIONS).values()]
    if values and only(CONDITIONS):
        share = statistics.fmean(values)
        what = f"stated conditions that agree with the trigger on {_AGREE:.0%} of fresh calls (of {len(values)})"
        yield Row(what=what, figure=f"{share:.0%}", goal=f"at least {RIGHT:.0%}", missed=share < RIGHT)


def _show(item: Measured) -> None:
    name = " and ".join(mutant.id for mutant in item.mutants)
    pair = f"{', hidden' * item.hidden}, faults in {item.apart}" if len(item.mutants) > 1 else ""
    print(f"{name}: {len(item.findings)} findings{pair}, {item.seconds:.0f} s", flush=True)
    if len(item.findings) != len(item.mutants) or item.apart != len(item.mutants) or item.right is False:
        for mutant in item.mutants:
            print(f"  fault: {describe_mutant(mutant)}")
        for found in item.findings:
            when = f", when {found.condition.when}" if found.condition is not None else ""
            print(f"  {title_of(found)} ({found.failures}){when}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.findings", description=__doc__)
    parser.add_argument("--seed", default="0", metavar="TEXT", help="draws mutants and pairs (0)")
    parser.add_argument("--op", action="append", metavar="OP", help="only these operators")
    parser.add_argument("--faults", type=int, default=3, metavar="N", help="faults of an operator (3)")
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="pairs of an operator (3)")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="T", help="begin no operator after T")
    parser.add_argument("--store", action="store_true", help="keep the figures for the pages (then: make docs)")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    began = time.monotonic()
    chosen = list(specs.select(options.op or []))
    Random(options.seed).shuffle(chosen)  # noqa: S311 - as above
    rounds: dict[str, tuple[float, ...]] = {}
    for spec in chosen:
        if time.monotonic() - began > options.seconds:
            break
        for item in measured(spec, specs, seed=options.seed, faults=options.faults, pairs=options.pairs):
            _show(item)
            name = " and ".join(mutant.id for mutant in item.mutants)
            if len(item.mutants) > 1:
                rounds[f"{HIDDEN if item.hidden else PAIRS}, {name}"] = (float(item.apart),)
            else:
                rounds[f"{FINDINGS}, {name}"] = (float(len(item.findings)),)
            if item.right is not None:
                rounds[f"{CONDITIONS}, {name}"] = (float(item.right),)
    for row in shown(rounds):
        print(f"{row.what}: {row.figure}{f' ({row.verdict})' if row.goal else ''}")
    print(f"on {started.text}")
    if options.store:
        command = f"make bench-findings ARGS='{' '.join(arguments)}'"
        store(NAME, rounds, command=command, started=started, needed=(FINDINGS, PAIRS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
