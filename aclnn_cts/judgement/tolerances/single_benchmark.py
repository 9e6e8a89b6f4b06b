"""Tolerances that hold an output against the golden alone, those of msprobe among them, each with its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.dtypes import FLOATING
from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, round_to, spacing
from aclnn_cts.core.verdict import ToleranceFigure, ToleranceResult
from aclnn_cts.judgement.tolerances.protocol import (
    Pair,
    Tolerance,
    alike,
    by_size,
    conclude,
    equal_everywhere,
    figure,
    mean,
    no_special_values,
    row_of,
    signed_mean,
    unmeasured,
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
    `mixed_tolerance_bm`.
    """

    name: str = "mixed"
    source: str = "hicann/opbase aa3cd74b, experimental_standard.md; hicann/ops-test-kit 36750932, method mixed"

    def measure(self, pair: Pair) -> ToleranceResult:
        """Share of matched elements and the largest absolute error."""
        row = row_of(MIXED_ROWS, pair, default="FLOAT")
        if row is None or not pair.got.size:
            return unmeasured(self, pair, row)
        matched = np.count_nonzero(pair.error <= row.atol + row.rtol * pair.size) / pair.error.size
        form = BINARY_FORMATS[pair.row if pair.row in MIXED_ROWS else pair.dtype]
        allowed = np.maximum(row.largest, ULPS * spacing(pair.size, form))
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
            return unmeasured(self, pair, limit)
        if (special := no_special_values(self, pair, pair.golden, "the golden")) is not None:
            return special
        return conclude(
            self,
            [
                figure("MERE", mean(pair.relative), limit, "<"),
                figure("MARE", pair.relative.max(), MARE_RATIO * limit, "<"),
            ],
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Single(Tolerance):
    """`single-high-precision`, `single-high-performance`: the older single benchmark with an error and a balance.

    The error of an element is relative where |g| >= 1 and absolute below; each must be at most the row's threshold, and
    the mean of the signed errors, in magnitude, at most its balance. The published code masks both kinds of error with
    |g| >= 1; this is the rule as it is described.

    A golden with any inf or nan passes; else an output with any fails. Integers must be equal.

    Source: public copy of msprobe's online comparison, `SingleBenchmarkCompareStandard`.
    """

    goal: str
    source: str = "public copy of msprobe's online comparison, SingleBenchmarkCompareStandard"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The largest error and the balance of errors."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair)
        row = row_of(SINGLE_ROWS, pair)
        if row is None or not pair.got.size:
            return unmeasured(self, pair, row)
        if (special := no_special_values(self, pair, pair.golden, "the golden")) is not None:
            return special
        largest, balance = pair.shared(Single, lambda: _measured(pair))
        limit = row.precision if self.goal == "precision" else row.performance
        return conclude(self, [figure("largest error", largest, limit), figure("EB", balance, row.balance)])


def _measured(pair: Pair) -> tuple[float, float]:
    """The largest error and the mean of the signed ones."""
    scale = np.maximum(pair.size, 1.0)
    return float(np.maximum.reduce(pair.error / scale)), signed_mean((pair.got - pair.golden) / scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertCloseRow:
    """The default tolerances of one dtype."""

    rtol: float
    atol: float


ASSERT_CLOSE_ROWS: Mapping[str, AssertCloseRow] = MappingProxyType(
    {
        "FLOAT16": AssertCloseRow(rtol=1e-3, atol=1e-5),
        "BF16": AssertCloseRow(rtol=1.6e-2, atol=1e-5),
        "FLOAT": AssertCloseRow(rtol=1.3e-6, atol=1e-5),
        "DOUBLE": AssertCloseRow(rtol=1e-7, atol=1e-7),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertClose(Tolerance):
    """`assert-close`: what `torch.testing.assert_close` says with its default tolerances.

    The golden is rounded to the output's dtype, as the function compares tensors of one dtype. Every element must have
    |a - g| <= atol + rtol |g|. An inf is close to the same inf alone; nan is close to nothing, nan included, because
    `equal_nan` is off by default. Integers must be equal.

    The comparison is made in float64; torch makes it in the tensors' own dtype, so that an error within a rounding of
    the limit may fall on the other side.

    Source: PyTorch's documentation of `torch.testing.assert_close`, table of default tolerances.
    """

    name: str = "assert-close"
    source: str = "PyTorch documentation, torch.testing.assert_close, default tolerances"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The error that is nearest to its tolerance, or farthest beyond."""
        if pair.dtype not in FLOATING:
            return equal_everywhere(self, pair)
        row = row_of(ASSERT_CLOSE_ROWS, pair)
        if row is None or not pair.got.size:
            return unmeasured(self, pair, row)
        golden = pair.rounded
        with np.errstate(all="ignore"):
            error = np.abs(pair.got - golden)
            error[pair.got == golden] = 0.0
            error[np.isnan(error)] = np.inf
            allowed = row.atol + row.rtol * np.where(np.isfinite(golden), np.abs(golden), 0.0)
        worst = int(np.argmax(error / allowed))
        return conclude(self, [figure("worst absolute error", error.item(worst), allowed.item(worst))])


ULP_LIMITS: Mapping[str, float] = MappingProxyType({"FLOAT16": 4, "BF16": 4, "FLOAT": 16, "DOUBLE": 16})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ulp(Tolerance):
    """`ulp`: the error in units of the last place of the float64 value, as OpenCL's conformance tests count it.

    ulp(x) of a real x between two neighbouring numbers of the format is their distance, and of a number of the format
    the distance of the two nearest ones, that is of the binade below for a power of two; below the normal range it is
    the subnormal spacing. An infinite result counts as the power of two that follows the largest finite number, so that
    overflow next to it is an error of few ULP; nan is right for nan alone.

    OpenCL states no limit for the operators here. The one used is that of the loosest built-in functions in its
    accuracy tables: 16 ULP in single and double precision, 4 in half. It knows no BF16, which takes half's.

    Source: Khronos OpenCL C specification, section "Relative Error as ULPs" (definition of ulp, tables of the
    functions' accuracy); OpenCL-CTS, `Ulp_Error`, for powers of two and infinities. The definition and the limits were
    written from knowledge of both and not checked against a copy: none was at hand.
    """

    name: str = "ulp"
    source: str = "Khronos OpenCL C specification, Relative Error as ULPs; OpenCL-CTS, Ulp_Error"

    def measure(self, pair: Pair) -> ToleranceResult:
        """The largest error in ULP."""
        limit = ULP_LIMITS.get(pair.dtype)
        if limit is None or not pair.got.size:
            return unmeasured(self, pair, limit)
        errors = ulp_errors(pair.got, pair.exact, BINARY_FORMATS[pair.dtype])
        return conclude(self, [figure("largest ULP error", errors.max(), limit)])


def ulp_errors(values: Float64, reference: Float64, form: BinaryFormat) -> Float64:
    """The error of each value of the format against its float64 reference, in ULP of the reference."""
    with np.errstate(all="ignore"):
        beyond = np.copysign(math.ldexp(1.0, form.max_exponent), values) * 2.0
        near = np.where(np.isinf(values) & np.isfinite(reference), beyond, values)
        errors: Float64 = np.abs(near - reference) / _ulp(reference, form)
        if not math.isfinite(np.add.reduce(values) + np.add.reduce(errors)):
            errors[alike(values, round_to(reference, form)) & ~np.isfinite(values)] = 0.0
            errors[np.isnan(errors)] = np.inf
    return errors


def _ulp(reference: Float64, form: BinaryFormat) -> Float64:
    unit = spacing(reference, form)
    mantissa, _ = np.frexp(np.abs(reference))
    # Of a power of two the spacing below it counts: half of that above, or less where precision is tapered.
    below = spacing(np.nextafter(reference, 0.0), form) if form.mantissas else unit * 0.5
    return np.where((mantissa == 0.5) & (np.abs(reference) > form.smallest_normal), below, unit)


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
