"""`double`: the double benchmark with fixed ratios, ATK's comparer of fused operators.

ratio = metric(a) / max(metric(b), e), both against the golden, for the largest, the mean and the root mean square error
over all elements; the limits are 10, 2 and 2. The error balance EB = mean((a - g) / max(|g|, 1)) must not be beyond its
own threshold in magnitude.

A benchmark with any inf or nan passes; else an output with any fails. Where the golden alone holds one there is nothing
to measure, and the rule is not applicable: its source does not say what becomes of that.

Source: public copy of ATK's `cv_fused_double_benchmark`, which `double_benchmark` is presumed to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.verdict import ToleranceResult, ToleranceWhy
from aclnn_cts.judgement.tolerances.pair import RELATIVE_EPSILON, Pair, mean, root_mean_square, row_of, signed_mean
from aclnn_cts.judgement.tolerances.protocol import (
    conclude,
    figure,
    no_benchmark,
    no_row,
    no_special_values,
    not_applicable,
)

__all__ = ["DOUBLE_ROWS", "Double", "DoubleRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubleRow:
    """The numbers of one dtype."""

    error: float
    """The least that a ratio divides by."""
    balance: float


_FLOAT = DoubleRow(error=2.0**-14, balance=2.0**-14)
DOUBLE_ROWS: Mapping[str, DoubleRow] = MappingProxyType(
    {
        "FLOAT16": DoubleRow(error=2.0**-11, balance=2.0**-10),
        "BF16": DoubleRow(error=2.0**-8, balance=2.0**-7),
        "FLOAT": _FLOAT,
        "DOUBLE": _FLOAT,
    }
)
MARE_RATIO = 10
MERE_RATIO = 2
RMSE_RATIO = 2


@dataclass(frozen=True, slots=True)
class Double:
    """The rule; it has no settings."""

    name: str = "double"
    source: str = "public copy of ATK's cv_fused_double_benchmark"
    needs_benchmark: bool = True

    def measure(self, pair: Pair) -> ToleranceResult:
        """The ratios of the errors of both implementations, and the balance of the output's own."""
        row = row_of(DOUBLE_ROWS, pair)
        if row is None:
            return no_row(self, pair)
        if pair.benchmark is None:
            return no_benchmark(self)
        if not pair.got.size:
            return conclude(self, ())
        if (special := no_special_values(self, pair, pair.benchmark, "the benchmark")) is not None:
            return special
        if not np.isfinite(pair.golden).all():
            message = "the golden alone holds inf or nan; the source does not say what becomes of it"
            return not_applicable(self, message, ToleranceWhy.SPECIAL_GOLDEN)
        scale = pair.size + RELATIVE_EPSILON
        other_relative = pair.benchmark_error / scale
        metrics = (
            ("MARE", pair.relative.max(), other_relative.max(), MARE_RATIO),
            ("MERE", mean(pair.relative), mean(other_relative), MERE_RATIO),
            (
                "RMSE",
                root_mean_square(pair.error),
                root_mean_square(pair.benchmark_error),
                RMSE_RATIO,
            ),
        )
        balance = signed_mean((pair.got - pair.golden) / np.maximum(pair.size, 1.0))
        return conclude(
            self,
            [
                *(figure(f"{name} ratio", mine / max(other, row.error), limit) for name, mine, other, limit in metrics),
                figure("EB", balance, row.balance),
            ],
            benchmark=pair.benchmark_name,
        )
