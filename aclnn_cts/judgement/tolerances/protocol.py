"""What a tolerance is, the pair of arrays that it measures, and how its figures become a verdict.

An output without elements passes: there is nothing that could be beyond a limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, widen
from aclnn_cts.core.verdict import ToleranceFigure, ToleranceResult, ToleranceVerdict, ToleranceWhy


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
    return ToleranceFigure(name=name, value=number_or_word(float(value)), limit=float(limit), relation=relation)


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


def conclude(tolerance: Tolerance, figures: Sequence[ToleranceFigure], *, benchmark: str = "") -> ToleranceResult:
    """The verdict that figures make: all must meet their limits. The one with the least headroom is named."""
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
    met, left, place = min(order)
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


def verdict_without_figures(tolerance: Tolerance, pair: Pair, row: object) -> ToleranceResult:
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


T = TypeVar("T")

Mask = NDArray[np.bool_]

RELATIVE_EPSILON = 1e-7
"""What the relative error adds to the golden's magnitude (`docs/tolerances.md`)."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One output and what it is measured against, as flat float64 arrays (`make_pair` makes one).

    What several tolerances need is computed once, and only when one asks for it.
    """

    output: str
    dtype: str
    """The output's aclDataType."""
    got: Float64
    """What came back, widened exactly."""
    exact: Float64
    """The oracle's value."""
    benchmark: Float64 | None = None
    """What a second implementation in the same dtype gives, widened exactly."""
    benchmark_name: str = ""
    operand: str = ""
    """The format that the precision mode rounds operands to; empty where it rounds none."""
    _shared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What tolerances of one family measure alike, made by the first that asks for it."""
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

    @property
    def row(self) -> str:
        """The row of a source's table: the output's dtype, or HFLOAT32 for FLOAT computed with such operands."""
        return "HFLOAT32" if self.dtype == "FLOAT" and self.operand == "HFLOAT32" else self.dtype

    @cached_property
    def golden(self) -> Float64:
        """The oracle's value, with inf for what the output's dtype cannot hold."""
        form = BINARY_FORMATS.get(self.dtype)
        if form is None or form.significand == 53 or not (np.abs(self.exact) > form.largest).any():
            return self.exact
        return np.where(np.isinf(self.rounded), self.rounded, self.exact)

    @cached_property
    def rounded(self) -> Float64:
        """The oracle's value rounded to the output's dtype; raises KeyError for one that is no binary format."""
        return round_to(self.exact, BINARY_FORMATS[self.dtype])

    @cached_property
    def finite(self) -> bool:
        """Whether neither the output nor the golden holds inf or nan."""
        with np.errstate(all="ignore"):
            return math.isfinite(self.got.sum() + self.golden.sum()) or bool(
                np.isfinite(self.got).all() and np.isfinite(self.golden).all()
            )

    @cached_property
    def size(self) -> Float64:
        """Magnitude of the golden, 0 where it is inf or nan."""
        magnitude: Float64 = np.abs(self.golden)
        return magnitude if self.finite else np.where(np.isfinite(magnitude), magnitude, 0.0)

    @cached_property
    def error(self) -> Float64:
        """|a - g|: 0 where both are nan or the same infinity, inf where one alone is."""
        return _error(self.got, self.golden, finite=self.finite)

    @cached_property
    def relative(self) -> Float64:
        """|a - g| / (|g| + 1e-7), the relative error of sections 2 to 4 of the sources."""
        return self.error / (self.size + RELATIVE_EPSILON)

    @cached_property
    def benchmark_error(self) -> Float64:
        """|b - g| in the same way; raises TypeError without a second implementation."""
        if self.benchmark is None:
            raise TypeError("a pair without a benchmark has no error of it")
        return _error(self.benchmark, self.golden, finite=False)


def make_pair(
    *,
    output: str,
    dtype: str,
    got: NDArray[Any],
    golden: Float64,
    unsettled: Mask | None = None,
    benchmark: NDArray[Any] | None = None,
    benchmark_name: str = "",
    operand: str = "",
) -> Pair:
    """A pair from an output in its storage dtype and the oracle's float64 value, which broadcasts to it.

    - `unsettled`: elements that the document leaves open; they are left out.
    - `benchmark`: a second implementation's output, of the shape of `got`, in any dtype that float64 holds.
    - `operand`: the format that the precision mode rounds operands to.
    """
    keep = None if unsettled is None else ~np.broadcast_to(unsettled, got.shape).reshape(-1)

    def flat(array: NDArray[Any]) -> Float64:
        whole = array if array.shape == got.shape else np.broadcast_to(array, got.shape)
        wide = widen(whole).reshape(-1)
        return wide if keep is None else wide[keep]

    return Pair(
        output=output,
        dtype=dtype,
        got=flat(got),
        exact=flat(golden),
        benchmark=None if benchmark is None else flat(benchmark),
        benchmark_name=benchmark_name,
        operand=operand,
    )


def are_equal(left: Float64, right: Float64) -> Mask:
    """Whether two numbers are equal, or both nan."""
    same: Mask = (left == right) | (np.isnan(left) & np.isnan(right))
    return same


def by_size(size: Float64, threshold: float, usable: Mask | None) -> tuple[Mask, Mask]:
    """Which elements are normal values and which small ones: from a magnitude on, and below it."""
    normal = size >= threshold
    return (normal, ~normal) if usable is None else (normal & usable, ~normal & usable)


def _error(left: Float64, golden: Float64, *, finite: bool) -> Float64:
    with np.errstate(all="ignore"):
        error: Float64 = np.abs(left - golden)
        if not finite and (special := ~(np.isfinite(left) & np.isfinite(golden))).any():
            error[special] = np.where(are_equal(left[special], golden[special]), 0.0, np.inf)
    return error


def root_mean_square(values: Float64) -> float:
    """The root of the mean square; of values up to 1e154 without overflow."""
    with np.errstate(all="ignore"):
        return math.sqrt(mean(np.square(values)))


def mean(values: Float64) -> float:
    """The mean of at least one number, as NumPy's own function has it, which takes several times as long."""
    return float(np.add.reduce(values)) / values.size


def row_of(table: Mapping[str, T], pair: Pair, *, default: str = "") -> T | None:
    """The pair's row of a table: HFLOAT32 stands for FLOAT where a table has no row of its own for it."""
    names = pair.row, pair.dtype, default if pair.dtype in FLOATING else ""
    return next((table[name] for name in names if name in table), None)
