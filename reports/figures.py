"""Precision as plots: one figure an operator, with three small panels for each output, dtype and mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from aclnn_cts.reports.model.acceptance_rows import PrecisionRow
from aclnn_cts.reports.numbers import count_text
from aclnn_cts.reports.svg import BLUES, INK, REDS, cells, power, shade, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["precision_figure"]

_COLUMNS = 2
"""Rows of panels beside one another."""

_PANEL = (5.85, 1.6)
"""Inches of a row of panels."""

_BAR, _LIMIT, _BOUND, _POINT = "#2f6fab", "#b42318", "#52606d", "#2f6fab"
_WORDS = tuple(
    f"precision.{name}"
    for name in ("share", "elements", "magnitude", "error", "none_judged", "all_exact", "not_recorded", "not_sampled")
)
_APART = 0.2
"""Of a panel's width: how far labels of its ticks must stand from one another, so that they do not touch."""
_ZERO = -2
"""Where the class of an expected zero stands among classes, which are numbered from the lowest of a panel."""


_LINES = 9
"""Lines of panels that a sheet of A4 holds beneath a heading; a taller figure would be cut where the sheet ends."""


def precision_figure(operator: str, rows: Sequence[PrecisionRow], edges: Sequence[int], step: int) -> Markup:
    """All outputs of an operator, in as many parts as there must be sheets.

    `edges` are those of the shares, as powers of two; a class of magnitudes has `step` binades.
    """
    size = _LINES * _COLUMNS
    parts = [rows[first : first + size] for first in range(0, len(rows), size)]
    names = [operator, *(f"{operator} part {number}" for number in range(2, len(parts) + 1))]
    return Markup("\n").join(_part(name, part, edges, step) for name, part in zip(names, parts, strict=True))


def _part(name: str, rows: Sequence[PrecisionRow], edges: Sequence[int], step: int) -> Markup:
    lines = math.ceil(len(rows) / _COLUMNS)
    width, height = _PANEL[0] * _COLUMNS, _PANEL[1] * lines + 0.1

    def paint(figure: Figure) -> None:
        for number, row in enumerate(rows):
            line, column = divmod(number, _COLUMNS)
            left = column / _COLUMNS
            top = 1.0 - (line * _PANEL[1] + 0.3) / height
            bottom, tall = top - (_PANEL[1] - 0.7) / height, (_PANEL[1] - 0.78) / height
            title = " ".join(filter(None, (row.output, row.dtype, row.mode)))
            # No text of a record is a formula of matplotlib's.
            figure.text(
                left + 0.036, top + 0.1 / height, title, fontsize=7.5, fontweight="bold", color=INK, parse_math=False
            )
            _histogram(figure.add_axes((left + 0.036, bottom, 0.115, tall)), row, edges)
            _magnitudes(figure.add_axes((left + 0.195, bottom, 0.115, tall)), row)
            _spread(figure.add_axes((left + 0.355, bottom, 0.125, tall)), row, edges, step)

    return svg(name, width, height, paint, _WORDS)


def _plain(axes: Axes, x: str, y: str, *, more: str = "") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2, width=0.5, pad=1.5, labelsize=6)
    # Where a tick's labels would stand, none are in an empty panel.
    axes.set_xlabel(f"@@precision.{x}@@{more}", labelpad=1.5 if axes.get_xticks().size else 9, fontsize=6)
    axes.text(-0.02, 1.03, f"@@precision.{y}@@", transform=axes.transAxes, fontsize=6, ha="left", va="bottom")


def _histogram(axes: Axes, row: PrecisionRow, edges: Sequence[int]) -> None:
    """Elements by log2 of the share, on a logarithmic scale; the limit is the end of the bin of 1."""
    bins = [edges[0] - 1, *edges, edges[-1] + 1]
    within = bins.index(0)
    counts = [math.log10(count) + 0.3 if count else 0.0 for count in row.histogram]
    if not any(row.histogram):
        _empty(axes, "none_judged")
    axes.stairs(counts[:within], bins[: within + 1], fill=True, color=_BAR)
    axes.stairs(counts[within:], bins[within:], fill=True, color=_LIMIT)
    axes.axvline(0, color=_LIMIT, linewidth=1.0)
    largest = max(counts, default=0.0)
    top = max(1, math.ceil(largest - 0.3))
    axes.set_xlim(bins[0], bins[-1])
    axes.set_ylim(0, max(largest, 1.0) * 1.08)
    shown = (edges[0], -8, -4, 0, edges[-1])
    axes.set_xticks(shown, [power(exponent) for exponent in shown])
    ticks = [exponent for exponent in range(top + 1) if top <= 3 or exponent % 2 == 0]
    if any(row.histogram):
        axes.set_yticks(
            [exponent + 0.3 for exponent in ticks],
            [count_text(10**exponent) if exponent < 4 else power(exponent, 10) for exponent in ticks],
        )
    _plain(axes, "share", "elements")


def _magnitudes(axes: Axes, row: PrecisionRow) -> None:
    """Error and bound of the worst elements against the magnitude of the expected value, both as powers of two."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - the report alone draws

    seen = [entry for entry in row.magnitudes if entry.error > 0 or entry.bound > 0]
    bounded = [entry for entry in seen if entry.bound > 0]
    axes.plot(
        [entry.exponent for entry in bounded],
        [math.log2(entry.bound) for entry in bounded],
        linestyle="none",
        marker="_",
        markersize=6,
        color=_BOUND,
    )
    for beyond, colour in ((False, _POINT), (True, _LIMIT)):
        chosen = [entry for entry in seen if entry.error > 0 and (entry.error > entry.bound) is beyond]
        axes.plot(
            [entry.exponent for entry in chosen],
            [_log2(entry.error) for entry in chosen],
            linestyle="none",
            marker="o" if not beyond else "D",
            markersize=2.4,
            color=colour,
        )
    for axis in (axes.xaxis, axes.yaxis):
        # Whole exponents alone: a label says exactly where its tick stands.
        axis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axis.set_major_formatter(lambda value, _: power(round(value)))
    if seen:
        axes.set_xlim(*_at_least_two(*axes.get_xlim()))
        axes.set_ylim(*_at_least_two(*axes.get_ylim()))
    else:
        _empty(axes, "all_exact" if row.magnitudes else "not_recorded")
    _plain(axes, "magnitude", "error")


def _at_least_two(low: float, high: float) -> tuple[float, float]:
    """Limits that hold two whole numbers."""
    more = max(0.0, 2.2 - (high - low)) / 2
    return low - more, high + more


def _empty(axes: Axes, why: str) -> None:
    """Say in a panel without anything in it why it is so."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, f"@@precision.{why}@@", transform=axes.transAxes, fontsize=6.5, ha="center", va="center", color=_BOUND
    )


def _spread(axes: Axes, row: PrecisionRow, edges: Sequence[int], step: int) -> None:
    """All elements of the trials that were counted so: share of the bound against magnitude, darker for more."""
    exponents = [entry.exponent for entry in row.spread if entry.exponent is not None]
    low, high = (min(exponents), max(exponents)) if exponents else (0, 0)
    zero = any(entry.exponent is None for entry in row.spread)
    bins = len(edges) + 1
    within = list(edges).index(0) + 1
    axes.set_xlim(_ZERO if zero else -0.2, (high - low) / step + 1.2)
    axes.set_ylim(0, bins)
    most = max((max(entry.counts) for entry in row.spread), default=1)
    shades: dict[tuple[bool, int], list[tuple[float, float]]] = {}
    for entry in row.spread:
        x = _ZERO + 0.3 if entry.exponent is None else (entry.exponent - low) / step
        for y, count in enumerate(entry.counts):
            if count:
                shades.setdefault((y >= within, shade(count, most)), []).append((x, float(y)))
    for (beyond, dark), places in sorted(shades.items()):
        cells(axes, places, (REDS if beyond else BLUES)[dark])
    shown = (edges[0], -8, -4, 0, edges[-1])
    axes.set_yticks([within + exponent for exponent in shown], [power(exponent) for exponent in shown])
    ends = [low, high, (low + high) // 2 // step * step] if exponents else []
    wanted = [(_ZERO + 0.8, "0")] if zero else []
    wanted += [((exponent - low) / step, power(exponent)) for exponent in ends]
    ticks = _apart(wanted, _APART * (axes.get_xlim()[1] - axes.get_xlim()[0]))
    axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
    if row.spread:
        axes.axhline(within, color=_LIMIT, linewidth=1.0)
    else:
        _empty(axes, "not_sampled")
    elements = sum(sum(entry.counts) for entry in row.spread)
    _plain(axes, "magnitude", "share", more=f" · n = {count_text(elements)}")


def _apart(ticks: Sequence[tuple[float, str]], least: float) -> list[tuple[float, str]]:
    """Those ticks, the first ones before the later, that stand so far from one another."""
    kept: list[tuple[float, str]] = []
    for place, label in ticks:
        if all(abs(place - other) >= least for other, _ in kept):
            kept.append((place, label))
    return sorted(kept)


def _log2(value: float) -> float:
    return math.log2(min(value, 1.7e308))
