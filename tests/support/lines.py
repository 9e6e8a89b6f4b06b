"""Where the lines of an output are."""

from __future__ import annotations

from collections.abc import Sequence


def places_of(lines: Sequence[str], starts: Sequence[str]) -> list[int]:
    """The place of the first line that begins with each start; they are in order, and the last is the last line."""
    places = [next(place for place, line in enumerate(lines) if line.startswith(start)) for start in starts]
    assert places == sorted(places)
    assert places[-1] == len(lines) - 1
    return places
