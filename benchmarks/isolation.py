"""`make bench-isolation`: what a process of its own costs a call, and how many statuses a second are judged.

Isolated and in-process calls take turns in one run, so that whatever else the machine does meets both; of each, the
quickest round counts, since noise only ever adds. Also measured: first phases alone, through the whole harness, and how
soon the rest of a batch goes on after its runner has died. Run as `python -m benchmarks.isolation [--rounds N]`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.outcome import Ended
from aclnn_cts.core.target import Target
from aclnn_cts.core.variables import variable_set
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.host import SessionHost, open_host
from aclnn_cts.engine.plan import LIFE_CYCLE_KIND, plan_parts, profile
from aclnn_cts.engine.process import ProcessHost
from aclnn_cts.engine.sentinel import sentinel
from aclnn_cts.engine.settings import BenchSettings
from aclnn_cts.generate.buffers import layout, prepare
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.spec.load import Specs, load_specs
from aclnn_cts.spec.model import Spec
from benchmarks.measure import processor_seconds

__all__ = ["Overhead", "StatusRate", "main", "overhead", "recovery", "status_rates"]

PRODUCT = "atlas-a2"
BATCH = 64
AMORTISED_GOAL = 0.3
SINGLE_GOAL = 0.6
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
    case = sentinel(Sampler(spec, target))
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
        bench = Bench(specs=specs, host=host, settings=BenchSettings(adapter="loopback", target=target, phases=1))
        for spec in specs.values():
            parts = plan_parts([spec], product=PRODUCT, chosen=profile("quick"), laws=lambda _: (), phases=1)
            times = [processor_seconds()]
            # A trial of the life cycle is four thousand calls.
            trials = [trial for part in parts if part.kind != LIFE_CYCLE_KIND for trial in bench.expand(part, seed=0)]
            times.append(processor_seconds())
            number = sum(len(judged.records) for judged in bench.run(trials))
            times.append(processor_seconds())
            found[spec.operator] = StatusRate(trials=number, generated=times[1] - times[0], run=times[2] - times[1])
    return found


def recovery(spec: Spec, specs: Specs, *, deaths: int) -> list[float]:
    """Seconds for a small batch in whose middle the runner dies, without what an ordinary call takes.

    The death, the look at the device in the next runner and the rest of the batch are part of it. One batch follows the
    other, so that the spare has no longer to get ready than a batch takes.
    """
    target = Target(product=PRODUCT)
    case = sentinel(Sampler(spec, target))
    fatal = _with_elements(case, _FATAL)
    found = []
    with variable_set(_INJECT, f"abort@numel={_FATAL}"), open_host("loopback", target=target, specs=specs) as host:
        for _ in range(deaths):
            calls = [_call(host, spec, item) for item in (case, fatal, case)]
            began = time.perf_counter()
            ends = [outcome.ended for outcome in host.run(calls)]
            found.append(time.perf_counter() - began)
            if ends != [Ended.RETURNED, Ended.SIGNAL, Ended.RETURNED]:
                raise RuntimeError(f"the three calls ended otherwise than one death makes them end: {ends}")
            host.recycle()
    return found


def _with_elements(case: Case, numel: int) -> Case:
    """The call with tensors of so many elements."""
    arguments = {
        name: msgspec.structs.replace(value, shape=(numel,)) if isinstance(value, Tensor) else 0
        for name, value in case.arguments.items()
    }
    return msgspec.structs.replace(case, arguments=arguments)


def _call(host: SessionHost, spec: Spec, case: Case) -> Call:
    outputs = frozenset(spec.outputs)
    plan = layout(case, outputs)
    arrays = case_arrays(case, [name for name in spec.inputs if case.arguments[name] is not None])
    return Call(case, prepare(case, outputs=outputs, arrays=arrays, memory=host.memory(plan.size), plan=plan))


def _seconds(host: SessionHost, calls: Sequence[Call]) -> float:
    began = time.perf_counter()
    host.run(calls)
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(prog="benchmarks.isolation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, metavar="N", help="batches of each (200)")
    parser.add_argument("--deaths", type=int, default=20, metavar="N", help="runners that die (20)")
    options = parser.parse_args(arguments)
    build()
    specs = load_specs()
    spec = specs["aclnnSoftmaxBackward"]
    print("milliseconds a small call (aclnnSoftmaxBackward), the quickest round of each")
    print(f"{'':32}{'in-process':>12}{'isolated':>12}{'added':>12}{'goal':>12}")
    for adapter in ("reference", "loopback"):
        both = overhead(adapter, spec, specs, rounds=options.rounds)
        goals = (AMORTISED_GOAL, SINGLE_GOAL)
        for name, goal, cost in zip((f"batches of {BATCH}", "one by one"), goals, both, strict=True):
            figures = f"{cost.in_process:12.3f}{cost.isolated:12.3f}{cost.added:12.3f}{goal:12.1f}"
            print(f"{adapter + ', ' + name:32}{figures}")
    print("\nfirst phases alone on the software device, a second of one core's time, judge and runner together")
    print(f"{'':40}{'trials':>8}{'run, judged':>14}{'and generated':>15}")
    for operator, rate in status_rates(specs).items():
        whole = rate.run + rate.generated
        print(f"{operator:40}{rate.trials:8}{rate.trials / rate.run:14.0f}{rate.trials / whole:15.0f}")
    gone = recovery(spec, specs, deaths=options.deaths)
    print(
        f"\na batch of three calls in whose middle the runner dies, until all is answered: "
        f"{statistics.median(gone):.2f} s (median of {len(gone)}), {max(gone):.2f} s (longest); goal {RESENT_GOAL:g} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
