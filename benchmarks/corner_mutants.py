"""Which corner mutants a plan finds: `make power-corners [ARGS='--profile quick --store']` from the checkout.

A corner mutant is the reference with every output spoiled in the calls at one corner, and right in all others. It is
found where a trial at the corner fails. Such a trial is one call, and calls do not depend on each other: the spoiling
at a corner is exactly the spoiling of its calls. So each call is spoiled and judged once, for all corners that it is
at, and nothing is run for each corner. Calls that are at found corners alone are not made any more.

Only calls that the plan makes for corners say where they are: a random call at a corner does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import Judged, Record, Result, SkipReason
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.formula.mutants import Mutant, Site
from aclnn_cts.generate.corner_list import recorded_corners
from aclnn_cts.sandbox.host import InProcessHost
from aclnn_cts.selftest.kinds import SPOILED
from aclnn_cts.selftest.mutated_session import MutatedSession
from aclnn_cts.selftest.power import slices
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.plan import PROFILES, CaseSource, Profile, plan_parts
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.stored import Rounds, figures_of, start, store
from tools.markdown import table

NAMES = {name: f"corner-mutants-{name}" for name in ("quick", "standard")}
"""Of the stored figures, by profile."""
COLUMNS = ("operator", "corners", "found", "not found, and what came of so many calls")
NO_CALL, NO_VALUES, PASSED = "no call", "no values", "passed"
"""What came of calls: there is none, they compute no element that could be spoiled, or the spoiled outputs pass."""

Missing = Mapping[str, Counter[str]]
"""Corners of which no spoiled call failed, and how the trials at each of them ended."""


def listed_corners(spec: Spec, profile: Profile) -> tuple[str, ...]:
    """The corners that a plan must be at."""
    found = recorded_corners(spec, spec.usual_product)
    return () if found is None else tuple(found.reachable_corners(heavy=profile.heavy))


def missing_corners(spec: Spec, profile: Profile, specs: Specs, *, trigger: str = "") -> Missing:
    """The corners whose mutants the plan of seed 0 does not find; `trigger`: spoil only those calls."""
    target = Target(product=spec.usual_product)
    missing = {corner: Counter[str]() for corner in listed_corners(spec, profile)}
    session = MutatedSession(target, specs)
    session.switch(Mutant(kind=SPOILED, site=Site.STORE, operator=spec.operator, trigger=trigger))
    settings = RunnerSettings(adapter="reference", target=target)
    with InProcessHost(session) as host:
        runner = TrialRunner(
            specs=specs, host=host, settings=settings, is_waived=lambda _record: True, sample_waived=True
        )
        for part in plan_parts([spec], product=target.product, chosen=profile):
            trials = list(runner.expand(part, seed=0)) if missing and part.source is CaseSource.CORNERS else []
            for chosen in slices(trials, first=8, most=64):
                wanted = [trial for trial in chosen if not missing.keys().isdisjoint(trial.case.origin.corners)]
                for judged in runner.run(wanted):
                    for record in judged.records:
                        _count(record, missing)
    return missing


def _count(record: Record, missing: dict[str, Counter[str]]) -> None:
    for corner in missing.keys() & set(record.trial.case.origin.corners):
        if record.verdict.result == Result.FAILED:
            del missing[corner]
        else:
            missing[corner][_outcome_of(record)] += 1


def _outcome_of(record: Record) -> str:
    verdict = record.verdict
    if verdict.result != Result.PASSED:
        return verdict.kind or verdict.result
    return PASSED if verdict.judged == Judged.VALUES else NO_VALUES


def measure_operators(specs: Specs, operators: Sequence[Spec], profile: Profile) -> Rounds:
    """Of each operator how many corners are listed and found, and the calls at each of the others."""
    rounds: dict[str, tuple[float, ...]] = {}
    for number, spec in enumerate(operators, start=1):
        corners, missing = listed_corners(spec, profile), missing_corners(spec, profile, specs)
        rounds[f"corners, {spec.operator}"] = (len(corners),)
        rounds[f"found, {spec.operator}"] = (len(corners) - len(missing),)
        for corner, ends in missing.items():
            why = " and ".join(sorted(ends)) or NO_CALL
            rounds[f"missing, {spec.operator}; {corner}; {why}"] = (ends.total(),)
        print(f"{number} of {len(operators)}: {spec.operator}, {len(missing)} missing", file=sys.stderr, flush=True)
    return rounds


def corner_rows(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """A row for all operators, and one for each that has a corner whose mutant is not found."""
    corners, found = (figures_of(rounds, name) for name in ("corners", "found"))
    missing: dict[str, list[str]] = {operator: [] for operator in corners}
    reasons = Counter[str]()
    for label, calls in figures_of(rounds, "missing").items():
        operator, corner, why = label.split("; ")
        reasons[why] += 1
        missing[operator].append(f"`{corner}` ({why}{f', {calls.median:.0f}' if calls.median else ''})")
    numbers = [f"{sum(figure.median for figure in figures.values()):,.0f}" for figures in (corners, found)]
    yield (
        f"all {len(corners)}",
        *numbers,
        ", ".join(f"{why}: {count}" for why, count in reasons.most_common()) or "none",
    )
    for operator, texts in missing.items():
        if texts:
            numbers = [f"{figures[operator].median:.0f}" for figures in (corners, found)]
            yield operator.removeprefix("aclnn"), *numbers, "; ".join(texts)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and store where that is asked for; 1 where a plan should find a mutant that it does not."""
    parser = argparse.ArgumentParser(prog="benchmarks.corner_mutants", description=__doc__)
    parser.add_argument("--profile", choices=tuple(NAMES), default="standard")
    parser.add_argument("--op", action="append", metavar="OPERATOR", help="such as softmax_backward; default: all")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/power.md (then: make docs)")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    try:
        operators = [specs.find(word, where="--op") for word in options.op or specs]
    except UsageError as error:
        parser.error(str(error))
    rounds = measure_operators(specs, operators, PROFILES[options.profile])
    print("\n".join(table(COLUMNS, list(corner_rows(rounds)))))
    if options.store:
        command = f"make power-corners ARGS='{' '.join(arguments)}'"
        store(NAMES[options.profile], rounds, command=command, started=started, needed=("corners", "found"))
    # A corner is listed for the standard profile: a shorter plan need not have calls at it.
    excused = {NO_VALUES, SkipReason.OPEN, SkipReason.UNSAFE} | ({NO_CALL} if options.profile == "quick" else set())
    whys = {label.rpartition("; ")[2] for label in figures_of(rounds, "missing")}
    return int(any(not excused.issuperset(why.split(" and ")) for why in whys))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
