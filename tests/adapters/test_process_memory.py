"""What a process holds: small blocks count although freed memory has room for them."""

from __future__ import annotations

import ctypes

import pytest

from aclnn_cts.adapters.cann.process_memory import process_memory

BLOCKS, BYTES = 2_000, 512
NOISE = 1 << 16


def blocks(number: int) -> list[int]:
    """Addresses of blocks that `malloc` gave."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return [malloc(BYTES) for _ in range(number)]


def free(addresses: list[int]) -> None:
    function = ctypes.CDLL(None).free
    function.argtypes = [ctypes.c_void_p]
    for address in addresses:
        function(address)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 counts what malloc gave")
def test_blocks_in_memory_that_was_freed_are_growth_and_freed_blocks_are_none() -> None:
    # Every other block is freed, so that pages stay resident with room in them.
    held = blocks(4 * BLOCKS)
    free(held[::2])
    before = process_memory()
    leaked = blocks(BLOCKS)
    assert process_memory().growth_since(before) >= BLOCKS * BYTES
    free(leaked)
    assert process_memory().growth_since(before) <= NOISE
    free(held[1::2])
