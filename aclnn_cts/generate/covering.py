"""A covering array: the fewest cases in which every two of regime, dtypes, layout, kind of data and mode meet.

allpairspy finds it (pairwise testing; Cohen et al., "The AETG system", IEEE TSE 23, 1997). The first random cases of a
plan follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aclnn_cts.generate.regimes import Regime

__all__ = ["Cell", "Mode", "covering_array"]

Mode = int
"""The value of an operator's mode attribute; 0 where it has none."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one case of the array has: numbers of a row of dtypes, of a view and of a kind of data, regime and mode."""

    regime: Regime
    dtypes: int
    view: int
    data: int
    mode: Mode


def covering_array(
    regimes: Sequence[Regime], modes_of_rows: Sequence[Sequence[Mode]], *, views: int, kinds: int
) -> tuple[Cell, ...]:
    """All pairs that can occur: `modes_of_rows` has the modes that each row of dtypes supports.

    A row of dtypes and its mode are one factor, so that no pair is lost to a mode that a dtype lacks.
    """
    from allpairspy import AllPairs  # noqa: PLC0415 - only plans need it

    computed = [(row, mode) for row, modes in enumerate(modes_of_rows) for mode in modes]
    factors: list[Sequence[Any]] = [regimes, computed, range(views), range(kinds)]
    several = [list(values) for values in factors if len(values) > 1]
    rows = AllPairs(several) if len(several) > 1 else ([value] for value in (several or [[None]])[0])
    cells = []
    for row in rows:
        found = iter(row)
        regime, (dtypes, mode), view, data = (next(found) if len(values) > 1 else values[0] for values in factors)
        cells.append(Cell(regime, dtypes, view, data, mode))
    return tuple(cells)
