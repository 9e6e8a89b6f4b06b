"""Measuring the harness: each seeded fault is run on its operator's plan until it is found, each decoy to the end.

A fault is switched on for the runner of the software device alone, by its environment, or in a session of the mutated
reference. What plans, generates and judges is told nothing of it. Attempts are independent, so they are spread over
processes, each with an implementation of its own.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from aclnn_cts.core.env import variable_set
from aclnn_cts.core.target import DEFAULT_PRODUCT, Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.findings.findings import Failures
from aclnn_cts.formula.mutants import Mutant
from aclnn_cts.sandbox.host import InProcessHost, SessionHost
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.selftest.generated_mutants import CorrectVariant
from aclnn_cts.selftest.kill_matrix import Attempt
from aclnn_cts.selftest.mutated_session import MutatedSession
from aclnn_cts.speclang.load import Specs
from aclnn_cts.trials.plan import Part, Profile, plan_parts
from aclnn_cts.trials.trial_runner import TrialRunner
from aclnn_cts.workers.pool import Surroundings, spread

T = TypeVar("T")

FAULT_VARIABLE = "ACLNN_LOOPBACK_FAULT"
"""Names the fault or decoy that the software device has."""

_DEVICE_SECONDS = 6
"""How long the device may take for a call of a fault. Decoys have the time that everybody has."""
_CALL_SECONDS = 30.0
"""How long a call may take on the whole; some are thousands of first phases."""
_FIRST_SLICE, _SLICE = 2, 16
"""Trials that are run together: few at first, so that a fault is not run much further than to its first failure.

A fault that costs the device costs a new one for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One fault or decoy, with one seed."""

    id: str
    operator: str
    seed: int
    profile: Profile
    subjects: tuple[Mutant | CorrectVariant, ...] = ()
    """What the reference is made into; nothing: the software device has it."""
    decoy: bool = False
    to_end: bool = False
    """Go on after the first failure, and run failures again as a run does. Decoys always go on."""


def slices(items: Sequence[T], *, first: int, most: int) -> Iterator[Sequence[T]]:
    """The items in slices, each twice as long as the one before, up to so many."""
    start, step = 0, first
    while start < len(items):
        yield items[start : start + step]
        start, step = start + step, min(2 * step, most)


@functools.lru_cache(maxsize=1)
def _expanded(_spec_sha256: str, _seed: int, _profile: Profile) -> dict[Part, list[Trial]]:
    """The trials of one operator's plan with one seed, by part: made once, for all faults that meet them in turn."""
    return {}


def attempt(task: Task, specs: Specs, *, workers: int = 1) -> tuple[Attempt, Record | None]:
    """Run one task in this process; its result, and the first failure. HarnessError where no device can be opened.

    `workers` processes like this share the machine.
    """
    began = time.perf_counter()
    adapter = "reference" if task.subjects else "loopback" if task.decoy else f"loopback:timeout={_DEVICE_SECONDS}"
    settings = RunnerSettings(adapter=adapter, target=Target(product=DEFAULT_PRODUCT))
    first: Record | None = None
    cases = cases_to_first = errors = 0
    seconds_to_first = 0.0
    failures = Failures()
    with open_faulty(task, settings, specs, workers=workers) as host:
        # Known to fail: up to the first failure nobody needs to see it a second time.
        runner = TrialRunner(specs=specs, host=host, settings=settings, is_waived=lambda _record: not task.to_end)
        for record in _records(task, runner):
            cases += 1
            errors += record.verdict.result == Result.ERROR
            failures.add(record)
            if record.verdict.result != Result.FAILED:
                continue
            if first is None:
                first, cases_to_first, seconds_to_first = record, cases, time.perf_counter() - began
    return Attempt(
        id=task.id,
        seed=task.seed,
        found=first is not None,
        check=first.trial.check if first is not None else "",
        kind=first.verdict.kind if first is not None else "",
        cases=cases_to_first or cases,
        seconds=seconds_to_first or time.perf_counter() - began,
        findings=tuple(found.key.text() for found in failures.findings),
        failures=tuple(item for found in failures.findings for item in found.counts),
        errors=errors,
    ), first


@contextlib.contextmanager
def open_faulty(task: Task, settings: RunnerSettings, specs: Specs, *, workers: int = 1) -> Iterator[SessionHost]:
    """The implementation with the fault."""
    if task.subjects:
        session = MutatedSession(settings.target, specs)
        session.switch(*task.subjects)
        with InProcessHost(session) as host:
            yield host
        return
    limits = None if task.decoy else RunnerLimits(call_seconds=_CALL_SECONDS)
    # Few faults end the process: a second one, in waiting, would mostly be started in vain.
    with (
        variable_set(FAULT_VARIABLE, task.id),
        ProcessHost(settings.adapter, target=settings.target, limits=limits, workers=workers, spare=False) as device,
    ):
        yield device


def _records(task: Task, runner: TrialRunner) -> Iterator[Record]:
    """Records in the order of the plan, up to the end of the slice with the first failure."""
    spec = runner.specs[task.operator]
    parts = plan_parts([spec], product=runner.settings.target.product, chosen=task.profile)
    goes_on = task.decoy or task.to_end
    expanded = _expanded(spec.sha256, task.seed, task.profile)
    for part in parts:
        if part not in expanded:
            expanded[part] = list(runner.expand(part, seed=task.seed))
        trials = expanded[part]
        for chosen in [trials] if goes_on else slices(trials, first=_FIRST_SLICE, most=_SLICE):
            found = False
            for judged in runner.run(chosen):
                yield from judged.records
                found = found or any(record.verdict.result == Result.FAILED for record in judged.records)
            if found and not goes_on:
                return


def _work(task: Task, given: Surroundings) -> Attempt:
    return attempt(task, given.specs, workers=given.workers)[0]


def attempts(tasks: Sequence[Task], *, workers: int) -> Generator[Attempt, None, None]:
    """Run tasks on so many processes; results come as they are ready. Raises as `spread` does.

    Close the iterator where not all results are wanted: what runs then is given up.
    """
    return spread(_work, tasks, workers=workers, lost=lambda task: f"{task.id}: run it with --fault to see of what")
