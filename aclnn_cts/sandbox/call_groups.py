"""Calls that are made together: neighbours of one group, as calls in a batch and on the way to a runner have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class Grouped(Protocol):
    """A call that may belong to a group."""

    @property
    def group(self) -> int | None:
        """Neighbours of one group are made together; None: alone."""
        ...


def end_of_group(calls: Sequence[Grouped], start: int) -> int:
    """The place after the last call that is made together with the one at `start`."""
    group = calls[start].group
    end = start + 1
    while group is not None and end < len(calls) and calls[end].group == group:
        end += 1
    return end


def groups(calls: Sequence[Grouped], start: int = 0, stop: int | None = None) -> Iterator[range]:
    """The places of calls that are made together, from `start` on; `stop` is where a group ends."""
    while start < (len(calls) if stop is None else stop):
        group = range(start, end_of_group(calls, start))
        yield group
        start = group.stop
