"""Tasks spread over processes, each with the specs that it loaded once.

Workers of runs and campaigns, which hold devices and are replaced when they are lost, are `campaign.fleet.dispatch`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TypeVar

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.sandbox.interrupts import interrupts_held_back, leave_interrupts_to_the_head, worker_context
from aclnn_cts.speclang.load import Specs, load_specs

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a process has for all of its tasks."""

    specs: Specs
    workers: int
    """Processes like this one that share the machine."""
    stop: Event

    def stopped(self) -> bool:
        """Whether what is left of the tasks is not wanted any more."""
        return self.stop.is_set()


_WORKER: list[Worker] = []
"""The process's own; filled once by `_open`."""


def slices(items: Sequence[T], *, first: int, most: int) -> Iterator[Sequence[T]]:
    """The items in slices, each twice as long as the one before, up to so many."""
    start, step = 0, first
    while start < len(items):
        yield items[start : start + step]
        start, step = start + step, min(2 * step, most)


def _open(head: int, stop: Event, workers: int, folders: tuple[Path, ...]) -> None:
    leave_interrupts_to_the_head(head)
    _WORKER.append(Worker(specs=load_specs(folders), workers=workers, stop=stop))


def _call(work: Callable[[T, Worker], R], task: T) -> R:
    return work(task, _WORKER[0])


def spread(
    work: Callable[[T, Worker], R],
    tasks: Sequence[T],
    *,
    workers: int,
    advice: str,
    folders: tuple[Path, ...] = (),
    in_order: bool = False,
) -> Generator[R, None, None]:
    """Results of a module's function as they are ready, or in the order of the tasks.

    Where a worker dies, what is left of the tasks is done by other workers; HarnessError, which ends in `advice`, where
    one dies again before there is another result.

    Close the iterator where not all results are wanted: what runs then is told to stop.
    """
    context = worker_context()
    left, fatal = dict(enumerate(tasks)), False
    while left:
        stop = context.Event()
        with ProcessPoolExecutor(
            workers, mp_context=context, initializer=_open, initargs=(os.getpid(), stop, workers, folders)
        ) as pool:
            try:
                with interrupts_held_back():
                    futures = {pool.submit(_call, work, task): number for number, task in left.items()}
                for future in futures if in_order else as_completed(futures):
                    result = future.result()
                    del left[futures[future]]
                    fatal = False
                    yield result
            except BrokenProcessPool:
                if fatal:
                    raise HarnessError(f"a worker died, and so did another that took its place; {advice}") from None
                fatal = True
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
