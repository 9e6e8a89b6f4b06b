"""`mere-mare`: the earlier ecosystem standard with one benchmark, which ATK calls `single_bm`.

With the relative error r = |a - g| / (|g| + 1e-7), an output passes if its mean (MERE) is below T and its maximum
(MARE) below 10 T, T being the dtype's threshold.

A golden with any inf or nan passes without a look at the output; else an output with any fails. Integers must be equal,
INT8 may differ by 1.

Source: hicann/cannbot-skills 6cb6e4c6, `OPS_PRECISION_STANDARDS.md`; ATK 26.5.14, `single_bm` (inf, nan, integers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.pair import Pair, mean, row_of
from aclnn_cts.judgement.tolerances.protocol import (
    conclude,
    equal_everywhere,
    figure,
    no_row,
    no_special_values,
)

__all__ = ["MERE_LIMITS", "MereMare"]

MERE_LIMITS: Mapping[str, float] = MappingProxyType(
    {"FLOAT16": 2.0**-10, "BF16": 2.0**-7, "FLOAT": 2.0**-13, "HFLOAT32": 2.0**-11}
)
MARE_RATIO = 10


@dataclass(frozen=True, slots=True)
class MereMare:
    """The rule; it has no settings."""

    name: str = "mere-mare"
    source: str = "hicann/cannbot-skills 6cb6e4c6, OPS_PRECISION_STANDARDS.md; ATK 26.5.14, single_bm"
    needs_benchmark: bool = False

    def measure(self, pair: Pair) -> ToleranceResult:
        """Mean and maximum of the relative error."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair, within=1.0 if pair.dtype == "INT8" else 0.0)
        limit = row_of(MERE_LIMITS, pair)
        if limit is None:
            return no_row(self, pair)
        if not pair.got.size:
            return conclude(self, ())
        if (special := no_special_values(self, pair, pair.golden, "the golden")) is not None:
            return special
        return conclude(
            self,
            [
                figure("MERE", mean(pair.relative), limit, "<"),
                figure("MARE", pair.relative.max(), MARE_RATIO * limit, "<"),
            ],
        )
