"""`make bench-isolation`: what a process of its own costs a call, and how many statuses a second are judged.

Isolated and in-process calls take turns in one run, so that whatever else the machine does meets both; of each, the
quickest round counts, since noise only ever adds. Also measured: first phases alone, through the whole harness, and how
soon the rest of a batch goes on after its runner has died. Run as `python -m benchmarks.isolation [--rounds N]`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aclnn_cts.adapters.loopback_build import build
from aclnn_cts.adapters.protocol import Call
from aclnn_cts.core.case import Case
from aclnn_cts.core.target import Target
from aclnn_cts.engine.bench import Bench
from aclnn_cts.engine.host import SessionHost, open_host
from aclnn_cts.engine.plan import plan_parts, profile
from aclnn_cts.engine.sentinel import sentinel
from aclnn_cts.generate.buffers import layout, prepare
from aclnn_cts.generate.recipes import case_arrays
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.spec.load import Specs, load_specs
from aclnn_cts.spec.model import Spec

__all__ = ["Overhead", "main", "overhead", "recovery", "statuses_per_second"]

PRODUCT = "atlas-a2"
BATCH = 64
AMORTISED_GOAL = 0.3
SINGLE_GOAL = 0.6
RESENT_GOAL = 3.0
_INJECT = "ACLNN_LOOPBACK_INJECT"


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


def statuses_per_second(specs: Specs) -> dict[str, tuple[int, float]]:
    """Of each operator: the trials of `--phases one --profile standard`, and how many of them a second are judged.

    From the expansion of the plan to the record, on the software device in a process of its own.
    """
    target = Target(product=PRODUCT)
    found = {}
    with open_host("loopback", target=target, specs=specs) as host:
        bench = Bench(specs=specs, host=host, adapter="loopback", target=target, phases=1)
        for spec in specs.values():
            parts = plan_parts([spec], product=PRODUCT, chosen=profile("quick"), laws=lambda _: (), phases=1)
            parts = [part for part in parts if not part.promise.startswith("life-cycle")]
            began = time.perf_counter()
            number = 0
            for part in parts:
                number += sum(len(judged.records) for judged in bench.run(list(bench.expand(part, seed=0))))
            found[spec.operator] = (number, number / (time.perf_counter() - began))
    return found


def recovery(spec: Spec, specs: Specs, *, deaths: int) -> list[float]:
    """Seconds from the last answer of a runner that dies until the first of the one after it.

    The death itself, the look at the device and the call that is made next are part of it.
    """
    target = Target(product=PRODUCT)
    case = sentinel(Sampler(spec, target))
    os.environ[_INJECT] = "abort@3"
    try:
        with open_host("loopback", target=target, specs=specs) as host:
            found = []
            for _ in range(deaths):
                # The third second phase of each process: a call in the middle of a batch.
                calls = [_call(host, spec, case) for _ in range(4)]
                began = time.perf_counter()
                outcomes = host.run(calls)
                found.append(time.perf_counter() - began)
                if sum(outcome.ended != "returned" for outcome in outcomes) < 1:
                    raise RuntimeError(f"nobody died: {outcomes}")
                host.recycle()
            return found
    finally:
        del os.environ[_INJECT]


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
    print("\nstatuses judged a second, first phases alone on the software device, generation included")
    for operator, (number, rate) in statuses_per_second(specs).items():
        print(f"{operator:40}{number:8} trials{rate:10.0f} a second")
    gone = recovery(spec, specs, deaths=options.deaths)
    print(
        f"\na batch of 4 calls in whose middle the runner dies, until all is answered: {statistics.median(gone):.2f} s "
        f"(median of {len(gone)}), {max(gone):.2f} s (longest); goal {RESENT_GOAL:g} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
