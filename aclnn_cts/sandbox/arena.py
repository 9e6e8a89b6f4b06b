"""Memory that a host lends for buffers: mapped by judge and runner alike, so that no array is copied between them."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.errors import HarnessError

__all__ = ["ALIGNMENT", "Arena", "aligned"]

ALIGNMENT = 64
"""Bytes: what the device runtime's own allocations keep (aclrtMalloc), and any vector unit needs."""
_FIRST_SIZE = 1 << 22
_KEPT = 1 << 28
"""Bytes that stay in use after `recycle`; the pages beyond go back to the system."""


def aligned(size: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Arena:
    """A memfd that grows. Blocks are lent one after the other, and end with `recycle` or, where held, by `release`.

    Growing lengthens the one file, so that every process that inherited it, a waiting spare included, finds the new
    part by mapping it again; what was lent before stays where it is.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("aclnn-cts-buffers", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # A runner that shortened the file would kill the judge with SIGBUS.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.size = 0
        self._next = 0
        self._room = 0
        """Where the gap between held blocks ends that `_next` lies in; nothing is held beyond `_last`."""
        self._last = 0
        self._lent: dict[int, tuple[int, int]] = {}
        """Start and end within the arena, by address."""
        self._held: dict[int, tuple[int, int]] = {}
        self._grow(_FIRST_SIZE)

    def lend(self, size: int) -> NDArray[np.uint8]:
        """A block of bytes, aligned; it holds whatever was there. Raises HarnessError where there is no memory."""
        taken = aligned(max(size, 1))
        if self._next + taken > self._room:
            # Too large for the gap before what is held.
            self._next = max(self._next, self._last)
            if self._next + taken > self.size:
                self._grow(max(self._next + taken, 2 * self.size))
            self._room = self.size
        start, self._next = self._next, self._next + taken
        self._last = max(self._last, self._next)
        block = self._bytes[start : start + size]
        self._lent[_address(block)] = (start, self._next)
        return block

    def locate(self, block: NDArray[np.uint8]) -> int:
        """Where a lent block starts, in bytes from the start of the arena. Raises HarnessError for memory of others."""
        address = _address(block)
        start, end = self._lent.get(address) or self._held.get(address) or (0, 0)
        if start + block.nbytes > end:
            raise HarnessError(
                "a call's buffers do not lie in memory that its host lent: make them in host.memory(size)"
            )
        return start

    def recycle(self) -> None:
        """End all loans that are not held: the memory may be lent again, and nobody may use what was lent."""
        self._lent.clear()
        spans = sorted(self._held.values())
        self._last = max((end for _, end in spans), default=0)
        # What is held at a time was mostly lent together: the gap before it, or all that lies beyond.
        self._next, self._room = (0, spans[0][0]) if spans and spans[0][0] else (self._last, self.size)
        kept = max(_KEPT, -(-self._last // mmap.PAGESIZE) * mmap.PAGESIZE)
        if self.size > kept:
            self._mapping.madvise(mmap.MADV_REMOVE, kept, self.size - kept)

    def hold(self, blocks: Iterable[NDArray[np.uint8]]) -> tuple[int, ...]:
        """Keep lent blocks beyond `recycle`; gives what `release` takes."""
        addresses = tuple(_address(block) for block in blocks)
        for address in addresses:
            if (span := self._lent.pop(address, None)) is not None:
                self._held[address] = span
        return addresses

    def release(self, held: Iterable[int]) -> None:
        """Let go of what `hold` gave; the next `recycle` makes the memory free."""
        for address in held:
            self._held.pop(address, None)

    def close(self) -> None:
        """Give the memory back as soon as nobody holds a block of it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            self._lent.clear()
            self._held.clear()
            del self._bytes, self._mapping

    def _grow(self, size: int) -> None:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            os.ftruncate(self.descriptor, size)
            mapping = mmap.mmap(self.descriptor, size)
        except (OSError, OverflowError, ValueError) as error:
            raise HarnessError(f"no memory for buffers of {size} bytes: {error}; lower --max-bytes") from error
        # Blocks of the mapping before keep that alive.
        self._mapping, self._bytes = mapping, np.frombuffer(mapping, np.uint8)
        self.size = size


def _address(array: NDArray[np.uint8]) -> int:
    return int(array.__array_interface__["data"][0])
