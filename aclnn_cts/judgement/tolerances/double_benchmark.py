"""The acceptance criteria that hold errors against those of a second implementation, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.standard import STANDARDS, ErrorRatioLimits
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.protocol import (
    RELATIVE_EPSILON,
    Pair,
    Tolerance,
    are_equal,
    by_size,
    conclude,
    equal_everywhere,
    figure,
    mean,
    no_benchmark,
    root_mean_square,
    row_of,
    verdict_without_figures,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DualRow:
    """The numbers of one dtype."""

    small: float
    """Golden magnitudes below this are small values."""
    error: float
    """Absolute error from which on a small value counts."""


DUAL_LEVELS: Mapping[str, ErrorRatioLimits] = MappingProxyType(
    {entry.tolerance.removeprefix("dual-"): entry.ratios for entry in STANDARDS.values() if entry.ratios is not None}
)
DUAL_ROWS: Mapping[str, DualRow] = MappingProxyType(
    {
        "FLOAT16": DualRow(small=2.0**-11, error=2.0**-16),
        "BF16": DualRow(small=2.0**-8, error=2.0**-16),
        "FLOAT": DualRow(small=2.0**-14, error=2.0**-30),
        "HFLOAT32": DualRow(small=2.0**-12, error=2.0**-28),
    }
)
SMALL_RATIO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Dual(Tolerance):
    """`dual-l0`, `dual-l1`, `dual-l2`: the commercial standard, device against a second implementation.

    That one is of equal precision, and both are measured against the golden. Over the elements with |g| from the row's
    small-value threshold on, the ratios metric(a) / max(metric(b), threshold) of the largest (MARE), mean (MERE) and
    root mean square error (RMSE) must not be beyond the level's limits; 0 / 0 counts as 1. Among the smaller ones an
    absolute error above the row's counts, and a may have twice as many as b (or as 1).

    A position with inf or nan passes if a equals b, or if the golden is inf or nan there and a equals it. Where b alone
    has one, the position says nothing of a and is left out. Integers must be equal.

    The standard's re-check of a failed case with reseeded data is not part of this rule: a case is judged as it stands.

    Source: hicann/cannbot-skills 6cb6e4c6, `COMMERCIAL_OPS_PRECISION_DOCS.md` (levels, rows, inf and nan); hicann/
    ops-test-kit, `ttk/core_modules/comparison/cross_check.py` (the ratios' denominator). The relative error's is |g| +
    1e-7 as in the same authors' standard with one benchmark.
    """

    level: str
    source: str = "hicann/cannbot-skills 6cb6e4c6, COMMERCIAL_OPS_PRECISION_DOCS.md; hicann/ops-test-kit, cross_check"
    needs_benchmark: bool = True

    def measure(self, pair: Pair) -> ToleranceResult:
        """The ratios of the errors of both implementations."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair)
        row = row_of(DUAL_ROWS, pair)
        if row is None:
            return verdict_without_figures(self, pair, row)
        benchmark = pair.benchmark
        if benchmark is None:
            return no_benchmark(self)
        measured = pair.shared((Dual, row), lambda: tuple(_measured(pair, benchmark, row)))
        limits = DUAL_LEVELS[self.level]
        figures = [
            figure(name, value, getattr(limits, limit) if isinstance(limit, str) else limit)
            for name, value, limit in measured
        ]
        return conclude(self, figures, benchmark=pair.benchmark_name)


def _measured(pair: Pair, benchmark: Float64, row: DualRow) -> Iterator[tuple[str, float, str | float]]:
    """What all levels measure: a figure's name, its value, and its limit or one of `ErrorRatioLimits`."""
    usable: NDArray[np.bool_] | None = None
    if not pair.finite or not np.isfinite(benchmark).all():
        special = ~(np.isfinite(pair.got) & np.isfinite(pair.golden))
        admitted = are_equal(pair.got, benchmark) | (~np.isfinite(pair.golden) & are_equal(pair.got, pair.golden))
        yield "inf and nan at fault", int(np.count_nonzero(special & ~admitted)), 0
        usable = ~special & np.isfinite(benchmark)
    normal, small = by_size(pair.size, row.small, usable)
    if normal.any():
        scale = pair.size[normal] + RELATIVE_EPSILON
        mine, other = pair.error[normal], pair.benchmark_error[normal]
        relative, other_relative = mine / scale, other / scale
        for name, left, right, limit in (
            ("MARE", relative.max(), other_relative.max(), "mare"),
            ("MERE", mean(relative), mean(other_relative), "mere"),
            ("RMSE", root_mean_square(mine), root_mean_square(other), "rmse"),
        ):
            ratio = 1.0 if left == 0.0 == right else left / max(right, row.small)
            yield f"{name} ratio", ratio, limit
    if small.any():
        count = int(np.count_nonzero(pair.error[small] > row.error))
        other_count = int(np.count_nonzero(pair.benchmark_error[small] > row.error))
        yield "small-value error ratio", count / max(other_count, 1), SMALL_RATIO
