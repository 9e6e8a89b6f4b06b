"""Memory that a host lends for buffers: mapped by judge and runner alike, so that no array is copied between them."""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.sandbox.alignment import ALIGNMENT, align_up
from aclnn_cts.sandbox.process_tree import allocated_bytes

_FIRST_SIZE = 1 << 22
_KEPT = 1 << 28
"""Bytes that stay in use after `recycle`; the pages beyond go back to the system."""


def sealed_memory(name: str, size: int) -> int:
    """A descriptor of shared memory whose size nobody can change any more, whoever has it too.

    A runner that shortened what the judge has mapped would kill that by SIGBUS; one that lengthened it, or forbade to
    write, would make the judge's next call fail.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Arena:
    """A memfd that is mapped as far as it is needed. Blocks are lent one after the other.

    A loan ends with `recycle` or, where it is held, with `release`.

    The file is as long as the machine's memory and takes none until it is written to. Every process that inherited it,
    a waiting spare included, finds more of it by mapping it again; what was lent before stays where it is.
    """

    def __init__(self) -> None:
        self._most = _most_bytes()
        self.descriptor = sealed_memory("aclnn-cts-buffers", self._most)
        self.size = 0
        """Bytes that are mapped."""
        self._next = 0
        self._room = 0
        """Where the gap between held blocks ends that `_next` lies in; nothing is held beyond `_last`."""
        self._last = 0
        self._lent: dict[int, tuple[int, int]] = {}
        """Start and end within the arena, by address."""
        self._held: dict[int, tuple[int, int]] = {}
        self._grow(_FIRST_SIZE)

    def lend(self, size: int, *, alignment: int = ALIGNMENT) -> NDArray[np.uint8]:
        """A block of bytes, aligned; it holds whatever was there. Raises HarnessError where there is no memory."""
        taken = align_up(max(size, 1))
        start = align_up(self._next, alignment)
        if start + taken > self._room:
            # Too large for the gap before what is held.
            start = align_up(max(self._next, self._last), alignment)
            if start + taken > self.size:
                self._grow(max(start + taken, min(2 * self.size, self._most)))
            self._room = self.size
        self._next = start + taken
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

    @property
    def stray_bytes(self) -> int:
        """Bytes at least that somebody has written where nothing was ever lent."""
        return max(allocated_bytes(self.descriptor) - self.size, 0)

    def drop_strays(self) -> None:
        """Give back what was written where nothing was ever lent."""
        if self.descriptor >= 0 and self._most > self.size:
            with mmap.mmap(self.descriptor, self._most - self.size, offset=self.size) as beyond:
                beyond.madvise(mmap.MADV_REMOVE)

    def _grow(self, size: int) -> None:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        if size > self._most:
            raise HarnessError(
                f"no memory for buffers of {size} bytes: at most {self._most} fit here; lower --max-bytes"
            )
        try:
            mapping = mmap.mmap(self.descriptor, size)
        except OSError as error:
            raise HarnessError(f"no memory for buffers of {size} bytes: {error}; lower --max-bytes") from error
        # Blocks of the mapping before keep that alive.
        self._mapping, self._bytes = mapping, np.frombuffer(mapping, np.uint8)
        self.size = size


def _most_bytes() -> int:
    """The machine's memory, or less where a file may not be as long."""
    whole = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    longest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return whole if longest == resource.RLIM_INFINITY else min(whole, longest // mmap.PAGESIZE * mmap.PAGESIZE)


def _address(array: NDArray[np.uint8]) -> int:
    return int(array.__array_interface__["data"][0])
