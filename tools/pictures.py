"""The drawings of pages that explain: each is made from what the code computes, so that it cannot say something else.

A drawing is an SVG with its text as text. It brings its paper along, light or dark as the reader's system is, so that
it can be read on any page.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from aclnn_cts import expected
from aclnn_cts.core.rounding import BINARY_FORMATS, rounded, spacing
from aclnn_cts.core.target import Target
from aclnn_cts.core.verdict import RunVerdict
from aclnn_cts.generate.corner_walk import CornerWalk
from aclnn_cts.generate.sampler import Sampler
from aclnn_cts.sandbox.adaptive_timeout import FULL_HANGS
from aclnn_cts.sandbox.limits import RunnerLimits
from aclnn_cts.sandbox.wire import MESSAGE_BYTES
from aclnn_cts.speclang.load import Specs
from aclnn_cts.store.run_verdict import MIN_JUDGED, exit_code
from tools.markdown import between

WIDTH = 480
"""Pixels of every drawing: on a telephone its text is still large enough."""

_STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 12px; fill: #59636e }
.right { text-anchor: end }
.middle { text-anchor: middle }
.paper { fill: #ffffff; stroke: #d0d7de }
.box { fill: #f6f8fa; stroke: #818b98 }
.line { fill: none; stroke: #59636e; stroke-width: 1.5 }
.band { fill: #b6e3ff }
.mark { stroke: #cf222e; stroke-width: 2 }
.full { fill: #0550ae; stroke: #0550ae }
.half { fill: #54aeff; stroke: #54aeff }
.none { fill: #ffffff; stroke: #818b98 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.paper { fill: #0d1117; stroke: #3d444d }
.box { fill: #151b23; stroke: #9198a1 }
.line { stroke: #9198a1 }
.band { fill: #0c2d6b }
.mark { stroke: #ff7b72 }
.full { fill: #a5d6ff; stroke: #a5d6ff }
.half { fill: #1f6feb; stroke: #1f6feb }
.none { fill: #0d1117; stroke: #9198a1 }
}
"""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a page shows, and the same in words for who cannot see it."""

    height: int
    words: str
    parts: Sequence[str]

    def svg(self) -> str:
        """The file."""
        size = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        paper = f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="6"/>'
        title = f"<title>{escape(self.words)}</title>"
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        return "\n".join([opening, title, f"<style>{_STYLE}</style>", paper, *self.parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, kind: str = "large") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def _rect(kind: str, place: tuple[float, float], size: tuple[float, float]) -> str:
    (x, y), (width, height) = place, size
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'


def _path(*points: tuple[float, float], arrow: bool = False) -> str:
    """A line of straight pieces, along an axis each; with an arrow's head at its end."""
    way = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
    if arrow:
        (from_x, from_y), (x, y) = points[-2:]
        along, across = np.sign(x - from_x) * 6, np.sign(y - from_y) * 6
        for side in (-1, 1):
            way += f" M{x - along + side * across:g} {y - across + side * along:g} L{x:g} {y:g}"
    return f'<path class="line" d="{way}"/>'


_SUMS = (16, 256, 1024)
"""Terms: from a bound that is nothing beside the last rounding to one that several outputs lie in."""
_NEIGHBOURS = 4
"""Outputs shown on either side of the nearest."""


def _bounds(specs: Specs) -> Drawing:
    """The outputs that conform, of three sums."""
    form, step = BINARY_FORMATS["FLOAT16"], 48
    middle, parts, told = WIDTH / 2, list[str](), list[str]()
    for place, number in enumerate(_SUMS):
        grad = np.random.default_rng(0).uniform(-1, 1, (number, 1)).astype(np.float16)
        inputs = {"grad": grad, "indices": np.zeros(number, np.int32), "numWeights": 1, "paddingIdx": -1 % 2**64}
        found = expected("embedding_dense_backward", {**inputs, "scaleGradByFreq": False})["out"]
        exact, lower, upper = (each.item() for each in (found.value, found.lower, found.upper))
        unit = spacing(np.array(exact), form).item()
        error = found.bound.item() - unit / 2
        nearest = rounded(np.array(exact), form).item()
        conforming = round((upper - lower) / unit) + 1
        top = 34 + 110 * place

        def across(value: float, *, nearest: float = nearest, unit: float = unit) -> float:
            return middle + step * (value - nearest) / unit

        parts.append(_text(16, top, f"sum of {number:,} gradients: s = {exact:.6g}, E = {error:.2g}"))
        parts.append(_rect("band", (across(exact - error), top + 22), (max(2 * step * error / unit, 1), 28)))
        parts.append(_path((16, top + 36), (WIDTH - 16, top + 36)))
        for count in range(-_NEIGHBOURS, _NEIGHBOURS + 1):
            value = nearest + count * unit
            kind = "full" if lower <= value <= upper else "none"
            parts.append(f'<circle class="{kind}" cx="{across(value):g}" cy="{top + 36}" r="6"/>')
        parts.append(f'<path class="mark" d="M{across(exact):g} {top + 18} v36"/>')
        ends = dict.fromkeys((lower, upper))
        parts += [_text(across(end), top + 70, f"{end:g}", "small middle") for end in ends]
        told.append(str(conforming))
    parts.append(_text(16, 34 + 110 * len(_SUMS) - 10, "red: exact value s. blue band: s - E to s + E.", "small"))
    parts.append(
        _text(16, 34 + 110 * len(_SUMS) + 8, "circles: outputs in FLOAT16, filled where they conform.", "small")
    )
    numbers = ", ".join(f"{number:,}" for number in _SUMS)
    words = f"Sums of {numbers} gradients in FLOAT16 have {', '.join(told)} outputs that conform."
    return Drawing(34 + 110 * len(_SUMS) + 24, words, parts)


_CALLS = 40


def _corners(specs: Specs) -> Drawing:
    """The first calls of a plan: in which factors each meets a corner for the first time."""
    spec = specs["aclnnSoftmaxBackward"]
    walk = CornerWalk(Sampler(spec, Target(spec.products[0])), seed=0)
    met, pairs = set[tuple[str, str]](), set[frozenset[tuple[str, str]]]()
    names = [factor.name for factor in walk.factors]
    left, step, top = 150, 8, 44
    parts = [_text(left, 26, f"calls 1 to {_CALLS} of a plan, from left to right")]
    parts += [_text(16, top + 24 * row + 14, name, "small") for row, name in enumerate(names)]
    for number in range(_CALLS):
        had = walk.next_call().corners
        beside = {frozenset(pair) for pair in itertools.combinations(had, 2) if pair[0][0] != pair[1][0]}
        for row, name in enumerate(names):
            own = {corner for corner in had if corner[0] == name}
            first = any(pair & own for pair in beside - pairs)
            kind = "full" if own - met else "half" if first else "none"
            parts.append(_rect(kind, (left + step * number, top + 24 * row), (step - 2, 18)))
        met |= set(had)
        pairs |= beside
    below = top + 24 * len(names) + 16
    legend = (("full", "a corner for the first time"), ("half", "a pair of corners for the first time"))
    for row, (kind, words) in enumerate((*legend, ("none", "neither"))):
        parts += [_rect(kind, (left, below + 20 * row), (step - 2, 14)), _text(left + 16, below + 20 * row + 12, words)]
    total = sum(len(factor.corners) for factor in walk.factors)
    words = f"The first {_CALLS} calls of SoftmaxBackward meet {len(met)} of {total} corners and {len(pairs)} pairs."
    return Drawing(below + 68, words, parts)


def _isolation(specs: Specs) -> Drawing:
    """The processes of a run, and what one may do to another."""
    limits = RunnerLimits()
    rows = (
        ("head", "plans, stores and shows; alone hears Ctrl-C"),
        ("judge", "makes the call's data, asks the oracle, judges"),
        ("runner", "opens the adapter and makes the call"),
    )
    parts, height = list[str](), 62
    tops = (16, 16 + height + 66, 16 + 2 * (height + 66))
    for top, (name, words) in zip(tops, rows, strict=True):
        parts += [_rect("box", (16, top), (WIDTH - 32, height))]
        parts += [_text(32, top + 25, name), _text(32, top + 46, words, "small")]
    between_rows = (
        ("jobs down, records up", "a lost judge is replaced, its job done again"),
        (f"pipe: at most {MESSAGE_BYTES >> 20} MiB a message", "shared memory of fixed size: inputs, outputs, guards"),
    )
    for top, lines in zip(tops, between_rows, strict=False):
        for x, (begin, end) in ((40, (0, 66)), (60, (66, 0))):
            parts.append(_path((x, top + height + begin), (x, top + height + end), arrow=True))
        parts += [_text(84, top + height + 28, lines[0]), _text(84, top + height + 48, lines[1], "small")]
    last = tops[-1] + height
    seconds = f"no answer for {limits.call_seconds:g} s: hang; less after {FULL_HANGS} hangs of one kind"
    ends = ("a signal, an abort, an exit, too much memory: crash", seconds, "a read outside an input: stray-read")
    parts += [_text(32, last + 26 + 20 * row, words, "small") for row, words in enumerate(ends)]
    words = "Head, judge and runner are processes. Whatever ends the runner is a verdict on one call."
    return Drawing(last + 82, words, parts)


def _verdicts(specs: Specs) -> Drawing:
    """The questions that lead to a run's verdict, in their order."""
    questions = (
        ("Is a failure not waived, or a waiver expired?", RunVerdict.FAILS),
        (f"An error, or under {MIN_JUDGED}% judged?", RunVerdict.INCONCLUSIVE),
        ("Is it a campaign, which follows no plan?", RunVerdict.NOTHING_FOUND),
        ("Does a waiver accept a failure?", RunVerdict.CONFORMS_WITH_WAIVERS),
    )
    parts, step, wide = list[str](), 84, 300
    for row, (words, verdict) in enumerate(questions):
        top = 16 + step * row
        parts += [_rect("box", (16, top), (wide, 44)), _text(28, top + 27, words, "small")]
        parts += [_path((16 + wide, top + 22), (16 + wide + 34, top + 22), arrow=True)]
        parts += [_text(16 + wide + 8, top + 14, "yes", "small"), *_verdict(16 + wide + 42, top + 20, verdict)]
        parts += [_path((60, top + 44), (60, top + step), arrow=True), _text(72, top + 68, "no", "small")]
    last = 16 + step * len(questions)
    parts += [_rect("box", (16, last), (wide, 44)), *_verdict(28, last + 20, RunVerdict.CONFORMS)]
    told = ", ".join(verdict.words for _, verdict in questions)
    return Drawing(last + 60, f"Four questions lead to {told} or {RunVerdict.CONFORMS.words}.", parts)


def _verdict(x: float, y: float, verdict: RunVerdict) -> Iterator[str]:
    words = verdict.words.replace(" with", "\nwith").split("\n")
    yield from (_text(x, y + 16 * row, line) for row, line in enumerate(words))
    yield _text(x, y + 16 * len(words), f"exit code {exit_code(verdict)}", "small")


DRAWINGS: Mapping[str, Callable[[Specs], Drawing]] = {
    "bounds": _bounds,
    "corners": _corners,
    "isolation": _isolation,
    "verdicts": _verdicts,
}
"""By the page, and the name of the file below docs/images."""

_START = "<!-- picture: made from tools/pictures.py by `make docs`; type nothing here -->"
_END = "<!-- picture: end -->"


def drawings(specs: Specs) -> Mapping[str, Drawing]:
    """Every drawing by the stem of its page."""
    return {name: draw(specs) for name, draw in DRAWINGS.items()}


def with_picture(page: str, name: str, drawing: Drawing) -> str:
    """A page with its drawing and the words for it."""
    return between(page, _START, _END, "\n".join([_START, f"![{drawing.words}](images/{name}.svg)", _END]))
