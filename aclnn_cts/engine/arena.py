"""Memory that a host lends for buffers: mapped by judge and runner alike, so that no array is copied between them."""

from __future__ import annotations

import fcntl
import mmap
import os

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
    """A memfd that grows. Blocks are lent one after the other and all end together with `recycle`.

    Growing lengthens the one file, so that every process that inherited it, a waiting spare included, finds the new
    part by mapping it again; what was lent before stays where it is.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("aclnn-cts-buffers", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # A runner that shortened the file would kill the judge with SIGBUS.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.size = 0
        self._used = 0
        self._maps: list[tuple[int, mmap.mmap, NDArray[np.uint8]]] = []
        self._grow(_FIRST_SIZE)

    def lend(self, size: int) -> NDArray[np.uint8]:
        """A block of bytes, aligned; it holds whatever was there. Raises HarnessError where there is no memory."""
        start = self._used
        end = start + aligned(size)
        if end > self.size:
            self._grow(max(end, 2 * self.size))
        self._used = end
        return self._maps[-1][2][start : start + size]

    def locate(self, block: NDArray[np.uint8]) -> int:
        """Where a lent block starts, in bytes from the start of the arena. Raises HarnessError for memory of others."""
        address = _address(block)
        for base, _, array in reversed(self._maps):
            if base <= address and address + block.nbytes <= base + array.nbytes:
                return address - base
        raise HarnessError("a call's buffers do not lie in memory that its host lent: make them in host.memory(size)")

    def recycle(self) -> None:
        """End all loans: the memory may be lent again, and nobody may use what was lent."""
        self._used = 0
        del self._maps[:-1]
        if self.size > _KEPT:
            self._maps[-1][1].madvise(mmap.MADV_REMOVE, _KEPT, self.size - _KEPT)

    def close(self) -> None:
        """Give the memory back as soon as nobody holds a block of it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            self._maps.clear()

    def _grow(self, size: int) -> None:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            os.ftruncate(self.descriptor, size)
            mapping = mmap.mmap(self.descriptor, size)
        except (OSError, OverflowError, ValueError) as error:
            raise HarnessError(f"no memory for buffers of {size} bytes: {error}; lower --max-bytes") from error
        array = np.frombuffer(mapping, np.uint8)
        self._maps.append((_address(array), mapping, array))
        self.size = size


def _address(array: NDArray[np.uint8]) -> int:
    return int(array.__array_interface__["data"][0])
