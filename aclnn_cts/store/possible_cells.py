"""Which cells of the coverage maps a supported call can fall into, as a run keeps them for its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from aclnn_cts.core.errors import HarnessError
from aclnn_cts.store.store_reader import ResultReader

POSSIBLE_STATE = "possible/"
"""What the keys of `PossibleCells` in a store's state begin with; the operator follows."""

RANKS = 9
"""Dimensions that a map tells apart; more stand with the most."""
LAYOUTS = ("contiguous", "offset", "strided")
MAPS = ("rank", "size", "contents", "layout")
"""Kinds of map."""


@dataclass(slots=True)
class PossibleCells:
    """The rows and columns of one map, and which cells can occur."""

    rows: dict[str, None] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    cells: set[tuple[str, str]] = field(default_factory=set)
    every: bool = False
    """Nothing limits the columns: a size is never impossible, only never reached."""
    reachable: set[str] = field(default_factory=set)
    """Rows that can occur at all."""

    def add(self, row: str, columns: Iterable[str]) -> None:
        """These columns can occur with this row."""
        self.rows.setdefault(row)
        self.reachable.add(row)
        for column in columns:
            self.columns.setdefault(column)
            self.cells.add((row, column))

    def include(self, other: PossibleCells) -> None:
        """What can occur in another run's calls too."""
        self.rows |= other.rows
        self.columns |= other.columns
        self.cells |= other.cells
        self.every = self.every or other.every
        self.reachable |= other.reachable


def possible_maps(results: ResultReader, operator: str) -> Mapping[str, PossibleCells]:
    """What a run keeps of an operator, by kind of map; empty where it keeps nothing.

    Raises HarnessError where it is damaged.
    """
    stored = results.state(POSSIBLE_STATE + operator)
    try:
        return {} if stored is None else msgspec.convert(stored, dict[str, PossibleCells])
    except msgspec.ValidationError as error:
        raise HarnessError(
            f"{results.path} (state {POSSIBLE_STATE}{operator}): {error}; the file is damaged or newer"
        ) from None
