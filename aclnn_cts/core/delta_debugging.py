"""The fewest items of a list that still show something: calls before a failure, or elements that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_PARTS = 64
"""Parts that are left out one by one."""


def shortest_end(items: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """The shortest end of a list that shows it as the whole does, as bisection finds it."""
    low, high = 0, len(items)
    while high - low > 1:
        middle = (low + high) // 2
        if shows(items[middle:]):
            low = middle
        else:
            high = middle
    return items[low:]


def without_others(items: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> list[T]:
    """A list without the parts that it shows it without (ddmin): all but the first, then halves, quarters and so on.

    It is never empty.
    """
    kept = list(items)
    if len(kept) > 1 and shows(kept[:1]):
        return kept[:1]
    size = len(kept) // 2
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if fewer and shows(fewer):
                kept = fewer
            else:
                start += size
        size = size // 2 if len(kept) <= _PARTS * size else 0
    return kept
