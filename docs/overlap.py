"""The part of the page on campaigns that tells what overlapping batches saves."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.overlapping import ADAPTERS, COLUMNS, NAME
from benchmarks.stored import read_figures
from docs.markdown import table

__all__ = ["OVERLAP_END", "OVERLAP_START", "overlap_section"]

OVERLAP_START = f"<!-- overlap: made from benchmarks/figures/{NAME}.json by make docs -->"
OVERLAP_END = "<!-- overlap: end -->"


def overlap_section() -> Iterator[str]:
    """The lines from one mark to the other, both included."""
    yield OVERLAP_START
    found = read_figures(NAME)
    if found is None:
        yield "Not measured yet; `make bench-fuzz ARGS='--only overlap --store'` does."
    else:
        rows = [
            (adapter, *(found.figure(f"{adapter}, {column}").text(".2f") for column in COLUMNS))
            for adapter in ADAPTERS
            if f"{adapter}, {COLUMNS[0]}" in found.rounds
        ]
        yield from table(("adapter", *COLUMNS), rows)
        yield ""
        number = len(next(iter(found.rounds.values())))
        yield (
            f"Geometric means over the operators: the median of {number} rounds, and half of what lies between the "
            f"least and the greatest. On {found.machine.text}, by `{found.command}`."
        )
    yield OVERLAP_END
