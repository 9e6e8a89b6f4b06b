"""`make bench-isolation`: what a process of its own costs a call, and how many statuses a second are judged.

Isolated and in-process calls take turns in one run, so that whatever else the machine does meets both; of each, the
quickest round counts, since noise only ever adds. Also measured: first phases alone, through the whole harness, and how
soon the rest of a batch goes on after its runner has died, and what guard pages around inputs cost.
`make bench-isolation ARGS=--store` keeps the figures for docs/isolation.md (then: `make docs`). Run as
`python -m benchmarks.isolation [--rounds N]`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.adapters.protocol import Call
from aclnn_cts.cli.output import console, show_table, table, wrap
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.env import variable_set
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.execution.settings import RunnerSettings
from aclnn_cts.generate.buffers import CallBuffers, InputGuards, block_layout, prepare
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.host import SessionHost
from aclnn_cts.sandbox.open_host import open_host
from aclnn_cts.sandbox.process import ProcessHost
from aclnn_cts.speclang.load import Specs, load_specs
from aclnn_cts.speclang.model import Spec
from aclnn_cts.trials.checks.sentinel import sentinel_case
from aclnn_cts.trials.plan import LIFE_CYCLE_KIND, plan_parts, profile
from aclnn_cts.trials.trial_runner import TrialRunner
from benchmarks.measure import Figure, processor_seconds
from benchmarks.shown import Row, row, show_rows
from benchmarks.stored import Rounds, figures_of, start, store
from benchmarks.tables import Column, mean, show_operators
from benchmarks.tables import slowest_and_fastest as ends

NAME = "isolation"
"""Of the stored figures."""

IN_PROCESS, ISOLATED = "milliseconds in-process", "milliseconds isolated"
JUDGED, GENERATED = "first phases judged", "first phases generated and judged"
GUARDED = "milliseconds prepared, made and inspected"
GONE = "seconds after a death"
TITLES = ("milliseconds a small call", "in-process", "isolated", "added", "goal")

PRODUCT = "atlas-a2"
BATCH = 64
GOALS = {f"batches of {BATCH}": 0.3, "one by one": 0.6}
"""Milliseconds that isolation may add to a call."""
ADAPTERS = {"reference": "reference", "loopback": "software device"}
RESENT_GOAL = 3.0
_INJECT = "ACLNN_LOOPBACK_INJECT"
_FATAL = 499
"""Elements of the call that the device dies of; no sentinel has as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Milliseconds a call, of the quickest round: in this process, and in a runner."""

    in_process: float
    isolated: float

    @property
    def added(self) -> float:
        """What isolation adds to a call."""
        return self.isolated - self.in_process


def overhead(adapter: str, spec: Spec, specs: Specs, *, rounds: int) -> tuple[Overhead, Overhead]:
    """Of a small call: in batches of `BATCH`, and one by one."""
    target = Target(product=PRODUCT)
    case = sentinel_case(Sampler(spec, target))
    with (
        open_host(adapter, target=target, specs=specs, isolate=False) as inside,
        open_host(adapter, target=target, specs=specs, isolate=True) as outside,
    ):
        hosts = (inside, outside)
        found = []
        for size in (BATCH, 1):
            calls = [[_call(host, spec, case) for _ in range(size)] for host in hosts]
            times: list[list[float]] = [[], []]
            for _ in range(rounds * BATCH // size):
                for place, host in enumerate(hosts):
                    times[place].append(_seconds(host, calls[place]) / size * 1e3)
            found.append(Overhead(in_process=min(times[0]), isolated=min(times[1])))
        return found[0], found[1]


def guarding(spec: Spec, specs: Specs, *, rounds: int) -> dict[InputGuards, float]:
    """Milliseconds a small call of the isolated reference, its memory included, by what lies around its inputs."""
    target = Target(product=PRODUCT)
    case = sentinel_case(Sampler(spec, target))
    found = dict.fromkeys(InputGuards, math.inf)
    with open_host("reference", target=target, specs=specs, isolate=True) as host:
        for _ in range(rounds):
            for guards, least in found.items():
                began = time.perf_counter()
                calls = [_call(host, spec, case, guards=guards) for _ in range(BATCH)]
                host.run(calls)
                for call in calls:
                    cast("CallBuffers", call.buffers).inspect()
                found[guards] = min(least, (time.perf_counter() - began) / BATCH * 1e3)
                host.recycle()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRate:
    """Trials of `--phases one --profile quick`, and processor time: what judge and runner took together."""

    trials: int
    generated: float
    """Seconds until the trials were there."""
    run: float
    """Seconds from the trials to their records."""


def status_rates(specs: Specs) -> dict[str, StatusRate]:
    """By operator, on the software device in a process of its own."""
    target = Target(product=PRODUCT)
    found = {}
    with ProcessHost("loopback", target=target, spare=False) as host:
        runner = TrialRunner(
            specs=specs, host=host, settings=RunnerSettings(adapter="loopback", target=target, phases=1)
        )
        for spec in specs.values():
            if not runner.scope.offers(spec.operator, PRODUCT):
                continue
            parts = plan_parts([spec], product=PRODUCT, chosen=profile("quick"), phases=1)
            times = [processor_seconds()]
            # A trial of the life cycle is four thousand calls.
            trials = [trial for part in parts if part.kind != LIFE_CYCLE_KIND for trial in runner.expand(part, seed=0)]
            times.append(processor_seconds())
            number = sum(len(judged.records) for judged in runner.run(trials))
            times.append(processor_seconds())
            found[spec.operator] = StatusRate(trials=number, generated=times[1] - times[0], run=times[2] - times[1])
    return found


def recovery(spec: Spec, specs: Specs, *, deaths: int) -> list[float]:
    """Seconds for a small batch in whose middle the runner dies, without what an ordinary call takes.

    The death, the look at the device in the next runner and the rest of the batch are part of it. One batch follows the
    other, so that the spare has no longer to get ready than a batch takes.
    """
    target = Target(product=PRODUCT)
    case = sentinel_case(Sampler(spec, target))
    fatal = _with_elements(case, _FATAL)
    found = []
    with variable_set(_INJECT, f"abort@numel={_FATAL}"), open_host("loopback", target=target, specs=specs) as host:
        for _ in range(deaths):
            calls = [_call(host, spec, item) for item in (case, fatal, case)]
            began = time.perf_counter()
            ends = [outcome.ended for outcome in host.run(calls)]
            found.append(time.perf_counter() - began)
            if ends != [CallEnd.RETURNED, CallEnd.SIGNAL, CallEnd.RETURNED]:
                raise RuntimeError(f"the three calls ended otherwise than one death makes them end: {ends}")
            host.recycle()
    return found


def _with_elements(case: Case, numel: int) -> Case:
    """The call with tensors of so many elements, all of them 1."""
    ones = Data(recipe="constant", mean=1.0)
    arguments = {
        name: msgspec.structs.replace(value, shape=(numel,), data=ones if value.data is not None else None)
        if isinstance(value, Tensor)
        else 0
        for name, value in case.arguments.items()
    }
    return msgspec.structs.replace(case, arguments=arguments)


def _call(host: SessionHost, spec: Spec, case: Case, *, guards: InputGuards = InputGuards.BANDS) -> Call:
    outputs = frozenset(spec.outputs)
    plan = block_layout(case, outputs, guards=guards)
    arrays = case_arrays(case, [name for name in spec.inputs if case.arguments[name] is not None])
    memory = host.memory(plan.size, alignment=plan.alignment)
    return Call(case, prepare(case, outputs=outputs, arrays=arrays, memory=memory, plan=plan))


def _seconds(host: SessionHost, calls: Sequence[Call]) -> float:
    began = time.perf_counter()
    host.run(calls)
    return time.perf_counter() - began


def measured(specs: Specs, *, rounds: int, deaths: int) -> dict[str, tuple[float, ...]]:
    """All of it: milliseconds a call, calls a second, and seconds after a death."""
    spec = specs["aclnnSoftmaxBackward"]
    found: dict[str, tuple[float, ...]] = {}
    for adapter, called in ADAPTERS.items():
        costs = overhead(adapter, spec, specs, rounds=rounds)
        for call_mode, cost in zip(GOALS, costs, strict=True):
            found[f"{IN_PROCESS}, {called}, {call_mode}"] = (cost.in_process,)
            found[f"{ISOLATED}, {called}, {call_mode}"] = (cost.isolated,)
    for guards, milliseconds in guarding(spec, specs, rounds=rounds).items():
        found[f"{GUARDED}, {guards.value}"] = (milliseconds,)
    for operator, rate in status_rates(specs).items():
        found[f"{JUDGED}, {operator}"] = (rate.trials / rate.run,)
        found[f"{GENERATED}, {operator}"] = (rate.trials / (rate.run + rate.generated),)
    return found | {GONE: tuple(recovery(spec, specs, deaths=deaths))}


def overheads(rounds: Rounds) -> Iterator[tuple[str, ...]]:
    """By adapter and kind of call: in this process, isolated, what is added, and its goal."""
    inside, outside = figures_of(rounds, IN_PROCESS), figures_of(rounds, ISOLATED)
    for what, figure in inside.items():
        cost = Overhead(in_process=figure.median, isolated=outside[what].median)
        goal = next(goal for call_mode, goal in GOALS.items() if what.endswith(call_mode))
        verdict = f"at most {goal}" + (": missed" if cost.added > goal else "")
        yield what, *(f"{value:.3f}" for value in (cost.in_process, cost.isolated, cost.added)), verdict


def shown(rounds: Rounds) -> Iterator[Row]:
    """How soon a batch goes on, and first phases alone."""
    gone = Figure(tuple(rounds[GONE]))
    yield row(
        "a batch of three calls in whose middle the runner dies, until all is answered",
        Figure((gone.median,)),
        ".2f",
        unit="s",
        most=RESENT_GOAL,
        note=f"median of {len(gone.values)}; longest {max(gone.values):.2f} s",
    )
    guarded = figures_of(rounds, GUARDED)
    for guards in InputGuards if guarded else ():
        if guards == InputGuards.BANDS:
            continue
        median = guarded[guards.value].median
        yield row(
            f"added to a small call by guard pages around inputs ({guards.value})",
            Figure((median - guarded[InputGuards.BANDS.value].median,)),
            ".3f",
            unit="ms",
            note=f"{median:.3f} ms with data, memory and inspection",
        )
    for name, what in ((JUDGED, "run and judged"), (GENERATED, "the same, generation and proof included")):
        yield row(
            f"first phases alone, a second of one core's time, {what}", mean(rounds, name), note=ends(rounds, name)
        )


def main(arguments: Sequence[str]) -> int:
    """Measure everything, print it, and store it where that is asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.isolation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, metavar="N", help="batches of each (200)")
    parser.add_argument("--deaths", type=int, default=20, metavar="N", help="runners that die (20)")
    parser.add_argument("--store", action="store_true", help="keep the figures for docs/isolation.md (then: make docs)")
    options = parser.parse_args(arguments)
    started = start()
    build()
    rounds = measured(load_specs(), rounds=options.rounds, deaths=options.deaths)
    out = console()
    wrap(out, "Milliseconds a small call (aclnnSoftmaxBackward), the quickest round of each", style="bold")
    made = table(*TITLES)
    for cells in overheads(rounds):
        made.add_row(*cells)
    show_table(out, made)
    columns = (Column(title="run, judged", name=JUDGED), Column(title="and generated", name=GENERATED))
    title = "First phases alone on the software device, a second of one core's time, judge and runner together"
    out.print()
    show_operators(out, title, columns, rounds)
    show_rows(out, list(shown(rounds)))
    if options.store:
        command = f"make bench-isolation ARGS='--rounds {options.rounds} --deaths {options.deaths} --store'"
        store(
            NAME,
            rounds,
            command=command,
            started=started,
            needed=(IN_PROCESS, ISOLATED, GUARDED, JUDGED, GENERATED, GONE),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
