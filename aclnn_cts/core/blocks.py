"""Large arrays a block at a time: what a few steps of NumPy take and give then stays in a processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 1 << 15
"""Elements of a block."""


def is_large(count: int) -> bool:
    """Whether so many elements are more than one block."""
    return count > BLOCK


def blocks(count: int, *, each: int = 1) -> Iterator[slice]:
    """Consecutive slices of `count` places, of `each` elements a place: as many as a block holds, and at least one."""
    step = max(BLOCK // max(each, 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
