"""Figures as a terminal and a page show them: in words, with their spread, beside the goal that they keep or miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from aclnn_cts.cli.output import show_table, table
from benchmarks.measure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure."""

    what: str
    figure: str
    goal: str = ""
    missed: bool = False

    @property
    def verdict(self) -> str:
        """The goal, and whether it is missed."""
        return f"{self.goal}: missed" if self.missed else self.goal


def row(
    what: str,
    figure: Figure,
    form: str = ",.0f",
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    note: str = "",
) -> Row:
    """The median of a figure and its spread, held to a goal where there is one; `note`: what else stands beside it."""
    missed = (least is not None and figure.median < least) or (most is not None and figure.median > most)
    goals = [f"{word} {limit:,g}" for word, limit in (("at least", least), ("at most", most)) if limit is not None]
    return Row(
        what=what,
        figure=figure.text(form, unit) + (f" ({note})" if note else ""),
        goal=f"{' and '.join(goals)} {unit}".strip() if goals else "",
        missed=missed,
    )


def tally(rows: Sequence[Row]) -> str:
    """How many of the goals are met, in words."""
    goals = [item for item in rows if item.goal]
    missed = sum(item.missed for item in goals)
    return f"Goals met: {len(goals) - missed} of {len(goals)}."


def show_rows(out: Console, rows: Sequence[Row]) -> None:
    """On the terminal."""
    made = table("figure", "measured", "goal")
    for cells in _cells(rows):
        made.add_row(*cells)
    show_table(out, made)
    out.print()


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    for item in rows:
        yield item.what, item.figure, item.verdict
