"""Rates and their spread, a second of processor time: what one core does, whatever else the machine is doing.

What is compared is measured in turns, so that what still disturbs a round disturbs both sides.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHILDREN = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Figure:
    """The same thing measured in several rounds."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """What is compared with a goal."""
        return statistics.median(self.values)

    def text(self, form: str, unit: str = "") -> str:
        """The median, and half of what lies between the least and the greatest, as a share of it; once is without."""
        median = f"{self.median:{form}} {unit}".rstrip()
        if len(self.values) == 1:
            return median
        spread = (max(self.values) - min(self.values)) / 2.0 / self.median
        return f"{median} \N{PLUS-MINUS SIGN}{spread:.0%}"


def processor_seconds() -> float:
    """Processor time of this process, of the children that it has and of those that it had, in seconds (Linux).

    What a child took stays counted when it ends and is waited for: a runner that is replaced turns no clock back.
    """
    running = sum(_clock(int(child)) for file in _CHILDREN.glob("*/children") for child in file.read_text().split())
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + running + ended.ru_utime + ended.ru_stime


def _clock(process: int) -> float:
    """Processor time of a child with all its threads, those that have ended too: clock_getcpuclockid(3)."""
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(process, ctypes.byref(clock))
    if error:
        raise OSError(error, f"no processor clock of process {process}: {os.strerror(error)}")
    return time.clock_gettime(clock.value)


def stay_on_one_core() -> None:
    """Keep this process, and all that it starts from now on, on one of the cores that it may use.

    Processes that work at the same time slow each other down where two cores share their units, and each is then
    charged for more time than it needs by itself.
    """
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def rate(work: Callable[[int], int], number: int) -> float:
    """Things a second: `work` takes the round's number and gives how many things it did. ValueError where none."""
    done, seconds = _timed(work, number)
    return done / seconds


def interleave(works: Sequence[Callable[[int], int]], rounds: int, *, turns: int = 1) -> tuple[Figure, ...]:
    """The rates of several works, each done `turns` times a round in turn, after a turn that is not counted."""
    for work in works:
        work(0)
    found: list[list[float]] = [[] for _ in works]
    for first in range(1, rounds * turns + 1, turns):
        parts = [[_timed(work, number) for work in works] for number in range(first, first + turns)]
        for values, part in zip(found, zip(*parts, strict=True), strict=True):
            values.append(sum(done for done, _ in part) / sum(seconds for _, seconds in part))
    return tuple(Figure(tuple(values)) for values in found)


def _timed(work: Callable[[int], int], number: int) -> tuple[int, float]:
    gc.collect()  # else what others have left is looked through on the account of who crosses the threshold
    start = processor_seconds()
    done = work(number)
    seconds = processor_seconds() - start
    if done <= 0:
        raise ValueError(f"turn {number} did nothing in {seconds:.3g} s; there is no rate of it")
    return done, seconds


def ratio(above: Figure, below: Figure) -> Figure:
    """Round by round, so that what disturbed a round disturbs its ratio least."""
    return Figure(tuple(left / right for left, right in zip(above.values, below.values, strict=True)))


def geometric_mean(figures: Iterable[Figure]) -> Figure:
    """Over operators, round by round."""
    rounds = zip(*(figure.values for figure in figures), strict=True)
    return Figure(tuple(math.exp(statistics.fmean(map(math.log, values))) for values in rounds))
