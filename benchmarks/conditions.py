"""`make bench-conditions`: does the condition that a finding names agree with what sets its fault off?

Each seeded fault that changes what valid calls give is run on its operator's quick plan. The condition of its largest
finding of values, or *always* where it names none, is held against 200 fresh valid calls: a call sets the fault off
where the software device gives other bytes or another status with the fault than without. Run as
`python -m benchmarks.conditions` from the checkout.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from aclnn_cts.checks.plan import Part
from aclnn_cts.cli.main import main as command
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.finding_groups import finding_groups
from aclnn_cts.mutants.fault_catalogue import SeededFault, read_catalogue
from aclnn_cts.mutants.power import switched_on
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.predicate import compile_predicate
from aclnn_cts.store.run_directory import RunDirectory
from aclnn_cts.trials.trial_runner import Bench
from benchmarks.stored import start

__all__ = ["AGREES", "CALLS", "main"]

CALLS = 200
"""Fresh valid calls for each fault."""
AGREES = 0.9
"""Share of them on which condition and trigger must say the same."""
_CLASSES = frozenset({"numerical", "precision", "indexing", "data"})
"""Of faults: the others break no values, or end the process."""
_VALUES = frozenset({"values", "example", "boundary", "memory", "precision"})

_Seen: TypeAlias = "list[tuple[object, ...]]"


def _fresh(operator: str, specs: Specs) -> list[Trial]:
    """Valid calls that no plan of seed 0 holds."""
    with _bench(specs) as bench:
        part = Part(operator, "values", "valid", count=CALLS)
        return list(islice(bench.expand(part, seed=1_000_003), CALLS))


@contextlib.contextmanager
def _bench(specs: Specs) -> Iterator[Bench]:
    settings = BenchSettings(adapter="loopback", target=Target(product=DEFAULT_PRODUCT))
    with ProcessHost("loopback", target=settings.target) as host:
        yield Bench(specs=specs, host=host, settings=settings, explained=lambda _record: True)


def _seen(trials: Sequence[Trial], specs: Specs) -> _Seen:
    """What the device that is switched on gives: how each call ends, its status and the hashes of its outputs."""
    with _bench(specs) as bench:
        records = [record for judged in bench.run(list(trials)) for record in judged.records]
    ends = {
        record.trial_id: [
            (item.ended, item.status, sorted((name, state.sha256) for name, state in item.buffers.items()))
            for item in record.attempts[0]
        ]
        for record in records
    }
    return [tuple(map(str, ends[trial.id])) for trial in trials]


def _condition(fault: SeededFault, folder: Path, specs: Specs) -> str | None:
    """The condition of the largest finding of values; "" where it names none, None where there is no such finding."""
    run = folder / fault.id
    with switched_on(fault.id), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        command(["run", fault.operator, "--adapter", "loopback", "--workers", "1", "-o", str(run)])
    groups = [
        group
        for group in finding_groups(RunDirectory(run), specs)
        if _VALUES & set(group.details.split("; ")[0].split(", "))
    ]
    largest = max(groups, key=lambda group: group.cases, default=None)
    return None if largest is None else largest.shared.when if largest.shared is not None else ""


def measured(faults: Sequence[SeededFault], specs: Specs) -> Iterator[Mapping[str, object]]:
    """One row a fault: condition, calls that set it off, and the share of calls on which the two agree."""
    fresh: dict[str, tuple[list[Trial], _Seen]] = {}
    with tempfile.TemporaryDirectory(prefix="aclnn-cts-bench-") as folder:
        for fault in faults:
            when = _condition(fault, Path(folder), specs)
            if when is None:
                continue
            if fault.operator not in fresh:
                trials = _fresh(fault.operator, specs)
                fresh[fault.operator] = trials, _seen(trials, specs)
            trials, clean = fresh[fault.operator]
            with switched_on(fault.id):
                faulty = _seen(trials, specs)
            sets_off = [one != other for one, other in zip(clean, faulty, strict=True)]
            holds = compile_predicate(when) if when else lambda _case: True
            agree = sum(holds(trial.case) == off for trial, off in zip(trials, sets_off, strict=True))
            if any(sets_off):
                yield {"fault": fault.id, "when": when, "sets off": sum(sets_off), "agrees": agree / len(trials)}


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.conditions", description=__doc__)
    parser.add_argument("--op", metavar="OP", help="the faults of one operator alone")
    options = parser.parse_args(arguments)
    started, specs = start(), load_specs()
    catalogue = read_catalogue(specs)
    chosen = (entry for entry in catalogue.faults.values() if entry.fault_class in _CLASSES and not entry.equivalent)
    faults = [entry for entry in chosen if options.op in (None, entry.operator)]
    rows = []
    for row in measured(faults, specs):
        rows.append(row)
        print(
            f"{row['agrees']:4.0%} {row['fault']}: {row['when'] or 'always'} ({row['sets off']} of {CALLS})", flush=True
        )
    good = sum(float(str(row["agrees"])) >= AGREES for row in rows)
    print(f"{good} of {len(rows)} conditions agree with the trigger on {AGREES:.0%} of {CALLS} fresh calls")
    print(f"on {started.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
