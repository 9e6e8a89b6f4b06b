"""Coverage maps as plots: one figure an operator, a small panel a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from aclnn_cts.reports.model.acceptance_rows import CoverageMap
from aclnn_cts.reports.numbers import count_text
from aclnn_cts.reports.svg import BLUES, INK, cells, shade, svg
from aclnn_cts.reports.text import pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["coverage_figure"]

_WIDTH = 11.7
_CELL = (0.44, 0.2)
"""Inches of a cell."""
_WIDE = {"layout": 0.75, "contents": 0.53}
"""Inches of a cell beneath which words stand, by the kind of the map."""
_LEFT, _RIGHT, _ABOVE, _BELOW = 0.75, 0.25, 0.32, 0.32
"""Inches around the cells of a panel: names of rows, room, the title, names of columns."""
_HATCH, _NEVER = "#9aa5b1", "#7b8794"
_DARK = 3
"""The first shade on which text is white."""


def coverage_figure(operator: str, maps: Sequence[CoverageMap]) -> Markup:
    """All maps of an operator, as many panels beside one another as there is room for."""
    lines: list[list[tuple[float, CoverageMap]]] = [[]]
    left = 0.0
    for entry in sorted(maps, key=lambda item: len(item.columns)):
        wide = _LEFT + _width(entry) + _RIGHT
        if lines[-1] and left + wide > _WIDTH:
            lines.append([])
            left = 0.0
        lines[-1].append((left, entry))
        left += wide
    heights = [max(_CELL[1] * len(entry.rows) for _, entry in line) + _ABOVE + _BELOW for line in lines]
    height = sum(heights)

    def paint(figure: Figure) -> None:
        top = height
        for line, tall in zip(lines, heights, strict=True):
            for place, entry in line:
                size = (_width(entry), _CELL[1] * len(entry.rows))
                low = top - _ABOVE - size[1]
                _panel(
                    figure.add_axes(((place + _LEFT) / _WIDTH, low / height, size[0] / _WIDTH, size[1] / height)),
                    entry,
                )
            top -= tall

    kinds = {entry.kind for entry in maps}
    layouts = {column for entry in maps if entry.kind == "layout" for column in entry.columns}
    words = [*(f"map.{kind}" for kind in sorted(kinds)), *(f"layout.{name}" for name in sorted(layouts))]
    return svg(f"coverage {operator}", _WIDTH, height, paint, words)


def _width(entry: CoverageMap) -> float:
    return _WIDE.get(entry.kind, _CELL[0]) * len(entry.columns)


def _panel(axes: Axes, entry: CoverageMap) -> None:
    """The first row on top; counts stand in the cells."""
    rows = len(entry.rows)
    axes.set_xlim(0, len(entry.columns))
    axes.set_ylim(0, rows)
    axes.set_title(f"@@map.{entry.kind}@@", fontsize=7.5, fontweight="bold", color=INK, loc="left", pad=4)
    axes.spines[:].set_color("#cbd2d9")
    axes.tick_params(length=0, pad=2, labelsize=6.5)
    axes.set_yticks([rows - number - 0.5 for number in range(rows)], list(entry.rows), parse_math=False)
    axes.set_xticks(
        [number + 0.5 for number in range(len(entry.columns))],
        [_column(entry.kind, name) for name in entry.columns],
        parse_math=False,
    )
    most = max((number for line in entry.counts for number in line), default=0)
    shades: dict[int, list[tuple[float, float]]] = {}
    never: list[tuple[float, float]] = []
    cannot: list[tuple[float, float]] = []
    for line, (counts, possible) in enumerate(zip(entry.counts, entry.possible, strict=True)):
        y = float(rows - line - 1)
        for column, (number, can) in enumerate(zip(counts, possible, strict=True)):
            if not number:
                (never if can else cannot).append((float(column), y))
                continue
            dark = shade(number, most)
            shades.setdefault(dark, []).append((float(column), y))
            axes.text(
                column + 0.5,
                y + 0.5,
                count_text(number),
                fontsize=6,
                ha="center",
                va="center_baseline",
                color="#ffffff" if dark > _DARK else INK,
            )
    for dark, places in sorted(shades.items()):
        cells(axes, places, BLUES[dark])
    cells(axes, never, _HATCH, hatch="/////")
    for x, y in never:
        axes.text(x + 0.5, y + 0.5, "0", fontsize=6, ha="center", va="center_baseline", color=INK)
    if cannot:
        axes.plot(
            [x + 0.5 for x, _ in cannot],
            [y + 0.5 for _, y in cannot],
            linestyle="none",
            marker="x",
            markersize=3,
            markeredgewidth=0.5,
            color=_NEVER,
        )


def _column(kind: str, name: str) -> str:
    if kind == "layout" and pair(f"layout.{name}") is not None:
        return f"@@layout.{name}@@"
    if kind == "size" and "-" in name:
        return f"≥ {count_text(int(name.partition('-')[0]))}"
    return name
