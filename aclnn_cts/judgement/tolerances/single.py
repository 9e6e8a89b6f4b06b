"""`single-high-precision`, `single-high-performance`: the older single benchmark with an error and a balance.

The error of an element is relative where |g| >= 1 and absolute below; each must be at most the row's threshold, and the
mean of the signed errors, in magnitude, at most its balance. The published code masks both kinds of error with
|g| >= 1; this is the rule as it is described.

A golden with any inf or nan passes; else an output with any fails. Integers must be equal.

Source: public copy of msprobe's online comparison, `SingleBenchmarkCompareStandard`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.pair import Pair, row_of, signed_mean
from aclnn_cts.judgement.tolerances.protocol import (
    conclude,
    equal_everywhere,
    figure,
    no_row,
    no_special_values,
)

__all__ = ["SINGLE_ROWS", "Single", "SingleRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRow:
    """The numbers of one dtype."""

    precision: float
    """Error threshold of high precision."""
    performance: float
    """Error threshold of high performance."""
    balance: float


_FLOAT = SingleRow(precision=2.0**-14, performance=2.0**-11, balance=2.0**-14)
SINGLE_ROWS: Mapping[str, SingleRow] = MappingProxyType(
    {
        "FLOAT16": SingleRow(precision=2.0**-11, performance=2.0**-7, balance=2.0**-10),
        "BF16": SingleRow(precision=2.0**-8, performance=2.0**-6, balance=2.0**-7),
        "FLOAT": _FLOAT,
        "DOUBLE": _FLOAT,
    }
)


@dataclass(frozen=True, slots=True)
class Single:
    """The rule for `precision` or for `performance`."""

    goal: str
    source: str = "public copy of msprobe's online comparison, SingleBenchmarkCompareStandard"
    needs_benchmark: bool = False

    @property
    def name(self) -> str:
        return f"single-high-{self.goal}"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The largest error and the balance of errors."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair)
        row = row_of(SINGLE_ROWS, pair)
        if row is None:
            return no_row(self, pair)
        if not pair.got.size:
            return conclude(self, ())
        if (special := no_special_values(self, pair, pair.golden, "the golden")) is not None:
            return special
        largest, balance = pair.shared(Single, lambda: _measured(pair))
        limit = row.precision if self.goal == "precision" else row.performance
        return conclude(self, [figure("largest error", largest, limit), figure("EB", balance, row.balance)])


def _measured(pair: Pair) -> tuple[float, float]:
    """The largest error and the mean of the signed ones."""
    scale = np.maximum(pair.size, 1.0)
    return float(np.maximum.reduce(pair.error / scale)), signed_mean((pair.got - pair.golden) / scale)
