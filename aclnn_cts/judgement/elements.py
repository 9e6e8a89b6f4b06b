"""Every element of one output sorted: conforming, at fault or open, by the rules for what is no ordinary number.

- Where the exact value is inf or nan, every permitted order of evaluation gives it: it must be there, with its sign.
- Where an intermediate may overflow (`Bound.overflow`), inf and nan conform beside the finite numbers within the bound,
  and the element counts as open when it holds one. So they do beside an inf that is required: a partial sum of finite
  terms that overflowed meets it as the other infinity in one order, and makes nan, and not in another. A nan stays nan.
- Where rounding to the output may overflow, the inf of that sign conforms; where it must, only that inf does.
- On arithmetic that saturates, and in a format without infinities, elements with any of these three are open. So are,
  in a format without a sign, those that may be 0 or negative. So are, where intermediates may be
  truncated, those with one that may overflow: rounding toward zero makes the largest finite number of it (IEEE
  754-2019, section 7.4), which later terms go on from.
- The sign of a zero is not judged: no document states it, and an exact sum may be either zero.
- Subnormal results need no rule: the bound holds what flushing may do.
- Elements that the oracle leaves open are not looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import widen
from aclnn_cts.judgement.bound import Bound, bound
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts

TINY = 5e-324
"""What a share is taken of where the bound is 0: the share of an exact element stays 0."""
_ABOVE_ONE = math.nextafter(1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """What every element of an output is, all arrays in its shape."""

    faulty: NDArray[np.bool_]
    special: NDArray[np.bool_]
    """At fault, and inf or nan where it must not be, or not where it must."""
    open: NDArray[np.bool_]
    share: Float64
    """Error as a share of the bound: above 1 where the element is at fault, 0 where it is open."""

    @property
    def kind(self) -> str:
        """The fault of those that are at fault."""
        return Fault.SPECIAL if self.special.any() else Fault.VALUE


def sorted_elements(
    got: NDArray[Any], expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None
) -> Elements:
    """The elements of an output in its storage dtype and logical shape, against the bound of its compute model."""
    with np.errstate(all="ignore"):
        values = widen(got)
        value = np.broadcast_to(expected.value, values.shape)
        return sort(values, value, expected, model, bound(expected, model, operands=operands))


def left_open(
    value: Float64, expected: ExpectedOutput, model: ComputeModel, limits: Bound
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where an element is open whatever came back, and where it is once that is inf or nan; `value` in full shape."""
    required = ~np.isfinite(value)
    may_overflow = np.zeros(value.shape, dtype=np.bool_)
    may_overflow |= limits.overflow & ~required
    if required.any() and expected.partial is not None:
        may_overflow |= limits.overflow & np.isinf(value) & np.isfinite(expected.partial)
    unsaid = np.zeros(value.shape, dtype=np.bool_)
    if expected.open is not None:
        unsaid |= expected.open
    unsaid |= limits.cut & ~required
    if not model.output.signed:
        unsaid |= limits.ends.lower <= 0.0
    if model.saturates:
        unsaid |= required | may_overflow | (np.isinf(limits.ends.lower) | np.isinf(limits.ends.upper))
    return unsaid, may_overflow


def sort(values: Float64, value: Float64, expected: ExpectedOutput, model: ComputeModel, limits: Bound) -> Elements:
    """The same of what was widened, with the exact values in its shape. The caller sees to NumPy's warnings.

    ValueError where the oracle's error terms are nan beside a finite value.
    """
    lower, upper = limits.ends.lower, limits.ends.upper
    finite, required = np.isfinite(values), ~np.isfinite(value)
    inside = np.where(
        required, (values == value) | (np.isnan(values) & np.isnan(value)), (lower <= values) & (values <= upper)
    )
    unsaid, may_overflow = left_open(value, expected, model, limits)
    is_open = unsaid | (may_overflow & ~finite)
    error = np.asarray(limits.error)
    if (np.isnan(error) & ~required & ~is_open).any():
        raise ValueError(
            "an error term is nan where the expected value is finite; the oracle must leave such elements open"
        )
    faulty = ~inside & ~is_open
    special = faulty & (~finite | required)
    width = limits.ends.width_of(values, value)
    share = np.abs(values - value) / np.maximum(width, TINY)
    share = np.where(faulty, np.maximum(share, _ABOVE_ONE), np.minimum(share, 1.0))
    without = np.broadcast_to(width == 0.0, values.shape)
    share[without & ~faulty] = 0.0
    share[special | (without & faulty)] = np.inf
    share[is_open | (~faulty & ~finite)] = 0.0
    return Elements(faulty=faulty, special=special, open=is_open, share=share)
