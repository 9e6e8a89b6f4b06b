"""`msprobe-threshold`, `msprobe-ulp`: two rules of msprobe's check of single interfaces.

Both take a golden one precision higher than the output: FLOAT for the 16-bit dtypes, DOUBLE for FLOAT.

*Threshold*: no normal value has a relative error above rtol, no small value an absolute error above the tolerance, and
inf and nan stand where the golden has them. The relative error is |a - g| / (|g| + eps), eps being the machine epsilon
of the golden's dtype, and 2^-8 for BF16.

*ULP*: errors in units of the last place of the golden. FLOAT passes if their mean is below 64, or the share above 32 is
below 5 %, or below the benchmark's; the 16-bit dtypes if the share above 1 is below 0.1 % or below the benchmark's.
Of inf and nan the source says nothing for this rule; it is held to what the others of the tool do, where a difference
in them fails.

Source: Ascend/msprobe 8ff00da3, `python/msprobe/pytorch/api_accuracy_checker/precision_standard/standard_config.py` and
`compare/algorithm.py`. The tool itself puts most outputs to its benchmark method, which is `dual-*` with other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, spacing
from aclnn_cts.core.verdict import ToleranceFigure, ToleranceResult
from aclnn_cts.judgement.tolerances.pair import Pair, alike, by_size, mean, row_of
from aclnn_cts.judgement.tolerances.protocol import Tolerance, conclude, figure, unmeasured

_SOURCE = "Ascend/msprobe 8ff00da3, api_accuracy_checker/precision_standard/standard_config.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class MsprobeRow:
    """The numbers of one dtype for the threshold."""

    small: float
    """Golden magnitudes below this are small values."""
    tolerance: float
    """Absolute, for small values."""
    rtol: float
    """Relative, for the others."""
    epsilon: float
    """Added to the golden's magnitude in the relative error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MsprobeUlpRow:
    """The numbers of one dtype for errors in ULP."""

    large: float
    """Errors above this count."""
    share: float
    """Their share must be below this."""
    mean: float | None = None


MSPROBE_ROWS: Mapping[str, MsprobeRow] = MappingProxyType(
    {
        "FLOAT16": MsprobeRow(small=2.0**-10, tolerance=2.0**-16, rtol=2.0**-10, epsilon=2.0**-23),
        "BF16": MsprobeRow(small=2.0**-10, tolerance=1e-16, rtol=2.0**-8, epsilon=2.0**-8),
        "FLOAT": MsprobeRow(small=2.0**-20, tolerance=2.0**-30, rtol=2.0**-20, epsilon=2.0**-52),
    }
)
MSPROBE_ULP_ROWS: Mapping[str, MsprobeUlpRow] = MappingProxyType(
    {
        "FLOAT16": MsprobeUlpRow(large=1, share=0.001),
        "BF16": MsprobeUlpRow(large=1, share=0.001),
        "FLOAT": MsprobeUlpRow(large=32, share=0.05, mean=64),
    }
)


def _golden(pair: Pair) -> Float64:
    """One precision higher than the output; a number that only DOUBLE tells from 0 is 0 in FLOAT."""
    if pair.dtype in ("FLOAT", "DOUBLE"):
        return pair.golden
    return pair.shared("msprobe golden", lambda: round_to(pair.golden, BINARY_FORMATS["FLOAT"]))


def _disagreements(pair: Pair) -> ToleranceFigure | None:
    """Positions where inf or nan stands on one side alone, or with another sign; None where there is neither."""
    if pair.finite:
        return None
    special = ~(np.isfinite(pair.got) & np.isfinite(pair.golden))
    return figure("inf and nan that disagree", int(np.count_nonzero(special & ~alike(pair.got, pair.golden))), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MsprobeThreshold(Tolerance):
    """The rule; it has no settings."""

    name: str = "msprobe-threshold"
    source: str = f"{_SOURCE}, absolute threshold"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The largest errors of normal and of small values: that no share is above means that no error is."""
        row = row_of(MSPROBE_ROWS, pair, default="FLOAT")
        if row is None or not pair.got.size:
            return unmeasured(self, pair, row)
        golden, error = _golden(pair), pair.error
        figures = []
        usable = None
        if (disagreeing := _disagreements(pair)) is not None:
            figures.append(disagreeing)
            usable = np.isfinite(pair.got) & np.isfinite(golden)
        if golden is not pair.golden:
            with np.errstate(all="ignore"):
                error = np.abs(pair.got - golden)
        size = np.abs(golden)
        normal, small = by_size(size, row.small, usable)
        if normal.any():
            relative = error[normal] / (size[normal] + row.epsilon)
            figures.append(figure("largest relative error", relative.max(), row.rtol))
        if small.any():
            figures.append(figure("largest small-value error", error[small].max(), row.tolerance))
        return conclude(self, figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class MsprobeUlp(Tolerance):
    """The rule; it has no settings."""

    name: str = "msprobe-ulp"
    source: str = f"{_SOURCE}, ULP error"
    needs_benchmark: bool = True

    def measure(self, pair: Pair) -> ToleranceResult:
        """The mean error in ULP, the share of large ones, and that share over the benchmark's where there is one."""
        row = row_of(MSPROBE_ULP_ROWS, pair)
        if row is None or not pair.got.size:
            return unmeasured(self, pair, row)
        disagreeing = _disagreements(pair)
        if disagreeing is not None and disagreeing.value:
            return conclude(self, [disagreeing])
        golden = _golden(pair)
        unit = spacing(golden, BINARY_FORMATS[pair.dtype])
        errors = _in_ulps(pair.got, golden, unit)
        share = np.count_nonzero(errors > row.large) / errors.size
        figures = [figure(f"share above {row.large:g} ULP", share, row.share, "<")]
        if row.mean is not None:
            figures.append(figure("mean ULP error", mean(errors), row.mean, "<"))
        if pair.benchmark is not None:
            other = _in_ulps(pair.benchmark, golden, unit)
            other_share = np.count_nonzero(other > row.large) / other.size
            ratio = share / other_share if other_share else (np.inf if share else 1.0)
            figures.append(figure(f"ratio of shares above {row.large:g} ULP", ratio, 1, "<"))
        return conclude(self, figures, any_of=True, benchmark=pair.benchmark_name)


def _in_ulps(values: Float64, golden: Float64, unit: Float64) -> Float64:
    """Errors in units, the spacing of the golden's binade or the subnormal one below it; 0 for equal inf and nan."""
    with np.errstate(all="ignore"):
        errors: Float64 = np.abs(values - golden) / unit
        if not math.isfinite(np.add.reduce(errors)):
            errors[alike(values, golden)] = 0.0
            errors[np.isnan(errors)] = np.inf
    return errors
