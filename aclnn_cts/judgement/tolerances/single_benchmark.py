"""Tolerances that hold an output against the golden alone, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.rounding import BINARY_FORMATS, spacing
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.protocol import (
    Pair,
    Tolerance,
    conclude,
    equal_everywhere,
    figure,
    mean,
    no_special_values,
    row_of,
    verdict_without_figures,
)

MATCHED = 0.99
ULPS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedRow:
    """The numbers of one dtype."""

    rtol: float
    atol: float
    largest: float
    """Limit of the largest absolute error."""


MIXED_ROWS: Mapping[str, MixedRow] = MappingProxyType(
    {
        "FLOAT16": MixedRow(rtol=2.0**-9, atol=2.0**-9, largest=1e-1),
        "BF16": MixedRow(rtol=2.0**-6, atol=2.0**-6, largest=1e0),
        "FLOAT": MixedRow(rtol=2.0**-10, atol=2.0**-16, largest=1e-2),
        "HFLOAT32": MixedRow(rtol=2.0**-9, atol=2.0**-10, largest=1e-1),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed(Tolerance):
    """`mixed`: the ecosystem standard's mixed tolerance, the newest public rule for contributed operators.

    An element passes if |a - g| <= atol + rtol |g|. An output passes if at least 99 % of its elements do and no error
    is beyond the row's absolute limit or 32 units in the last place of the golden, whichever is larger for that
    element.

    nan with nan and an inf with the same inf are equal; any other difference in inf or nan is an unbounded error.

    Source: hicann/opbase aa3cd74b, `docs/zh/ops_precision_standard/experimental_standard.md` (the table); hicann/
    ops-test-kit 36750932, `docs/Precision_Comparison.md`, method `mixed` (nan and inf; other floating dtypes take
    FLOAT's row). That the larger of both limits counts element by element is how ATK 26.5.14 computes
    "mixed_tolerance_bm".
    """

    name: str = "mixed"
    source: str = "hicann/opbase aa3cd74b, experimental_standard.md; hicann/ops-test-kit 36750932, method mixed"

    def measure(self, pair: Pair) -> ToleranceResult:
        """Share of matched elements and the largest absolute error."""
        row = row_of(MIXED_ROWS, pair, default="FLOAT")
        if row is None or not pair.got.size:
            return verdict_without_figures(self, pair, row)
        matched = np.count_nonzero(pair.error <= row.atol + row.rtol * pair.size) / pair.error.size
        form = BINARY_FORMATS[pair.row if pair.row in MIXED_ROWS else pair.dtype]
        allowed = np.maximum(row.largest, ULPS * spacing(pair.size, form))
        with np.errstate(over="ignore", invalid="ignore"):  # inf and nan are worst, whatever their quotient
            worst = int(np.argmax(pair.error / allowed))
        return conclude(
            self,
            [
                figure("matched share", matched, MATCHED, ">="),
                figure("largest absolute error", pair.error.item(worst), allowed.item(worst)),
            ],
        )


MERE_LIMITS: Mapping[str, float] = MappingProxyType(
    {"FLOAT16": 2.0**-10, "BF16": 2.0**-7, "FLOAT": 2.0**-13, "HFLOAT32": 2.0**-11}
)
MARE_RATIO = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MereMare(Tolerance):
    """`mere-mare`: the earlier ecosystem standard with one benchmark, which ATK calls `single_bm`.

    With the relative error r = |a - g| / (|g| + 1e-7), an output passes if its mean (MERE) is below T and its maximum
    (MARE) below 10 T, T being the dtype's threshold.

    A golden with any inf or nan passes without a look at the output; else an output with any fails. Integers must be
    equal, INT8 may differ by 1.

    Source: hicann/cannbot-skills 6cb6e4c6, `OPS_PRECISION_STANDARDS.md`; ATK 26.5.14, `single_bm` (inf, nan, integers).
    """

    name: str = "mere-mare"
    source: str = "hicann/cannbot-skills 6cb6e4c6, OPS_PRECISION_STANDARDS.md; ATK 26.5.14, single_bm"

    def measure(self, pair: Pair) -> ToleranceResult:
        """Mean and maximum of the relative error."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair, within=1.0 if pair.dtype == "INT8" else 0.0)
        limit = row_of(MERE_LIMITS, pair)
        if limit is None or not pair.got.size:
            return verdict_without_figures(self, pair, limit)
        if (special := no_special_values(self, pair, pair.golden, "the golden")) is not None:
            return special
        return conclude(
            self,
            [
                figure("MERE", mean(pair.relative), limit, "<"),
                figure("MARE", pair.relative.max(), MARE_RATIO * limit, "<"),
            ],
        )
