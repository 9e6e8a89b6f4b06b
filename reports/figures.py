"""Plots by matplotlib as inline SVG: one figure an operator, with two small panels for each output, dtype and mode.

Text stays text, so that it is read, searched and printed in the page's fonts. Words are placeholders while the figure
is drawn, and become both languages in the SVG.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from aclnn_cts.core.acceptance import PrecisionRow
from aclnn_cts.reports.text import pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["precision_figure"]

_COLUMNS = 3
"""Pairs of panels beside one another."""

_PANEL = (3.9, 1.55)
"""Inches of a pair."""

_INK, _BAR, _LIMIT, _BOUND, _POINT = "#1f2933", "#2f6fab", "#b42318", "#52606d", "#2f6fab"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORDS = ("share", "elements", "magnitude", "error")


def precision_figure(operator: str, rows: Sequence[PrecisionRow], edges: Sequence[int]) -> Markup:
    """All outputs of an operator. `edges` are the histogram's, as powers of two."""
    import matplotlib as mpl  # noqa: PLC0415 - the report alone draws
    from matplotlib.figure import Figure  # noqa: PLC0415

    lines = math.ceil(len(rows) / _COLUMNS)
    options: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": operator,
        "font.family": ["sans-serif"],
        "font.size": 7,
        "axes.linewidth": 0.6,
        "path.simplify": True,
    }
    with mpl.rc_context(options):
        width, height = _PANEL[0] * _COLUMNS, _PANEL[1] * lines + 0.35
        figure = Figure(figsize=(width, height))
        for number, row in enumerate(rows):
            line, column = divmod(number, _COLUMNS)
            left = column / _COLUMNS
            top = 1.0 - (line * _PANEL[1] + 0.3) / height
            bottom, tall = top - (_PANEL[1] - 0.55) / height, (_PANEL[1] - 0.62) / height
            title = " ".join(filter(None, (row.output, row.dtype, row.mode)))
            figure.text(left + 0.036, top + 0.035 / height * 2, title, fontsize=7.5, fontweight="bold", color=_INK)
            _histogram(figure.add_axes((left + 0.036, bottom, 0.12, tall)), row, edges)
            _magnitudes(figure.add_axes((left + 0.2, bottom, 0.12, tall)), row)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(target.getvalue(), operator)


def _plain(axes: Axes, x: str, y: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2, width=0.5, pad=1.5, labelsize=6)
    axes.set_xlabel(f"@@{x}@@", labelpad=1.5, fontsize=6)
    axes.text(-0.02, 1.03, f"@@{y}@@", transform=axes.transAxes, fontsize=6, ha="right", va="bottom")


def _histogram(axes: Axes, row: PrecisionRow, edges: Sequence[int]) -> None:
    """Elements by log2 of the share, on a logarithmic scale; the limit is the end of the bin of 1."""
    bins = [edges[0] - 1, *edges, edges[-1] + 1]
    within = bins.index(0)
    counts = [math.log10(count) + 0.3 if count else 0.0 for count in row.histogram]
    axes.stairs(counts[:within], bins[: within + 1], fill=True, color=_BAR)
    axes.stairs(counts[within:], bins[within:], fill=True, color=_LIMIT)
    axes.axvline(0, color=_LIMIT, linewidth=1.0)
    largest = max(counts, default=0.0)
    top = max(1, math.ceil(largest - 0.3))
    axes.set_xlim(bins[0], bins[-1])
    axes.set_ylim(0, max(largest, 1.0) * 1.08)
    axes.set_xticks(
        [edges[0], -8, -4, 0, edges[-1]], [_power(edges[0]), _power(-8), _power(-4), "1", _power(edges[-1])]
    )
    ticks = [power for power in range(top + 1) if top <= 3 or power % 2 == 0]
    axes.set_yticks(
        [power + 0.3 for power in ticks], [f"{10**power:,}" if power < 4 else _power(power, 10) for power in ticks]
    )
    _plain(axes, "share", "elements")


def _magnitudes(axes: Axes, row: PrecisionRow) -> None:
    """Error and bound of the worst elements against the magnitude of the expected value, both as powers of two."""
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
    axes.xaxis.set_major_formatter(lambda value, _: _power(round(value)))
    axes.yaxis.set_major_formatter(lambda value, _: _power(round(value)))
    axes.locator_params(nbins=4)
    if not seen:
        axes.set_xticks([])
        axes.set_yticks([])
    _plain(axes, "magnitude", "error")


def _power(exponent: int, base: int = 2) -> str:
    """A power with a superscript: `2⁻⁸`."""
    return f"{base}" + str(exponent).translate(_SUPERSCRIPTS)


def _log2(value: float) -> float:
    return math.log2(min(value, 1.7e308))


def _inline(svg: str, operator: str) -> Markup:
    """The `<svg>` alone, sized by the page, its ids unlike those of other figures, its words in both languages."""
    body = svg[svg.index("<svg") :]
    prefix = re.sub(r"[^A-Za-z0-9]", "", operator)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}-", body)
    body = re.sub(r' xmlns:xlink="[^"]*"| xmlns="[^"]*"', "", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", body, count=1)
    body = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", body, count=1)
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"font: ([^;\"]*?)'?sans-serif'?[^;\"]*", r"font: \1sans-serif", body)
    for name in _WORDS:
        english, chinese = pair(f"precision.{name}") or (name, name)
        body = body.replace(
            f"@@{name}@@",
            f'<tspan class="l" lang="en">{escape(english)}</tspan><tspan class="l" lang="zh">{escape(chinese)}</tspan>',
        )
    return Markup(body.strip())  # noqa: S704 - matplotlib escapes what it writes
