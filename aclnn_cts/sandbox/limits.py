"""How long and how much a runner may take, how much a call, and how a process of many small cases collects garbage."""

from __future__ import annotations

import contextlib
import gc
import os
from dataclasses import dataclass, replace
from pathlib import Path

DEFAULT_MAX_BYTES = 1 << 30
"""Of the arguments of one call."""

_TIMES_ARGUMENTS = 4

_GRACE_SECONDS = 15.0
"""Beyond an adapter's own time limit, for it to say which call reached that."""


_CONTAINER_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Files below /sys/fs/cgroup: the second version of control groups, and the first."""


def one_blas_thread() -> None:
    """Let NumPy multiply matrices in one thread, unless the environment says otherwise; before NumPy is imported.

    Each worker has a core of its own. On arrays of a test case threads cost more than they save, and the last bits of a
    sum would depend on the number of cores. This is for OpenBLAS, which NumPy's wheels have; torch has its own threads.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def share_of_memory(workers: int) -> int:
    """Bytes: what a runner may take where so many judges share the machine. Half of its memory is for all of them."""
    return machine_memory() // (2 * workers)


def memory_of_runner(workers: int, *, python: bool, max_bytes: int = DEFAULT_MAX_BYTES) -> tuple[int, str]:
    """Bytes that a runner may take, and where that limit comes from.

    Its share, and of an implementation in Python at most four times the arguments of the largest call: 4 GiB where
    `max_bytes` is the default or less. What a device's libraries take has no such measure.
    """
    share = share_of_memory(workers)
    most = _TIMES_ARGUMENTS * max(max_bytes, DEFAULT_MAX_BYTES)
    if python and most < share:
        return most, f", {_TIMES_ARGUMENTS} times --max-bytes"
    return share, f", a share of {workers} workers" if workers > 1 else ""


def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that the machine has, or the container, where that has fewer."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in _CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            # Without a limit the first has the word `max`, and the second a number beyond any machine.
            found = min(found, max(int((groups / name).read_text()), 1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """When a runner is given up."""

    call_seconds: float = 60.0
    """From one outcome to the next; calls of one group share it."""
    hung_seconds: float = 2.0
    """The least that `sandbox.adaptive_timeout` makes of it where calls have hung before."""
    open_seconds: float = 180.0
    """From starting a process until its adapter is open: a device's first start-up is slow."""
    close_seconds: float = 5.0
    """Until a runner that was asked to end has ended."""
    memory_bytes: int | None = None
    """Memory of a runner and all that it starts: private, and shared (memfd, /dev/shm) beyond what the judge lent.

    None: what `memory_of_runner` says."""


def limits_with_slack(limits: RunnerLimits, call_seconds: float) -> RunnerLimits:
    """Limits that leave an adapter with a clock of its own the time to look at it."""
    return replace(limits, call_seconds=max(limits.call_seconds, call_seconds + _GRACE_SECONDS))


def freeze_objects() -> None:
    """Take what lives by now (modules, specs, an open implementation) out of the collector's sight.

    Each case leaves hundreds of containers, and the collector would walk through all older ones again and again: a
    tenth of a worker's time, more where torch is loaded. Call it in a process of ours once what it works with is
    open: what is part of a dead cycle by then stays for the process's life, as nothing is collected before.

    What is left is looked through after every two hundred thousand new containers instead of every seven hundred: a
    batch's die with it without the collector, and a pass would find those of the chunk under way still in use.
    """
    gc.freeze()
    gc.set_threshold(200_000)
