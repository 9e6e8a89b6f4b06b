"""How much memory this process holds, and by how much it grew."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import NamedTuple


class ProcessMemory(NamedTuple):
    """In bytes; 0 where the system does not tell."""

    resident: int
    allocated: int
    """What `malloc` has given out: a small leak fits into memory that earlier calls freed, which stays resident."""

    def growth_since(self, earlier: ProcessMemory) -> int:
        """By how much more is held: by the measure that grew more."""
        return max(now - before for now, before in zip(self, earlier, strict=True))


def process_memory() -> ProcessMemory:
    """What this process holds now."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - between calls whose growth is measured
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        resident = 0
    heap = _heap()
    if heap is None:
        return ProcessMemory(resident, 0)
    found = heap()
    return ProcessMemory(resident, found.uordblks + found.hblkhd)


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    )


@functools.cache
def _heap() -> Callable[[], _Heap] | None:
    """The function of glibc 2.33 and later; None elsewhere."""
    try:
        function = ctypes.CDLL(None)["mallinfo2"]
    except (AttributeError, OSError):
        return None
    function.restype = _Heap
    return function
