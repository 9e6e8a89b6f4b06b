"""`make bench-conditions`: does the condition that a finding names agree with what sets its fault off?

Measured are the seeded faults whose trigger the catalogue states, as an expression over a valid call. Each is run on
the plain checks of its operator's quick plan, for at most so many seconds. The condition of its largest finding, or
*always* where it names none, is held against the stated trigger on 200 fresh valid calls.

The statement is checked as well: a call without the trigger must give the same bytes and statuses with the fault as
without it. Run as `python -m benchmarks.conditions` from the checkout.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from aclnn_cts.checks.laws import law_ids
from aclnn_cts.checks.plan import Part, plan_parts, profile
from aclnn_cts.core.case import Case
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.dedup_key import VALUE_KINDS
from aclnn_cts.findings.shared_condition import PLAIN, Passed, condition_of
from aclnn_cts.generate.predicate import Predicate, compile_predicate
from aclnn_cts.mutants.fault_catalogue import SeededFault, read_catalogue
from aclnn_cts.mutants.power import switched_on
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.shown import Row
from benchmarks.stored import Rounds, start, store

NAME = "conditions"
"""Of the stored figures."""
CALLS = 200
"""Fresh valid calls for each fault."""
AGREES = 0.9
"""Share of them on which condition and trigger must say the same."""
GOAL = 0.7
"""Share of the faults whose condition must."""
SECONDS = 20.0
"""For the calls of one fault."""
_ALWAYS = "true"
_FRESH_SEED = 1_000_003
"""Of calls that no plan holds."""
ALL, CONDITIONAL, ASTRAY = "agreement, all", "agreement, conditional", "calls changed without their trigger"

_Ends: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of one fault."""

    fault: SeededFault
    when: str
    """The condition that its largest finding names; empty where it names none."""
    agrees: float
    """Share of the fresh calls on which condition and trigger say the same."""
    failures: int
    sets_off: int
    """Fresh calls that meet the trigger."""
    astray: int
    """Calls of the plan that the fault changed without the trigger: the catalogue is wrong there."""


@dataclass(slots=True)
class _Operator:
    """What the faults of one operator are measured with."""

    trials: list[Trial]
    clean: Mapping[str, _Ends]
    """By trial, what the device gives without a fault."""
    fresh: list[Case]


def with_trigger(specs: Specs) -> list[SeededFault]:
    """The faults whose trigger the catalogue states."""
    return [entry for entry in read_catalogue(specs).faults.values() if entry.trigger and not entry.equivalent]


def measured(faults: Iterable[SeededFault], specs: Specs, *, seconds: float = SECONDS) -> Iterator[Measured]:
    """What comes of each fault that is found."""
    operators: dict[str, _Operator] = {}
    for fault in faults:
        if fault.operator not in operators:
            operators[fault.operator] = _operator(fault.operator, specs)
        operator = operators[fault.operator]
        with switched_on(fault.id):
            records = list(_records(operator.trials, specs, seconds=seconds))
        failures = largest_finding(records)
        if failures:
            found = condition_of(failures, passed_among(records))
            yield _held(fault, "" if found is None else found.when, len(failures), records, operator)


def _held(fault: SeededFault, when: str, failures: int, records: Sequence[Record], operator: _Operator) -> Measured:
    trigger = compile_predicate(fault.trigger)
    return Measured(
        fault=fault,
        when=when,
        agrees=agreement(when, trigger, operator.fresh),
        failures=failures,
        sets_off=sum(map(trigger, operator.fresh)),
        astray=sum(
            _ends(record) != operator.clean.get(record.trial_id, _ends(record)) and not trigger(record.trial.case)
            for record in records
            if record.trial.case.origin.kind != "invalid"
        ),
    )


def agreement(when: str, trigger: Predicate, calls: Sequence[Case]) -> float:
    """Share of the calls on which a condition ("" for always) and the trigger say the same."""
    holds = compile_predicate(when or _ALWAYS)
    return sum(holds(case) == trigger(case) for case in calls) / len(calls)


def largest_finding(records: Iterable[Record]) -> list[Record]:
    """The failures of plain checks with the same output and sort of fault, of which there are most."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.verdict.result == Result.FAILED and record.trial.case.origin.kind != "invalid":
            kind = Fault.VALUE if record.fingerprint.fault in VALUE_KINDS else record.fingerprint.fault
            groups.setdefault((record.fingerprint.output, kind), []).append(record)
    return max(groups.values(), key=len, default=[])


def passed_among(records: Sequence[Record]) -> Passed:
    """The records that passed, as a run's store gives them."""

    def passed(operator: str, check: str, constraint: str) -> list[Record]:
        return [
            record
            for record in records
            if record.verdict.result == Result.PASSED
            and (record.trial.case.operator, record.trial.check) == (operator, check)
            and constraint in ("", record.fingerprint.clause)
        ]

    return passed


def _operator(operator: str, specs: Specs) -> _Operator:
    target = Target(product=DEFAULT_PRODUCT)
    parts = plan_parts([specs[operator]], product=target.product, chosen=profile("quick"), laws=law_ids)
    with ProcessHost("loopback", target=target, spare=False) as host:
        bench = _bench(specs, host)
        # Broken calls have a condition already: the constraint.
        chosen = (part for part in parts if part.check in PLAIN and part.kind != "invalid")
        trials = [trial for part in chosen for trial in bench.expand(part, seed=0)]
        clean = {record.trial_id: _ends(record) for judged in bench.run(trials) for record in judged.records}
        part = Part(operator, "values", "valid", count=CALLS)
        fresh = [trial.case for trial in islice(bench.expand(part, seed=_FRESH_SEED), CALLS)]
    return _Operator(trials, clean, fresh)


def _records(trials: Sequence[Trial], specs: Specs, *, seconds: float) -> Iterator[Record]:
    """The records of trials, in their order, until the time is up."""
    deadline = time.monotonic() + seconds
    with ProcessHost("loopback:timeout=2", target=Target(product=DEFAULT_PRODUCT), spare=False) as host:
        for judged in _bench(specs, host).run(trials):
            yield from judged.records
            if time.monotonic() > deadline:
                return


def _bench(specs: Specs, host: ProcessHost) -> Bench:
    settings = BenchSettings(adapter="loopback", target=Target(product=DEFAULT_PRODUCT))
    # Known to fail: nobody needs to see each failure a second time.
    return Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True, sparing=True)


def _ends(record: Record) -> _Ends:
    """How each call of a trial ended, its status, and the hashes of its outputs."""
    return tuple(
        (item.ended, item.status, tuple(sorted((name, state.sha256) for name, state in item.buffers.items())))
        for item in record.attempts[0]
    )


def shown(rounds: Rounds) -> Iterator[Row]:
    """Figures for a page."""
    for name, what in ((ALL, "faults with a stated trigger"), (CONDITIONAL, "of these, not set off by every call")):
        values = rounds[name]
        good = sum(value >= AGREES for value in values)
        goal = GOAL if name == ALL else None
        yield Row(
            what=f"{what}: condition and trigger agree on {AGREES:.0%} of {CALLS} fresh calls",
            figure=f"{good} of {len(values)} ({good / len(values):.0%})",
            goal=f"at least {goal:.0%}" if goal is not None else "",
            missed=goal is not None and good < goal * len(values),
        )


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.conditions", description=__doc__)
    parser.add_argument("--op", metavar="OP", help="the faults of one operator alone")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the calls of one fault")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/finding-cards.md")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    chosen = {spec.operator for spec in specs.select([options.op] if options.op else [])}
    faults = [entry for entry in with_trigger(specs) if entry.operator in chosen]
    rows = []
    for row in measured(faults, specs, seconds=options.seconds):
        rows.append(row)
        print(
            f"{row.agrees:4.0%} {row.fault.id}: {row.when or 'always'}; trigger {row.fault.trigger} "
            f"({row.sets_off} of {CALLS} fresh calls, {row.failures} failures"
            + (f", {row.astray} CHANGED WITHOUT IT)" if row.astray else ")"),
            flush=True,
        )
    rounds = {
        ALL: [row.agrees for row in rows],
        CONDITIONAL: [row.agrees for row in rows if row.fault.trigger != _ALWAYS],
        ASTRAY: [float(sum(row.astray for row in rows))],
    }
    for line in shown(rounds):
        print(f"{line.what}: {line.figure} {line.verdict}")
    print(f"{len(faults) - len(rows)} of {len(faults)} faults had no finding in {options.seconds:g} s")
    print(f"on {started.text}")
    if options.store:
        store(NAME, rounds, command="make bench-conditions ARGS=--store", started=started, needed=(ALL, CONDITIONAL))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
