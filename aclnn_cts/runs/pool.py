"""Several judges at once: each a fresh process with an implementation of its own, parts handed out one by one.

Results come back in the order of the plan, whatever the workers' pace: a run's records do not depend on their number.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from aclnn_cts.checks.plan import Part
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.execution.settings import BenchSettings
from aclnn_cts.findings.waivers.file import Waiver
from aclnn_cts.findings.waivers.matching import waivers_of_run
from aclnn_cts.sandbox.collector import keep_for_good
from aclnn_cts.sandbox.interrupts import interrupts_held_back, leave_interrupts_to_the_head, worker_context
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.trials.trial_runner import Bench, Judged

__all__ = ["PoolOptions", "judge_parts"]

AHEAD = 3
"""Parts a worker has waiting, so that it never idles while the head stores."""

_BENCH: list[tuple[Bench, int]] = []
"""The worker process's own bench; filled once by `_open`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """What every worker is opened with."""

    settings: BenchSettings
    seed: int
    workers: int
    waivers: tuple[Waiver, ...]
    head: int = field(default_factory=os.getpid)
    """The process that hands out the parts."""


def _open(options: PoolOptions) -> None:
    leave_interrupts_to_the_head(options.head)
    settings = options.settings
    specs = load_specs(settings.spec_folders)
    host = settings.open_host(specs)
    waivers = waivers_of_run(options.waivers, settings=settings, environment=host.environment, specs=specs)
    bench = Bench(specs=specs, host=host, settings=settings, explained=waivers.explains, sparing=True)
    _BENCH.append((bench, options.seed))
    keep_for_good()


def _work(part: Part) -> list[tuple[Part, int, Judged]]:
    bench, seed = _BENCH[0]
    return list(bench.run_parts([part], seed=seed))


def judge_parts(parts: Sequence[Part], options: PoolOptions) -> Iterator[tuple[Part, int, Judged]]:
    """Judge parts on `options.workers` processes, as `Bench.run_parts` does on one.

    HarnessError where a worker cannot be opened or dies.
    """
    with ProcessPoolExecutor(
        options.workers, mp_context=worker_context(), initializer=_open, initargs=(options,)
    ) as pool:
        waiting: deque[Future[list[tuple[Part, int, Judged]]]] = deque()
        remaining = iter(parts)
        try:
            for part in remaining:
                with interrupts_held_back():
                    waiting.append(pool.submit(_work, part))
                if len(waiting) >= AHEAD * options.workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            raise HarnessError(
                "a worker process ended before its work, killed from outside or by the system for want of memory;"
                " run with fewer workers, or with --workers 1 to see why"
            ) from None
        finally:
            # Waiting here costs nothing, since Python waits for the workers when it ends; and there it may wake a
            # pool through a pipe that is just being closed, which ends in a traceback.
            pool.shutdown(wait=True, cancel_futures=True)
