"""`ulp`: the error in units of the last place of the float64 value, as OpenCL's conformance tests count it.

ulp(x) of a real x between two neighbouring numbers of the format is their distance, and of a number of the format the
distance of the two nearest ones, that is of the binade below for a power of two; below the normal range it is the
subnormal spacing. An infinite result counts as the power of two that follows the largest finite number, so that
overflow next to it is an error of few ULP; nan is right for nan alone.

OpenCL states no limit for the operators here. The one used is that of the loosest built-in functions in its accuracy
tables: 16 ULP in single and double precision, 4 in half. It knows no BF16, which takes half's.

Source: Khronos OpenCL C specification, section "Relative Error as ULPs" (definition of ulp, tables of the functions'
accuracy); OpenCL-CTS, `Ulp_Error`, for powers of two and infinities. The definition and the limits were written from
knowledge of both and not checked against a copy: none was at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, round_to, spacing
from aclnn_cts.core.verdict import ToleranceResult
from aclnn_cts.judgement.tolerances.pair import Pair, alike
from aclnn_cts.judgement.tolerances.protocol import conclude, figure, no_row

__all__ = ["ULP_LIMITS", "Ulp", "ulp_errors"]

ULP_LIMITS: Mapping[str, float] = MappingProxyType({"FLOAT16": 4, "BF16": 4, "FLOAT": 16, "DOUBLE": 16})


@dataclass(frozen=True, slots=True)
class Ulp:
    """The rule; it has no settings."""

    name: str = "ulp"
    source: str = "Khronos OpenCL C specification, Relative Error as ULPs; OpenCL-CTS, Ulp_Error"
    needs_benchmark: bool = False

    def measure(self, pair: Pair) -> ToleranceResult:
        """The largest error in ULP."""
        limit = ULP_LIMITS.get(pair.dtype)
        if limit is None:
            return no_row(self, pair)
        if not pair.got.size:
            return conclude(self, ())
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
    return np.where((mantissa == 0.5) & (np.abs(reference) > form.smallest_normal), unit * 0.5, unit)
