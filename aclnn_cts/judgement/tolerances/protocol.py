"""What a tolerance is, and how its figures become a verdict.

An output without elements passes: there is nothing that could be beyond a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.strict_json import spelled
from aclnn_cts.core.verdict import ToleranceFigure, ToleranceResult, ToleranceVerdict, ToleranceWhy
from aclnn_cts.judgement.tolerances.pair import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """One acceptance rule."""

    name: str
    """As `--tolerance` and records name it; never changed."""
    source: str
    """The document and the section that the rule is from."""
    needs_benchmark: bool = False
    """Whether it looks at a second implementation where there is one."""

    def measure(self, pair: Pair) -> ToleranceResult:
        """Its verdict on one output."""
        raise NotImplementedError


def figure(name: str, value: float, limit: float, relation: str = "<=") -> ToleranceFigure:
    """A figure; takes NumPy's numbers and gives plain ones."""
    return ToleranceFigure(name=name, value=spelled(float(value)), limit=float(limit), relation=relation)


def _meets(entry: ToleranceFigure) -> bool:
    value = float(entry.value)
    if entry.relation == ">=":
        return value >= entry.limit
    return value < entry.limit if entry.relation == "<" else value <= entry.limit


def headroom(entry: ToleranceFigure) -> float:
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


def conclude(
    tolerance: Tolerance, figures: Sequence[ToleranceFigure], *, any_of: bool = False, benchmark: str = ""
) -> ToleranceResult:
    """The verdict that figures make: all must meet their limits, or with `any_of` one of them.

    The one that decides is named: that with the least headroom, with `any_of` that with the most.
    """
    if not figures:
        return ToleranceResult(
            tolerance=tolerance.name,
            verdict=ToleranceVerdict.PASS,
            message="there are no elements to measure",
            headroom=1.0,
            source=tolerance.source,
            why=ToleranceWhy.NO_ELEMENTS,
        )
    # A figure that meets its limit exactly has as little left as one that must stay below it and does not.
    order = [(_meets(entry), headroom(entry), place) for place, entry in enumerate(figures)]
    met, left, place = max(order) if any_of else min(order)
    decisive = figures[place]
    return ToleranceResult(
        tolerance=tolerance.name,
        verdict=ToleranceVerdict.PASS if met else ToleranceVerdict.FAIL,
        message=_sentence(decisive, met=met),
        figures=tuple(figures),
        headroom=left if math.isfinite(left) else "-inf",
        benchmark=benchmark,
        source=tolerance.source,
    )


def _sentence(entry: ToleranceFigure, *, met: bool) -> str:
    """`MERE 0.000512 < 0.000977`, with as many digits as it takes to tell the value from its limit."""
    value, limit, digits = float(entry.value), entry.limit, 3
    while f"{value:.{digits}g}" == f"{limit:.{digits}g}" and value != limit:
        digits += 1
    return f"{entry.name} {value:.{digits}g}{'' if met else ', not'} {entry.relation} {limit:.{digits}g}"


def not_applicable(tolerance: Tolerance, message: str, why: str) -> ToleranceResult:
    """No verdict, and why: in a sentence, and as one of `ToleranceWhy`."""
    return ToleranceResult(
        tolerance=tolerance.name,
        verdict=ToleranceVerdict.NOT_APPLICABLE,
        message=message,
        source=tolerance.source,
        why=why,
    )


def unmeasured(tolerance: Tolerance, pair: Pair, row: object) -> ToleranceResult:
    """No verdict where the source's table lacks the dtype; else a pass, for there are no elements."""
    if row is not None:
        return conclude(tolerance, ())
    return not_applicable(tolerance, f"the rule has no numbers for {pair.dtype}", ToleranceWhy.NO_ROW)


def no_benchmark(tolerance: Tolerance) -> ToleranceResult:
    """No verdict: there is nothing to compare with."""
    return not_applicable(
        tolerance,
        "the rule compares with a second implementation in the same dtype, and there is none for this output",
        ToleranceWhy.NO_BENCHMARK,
    )


def equal_everywhere(tolerance: Tolerance, pair: Pair, *, within: float = 0.0) -> ToleranceResult:
    """The rule for integers: every element equals the golden, or differs by no more than `within`."""
    if pair.got.size == 0:
        return conclude(tolerance, ())
    return conclude(tolerance, [figure("largest difference", pair.error.max(), within)])


def no_special_values(tolerance: Tolerance, pair: Pair, reference: Float64, what: str) -> ToleranceResult | None:
    """The rule of single benchmarks: a reference with inf or nan passes unread, an output alone with one fails."""
    if pair.finite and reference is pair.golden:
        return None
    if not np.isfinite(reference).all():
        message = f"{what} holds inf or nan; the rule passes such a case without reading the output"
        return ToleranceResult(
            tolerance=tolerance.name,
            verdict=ToleranceVerdict.PASS,
            message=message,
            headroom=1.0,
            source=tolerance.source,
            why=ToleranceWhy.SPECIAL_REFERENCE,
        )
    count = int(np.count_nonzero(~np.isfinite(pair.got)))
    if not count:
        return None
    return conclude(tolerance, [figure(f"inf and nan where {what} has none", count, 0)])
