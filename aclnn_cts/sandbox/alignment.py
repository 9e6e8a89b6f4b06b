"""Where blocks of memory begin."""

from __future__ import annotations

ALIGNMENT = 64
"""Bytes: what the device runtime's own allocations keep (aclrtMalloc), and any vector unit needs."""


def align_up(size: int, alignment: int = ALIGNMENT) -> int:
    """The next multiple of an alignment."""
    return -(-size // alignment) * alignment
