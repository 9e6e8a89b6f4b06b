"""Plots by matplotlib as inline SVG, sized by the page.

Text stays text, so that it is read, searched and printed in the page's fonts. Words are placeholders (`@@name@@`) while
a figure is drawn, and become both languages in the SVG.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from aclnn_cts.reports.text import pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUES", "INK", "REDS", "cells", "power", "shade", "svg"]

INK = "#1f2933"
BLUES = ("#eaf3fb", "#cfe3f5", "#a9cdec", "#7db4e2", "#2f6fab")
"""From few to many."""
REDS = ("#fbdedb", "#f5b8b2", "#ea8a80", "#d9534a", "#b42318")

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def svg(name: str, width: float, height: float, paint: Callable[[Figure], None], words: Iterable[str]) -> Markup:
    """A figure of so many inches; `name` tells its ids apart, `words` are addresses of the placeholders in it."""
    import matplotlib as mpl  # noqa: PLC0415 - the report alone draws
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    options: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": ["sans-serif"],
        "font.size": 7,
        "axes.linewidth": 0.6,
        "path.simplify": True,
    }
    with mpl.rc_context(options):
        figure = Figure(figsize=(width, height), dpi=72)
        paint(figure)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(target.getvalue(), name, words)


def cells(axes: Axes, places: Sequence[tuple[float, float]], colour: str, *, hatch: str = "") -> None:
    """Cells of one colour on a grid of whole numbers, each a unit wide and high, from their lower left corners.

    The limits of the axes stand already. All share one path, which keeps the SVG small.
    """
    from matplotlib.collections import PathCollection  # noqa: PLC0415 - as above
    from matplotlib.path import Path  # noqa: PLC0415 - as above
    from matplotlib.transforms import Affine2D  # noqa: PLC0415 - as above

    if not places:
        return
    ends = axes.transData.transform([(0.0, 0.0), (1.0, 1.0)])
    wide, tall = (ends[1] - ends[0]).tolist()
    # A hair wider than its place, so that no light shines between neighbours.
    path = Path([(0, 0), (wide + 0.1, 0), (wide + 0.1, tall + 0.1), (0, tall + 0.1), (0, 0)], closed=True)
    collection = PathCollection(
        [path],
        offsets=places,
        offset_transform=axes.transData,
        facecolors="none" if hatch else colour,
        edgecolors=colour if hatch else "none",
        linewidths=0.0,
        hatch=hatch or None,
    )
    collection.set_transform(Affine2D())
    axes.add_collection(collection, autolim=False)


def shade(number: int, most: int) -> int:
    """The shade of a cell, from 0 (few) to 4 (as many as any), by orders of magnitude below the largest."""
    return max(0, 4 - int(math.log(most / number, 4)))


def power(exponent: int, base: int = 2) -> str:
    """A power with a superscript, `2⁻⁸`; the number itself where that is 1."""
    return "1" if not exponent else f"{base}" + str(exponent).translate(_SUPERSCRIPTS)


def _inline(text: str, name: str, words: Iterable[str]) -> Markup:
    """The `<svg>` alone, sized by the page, its ids unlike those of other figures, its words in both languages."""
    body = text[text.index("<svg") :]
    prefix = re.sub(r"[^A-Za-z0-9]", "", name)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}-", body)
    body = re.sub(r' xmlns:xlink="[^"]*"| xmlns="[^"]*"', "", body)
    body = body.replace("xlink:href=", "href=")
    body = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", body, count=1)
    body = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", body, count=1)
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"font: ([^;\"]*?)'?sans-serif'?[^;\"]*", r"font: \1sans-serif", body)
    for word in words:
        english, chinese = pair(word) or (word, word)
        body = body.replace(
            f"@@{word}@@",
            f'<tspan class="l" lang="en">{escape(english)}</tspan><tspan class="l" lang="zh">{escape(chinese)}</tspan>',
        )
    return Markup(body.strip())  # noqa: S704 - matplotlib escapes what it writes
