"""What a ruler is, and how its figures become a verdict.

An output without elements passes: there is nothing that could be beyond a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.verdict import RulerFigure, RulerResult, RulerVerdict, RulerWhy
from aclnn_cts.judgement.tolerances.pair import Pair

__all__ = [
    "Ruler",
    "conclude",
    "equal_everywhere",
    "figure",
    "headroom",
    "no_benchmark",
    "no_row",
    "no_special_values",
    "not_applicable",
]


class Ruler(Protocol):
    """One acceptance rule."""

    @property
    def name(self) -> str:
        """As `--tolerance` and records name it; never changed."""
        ...

    @property
    def source(self) -> str:
        """The document and the section that the rule is from."""
        ...

    @property
    def needs_benchmark(self) -> bool:
        """Whether it looks at a second implementation where there is one."""
        ...

    def measure(self, pair: Pair) -> RulerResult:
        """Its verdict on one output."""
        ...


def figure(name: str, value: float, limit: float, relation: str = "<=") -> RulerFigure:
    """A figure; takes NumPy's numbers and gives plain ones."""
    value = float(value)
    word: float | str = value
    if not math.isfinite(value):
        word = "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return RulerFigure(name=name, value=word, limit=float(limit), relation=relation)


def _meets(entry: RulerFigure) -> bool:
    value = float(entry.value)
    if entry.relation == ">=":
        return value >= entry.limit
    return value < entry.limit if entry.relation == "<" else value <= entry.limit


def headroom(entry: RulerFigure) -> float:
    """How much of a figure's limit is left: 1 - value / limit.

    Of a share that must be at least the limit it is the part left of what may be missing from 1. A limit of 0 is all
    left or beyond any measure.
    """
    value = float(entry.value)
    if math.isnan(value):
        return -math.inf
    used, allowed = (1.0 - value, 1.0 - entry.limit) if entry.relation == ">=" else (value, entry.limit)
    if allowed == 0.0:
        return 1.0 if used == 0.0 else -math.inf
    return 1.0 - used / allowed


def conclude(ruler: Ruler, figures: Sequence[RulerFigure], *, any_of: bool = False, benchmark: str = "") -> RulerResult:
    """The verdict that figures make: all must meet their limits, or with `any_of` one of them.

    The one that decides is named: that with the least headroom, with `any_of` that with the most.
    """
    if not figures:
        return RulerResult(
            ruler=ruler.name,
            verdict=RulerVerdict.PASS,
            message="there are no elements to measure",
            headroom=1.0,
            source=ruler.source,
            why=RulerWhy.NO_ELEMENTS,
        )
    # A figure that meets its limit exactly has as little left as one that must stay below it and does not.
    order = [(_meets(entry), headroom(entry), place) for place, entry in enumerate(figures)]
    met, left, place = max(order) if any_of else min(order)
    decisive = figures[place]
    return RulerResult(
        ruler=ruler.name,
        verdict=RulerVerdict.PASS if met else RulerVerdict.FAIL,
        message=_sentence(decisive, met=met),
        figures=tuple(figures),
        headroom=left if math.isfinite(left) else "-inf",
        benchmark=benchmark,
        source=ruler.source,
    )


def _sentence(entry: RulerFigure, *, met: bool) -> str:
    """`MERE 0.000512 < 0.000977`, with as many digits as it takes to tell the value from its limit."""
    value, limit, digits = float(entry.value), entry.limit, 3
    while f"{value:.{digits}g}" == f"{limit:.{digits}g}" and value != limit:
        digits += 1
    return f"{entry.name} {value:.{digits}g}{'' if met else ', not'} {entry.relation} {limit:.{digits}g}"


def not_applicable(ruler: Ruler, message: str, why: str) -> RulerResult:
    """No verdict, and why: in a sentence, and as one of `RulerWhy`."""
    return RulerResult(
        ruler=ruler.name, verdict=RulerVerdict.NOT_APPLICABLE, message=message, source=ruler.source, why=why
    )


def no_row(ruler: Ruler, pair: Pair) -> RulerResult:
    """No verdict: the source's table lacks the dtype."""
    return not_applicable(ruler, f"the rule has no numbers for {pair.dtype}", RulerWhy.NO_ROW)


def no_benchmark(ruler: Ruler) -> RulerResult:
    """No verdict: there is nothing to compare with."""
    return not_applicable(
        ruler,
        "the rule compares with a second implementation in the same dtype, and there is none for this output",
        RulerWhy.NO_BENCHMARK,
    )


def equal_everywhere(ruler: Ruler, pair: Pair, *, within: float = 0.0) -> RulerResult:
    """The rule for integers: every element equals the golden, or differs by no more than `within`."""
    if pair.got.size == 0:
        return conclude(ruler, ())
    return conclude(ruler, [figure("largest difference", pair.error.max(), within)])


def no_special_values(ruler: Ruler, pair: Pair, reference: Float64, what: str) -> RulerResult | None:
    """The rule of single benchmarks: a reference with inf or nan passes unread, an output alone with one fails."""
    if pair.finite and reference is pair.golden:
        return None
    if not np.isfinite(reference).all():
        message = f"{what} holds inf or nan; the rule passes such a case without reading the output"
        return RulerResult(
            ruler=ruler.name,
            verdict=RulerVerdict.PASS,
            message=message,
            headroom=1.0,
            source=ruler.source,
            why=RulerWhy.SPECIAL_REFERENCE,
        )
    count = int(np.count_nonzero(~np.isfinite(pair.got)))
    if not count:
        return None
    return conclude(ruler, [figure(f"inf and nan where {what} has none", count, 0)])
