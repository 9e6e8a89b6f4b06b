r"""From an oracle's error and a compute model to the outputs that conform, element by element.

Let s be the exact value. What an implementation holds before its last rounding differs from s by at most E: the error
that the oracle states (`ExpectedOutput.error`), for the model's arithmetic, and what flushing the result adds to it,
the smallest normal number of the output. E is 0 where nothing is rounded (`ExpectedOutput.exact`). Where a mode rounds
operands, the exact value lies in an interval (`judgement.operands`) that takes the place of s.

The oracle itself computes in float64: its unit roundoffs carry 2^-53 more, so that its error is inside E too.

Rounding is monotone. So the outputs that conform are those from fl(s - E) to fl(s + E), ends included, where fl is
the rounding to the output's format. This is as sharp as it can be: no constant stands in for the last rounding, and
overflow of the output and its subnormals need no rule of their own. Where the accumulation format is the output's own,
the last operation has rounded already and the ends are s - E and s + E. With E = 0 one output alone conforms.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import FLOAT8
from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import BinaryFormat, covers, nearest, rounded, spacing, widen
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts

_Amount: TypeAlias = "float | Float64"


class Ends(NamedTuple):
    """The outputs that conform, as numbers; what `Bound` says of each holds here."""

    lower: Float64
    upper: Float64
    width: _Amount
    """The bound as one number: E and half a unit of the output in the binade of |s| + E.

    No conforming output is farther from s; a few others may be as near.
    """
    sides: tuple[_Amount, _Amount] | None

    def width_of(self, values: Float64, exact: Float64) -> _Amount:
        """The width on the side of the exact value that each result lies on."""
        if self.sides is None:
            return self.width
        return np.where(values < exact, *self.sides)


class Margins(NamedTuple):
    """How far a result may be from the exact value before its last rounding; what `bound` starts from."""

    below: _Amount | None
    """None: nothing is rounded, and one output alone conforms."""
    above: _Amount | None
    """The same object as `below` where both are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The outputs that conform, elements of the output's format (or of the accumulation's), and how they came about."""

    error: _Amount
    """E: the largest error before the last rounding."""
    ends: Ends
    overflow: NDArray[np.bool_] | bool
    """Where an intermediate may overflow, so that inf and nan conform too."""
    cut: NDArray[np.bool_] | bool
    """Where such an overflow may be truncated to the largest finite number instead, so that nothing can be required."""


def loosest_model(model: ComputeModel) -> ComputeModel:
    """The coarsest arithmetic that any reading of the promised formats leaves room for.

    It accumulates in the narrowest of the formats that take part and are computed in, truncates, and flushes. An
    output beyond the model but within the `likely_margins` of this one is explained by precision.
    """
    formats = (model.accumulation, model.output, model.operand or model.accumulation)
    return dataclasses.replace(
        model,
        accumulation=min((form for form in formats if form.name not in FLOAT8), key=lambda form: form.significand),
        truncates=True,
        output_truncates=True,
        flushes_compute=True,
        flushes_result=True,
    )


def coarsen_expected(expected: ExpectedOutput, model: ComputeModel) -> ExpectedOutput:
    """What an oracle says in a coarser arithmetic than its own: there exact sums are rounded too.

    An addition is off by the unit roundoff of the largest intermediate at most, unless that has few enough digits.
    """
    arithmetic = expected.arithmetic
    partial = np.full(np.shape(expected.value), expected.largest) if expected.partial is None else expected.partial
    is_known = np.isfinite(partial).all()
    if arithmetic is None or not is_known or model.roundoff <= arithmetic.roundoff:
        return expected
    additions = np.maximum(np.asarray(expected.summands, np.float64) - 1.0, 0.0)
    if not additions.any():
        return expected
    has_digits = False if expected.step is None else partial <= expected.step * 2.0**model.accumulation.significand
    # In the oracle's arithmetic, as `error` is; it grows with the roundoff like all of it.
    error = np.maximum(expected.error, np.where(has_digits, 0.0, additions * arithmetic.roundoff * partial))
    exact = np.asarray(expected.exact) & (error == 0.0)
    return msgspec.structs.replace(expected, error=error, exact=exact, partial=partial)


def bound(
    expected: ExpectedOutput,
    model: ComputeModel,
    *,
    operands: OperandFacts | None = None,
    known: Margins | None = None,
) -> Bound:
    """Derive what conforms of one output.

    `operands` is what `judgement.operands` says of them, with the interval of this output; without it they are used as
    they are stored. Arrays are float64 and broadcast to the output's logical shape. Elements whose exact value is inf
    or nan get meaningless ends (`judgement.compare` treats them apart).
    `known` is what `margins` says of the same, where the caller has it.
    """
    with np.errstate(all="ignore"):
        below, above = margins(expected, model, operands=operands) if known is None else known
        partial = _largest(expected, model, operands).partial
        overflow: NDArray[np.bool_] | bool = False
        if partial is not None:
            overflow = ~(partial <= model.accumulation.largest)
        cut = overflow if model.truncates else False
        if operands is not None and operands.overflows and model.operand is not None:
            overflow = True
        error = 0.0 if below is None or above is None else _larger(below, above)
        return Bound(
            error=error, ends=ends(expected.value, model, below=below, above=above), overflow=overflow, cut=cut
        )


def margins(expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None) -> Margins:
    """E, on either side of the exact value; arguments as of `bound`. The caller sees to NumPy's warnings."""
    span = operands.span if operands is not None and operands.covers(model) else None
    largest = expected if span is None else span.largest
    if largest.exact is True and span is None and _survives(largest.value, model):
        return Margins(None, None)
    error: _Amount = largest.error
    if largest.arithmetic is not None and model.roundoff != largest.arithmetic.roundoff:
        error = error * (model.roundoff / largest.arithmetic.roundoff)
    if model.flushes_result and largest.exact is False:
        error = error + model.output.smallest_normal
    elif model.flushes_result:
        kept = np.asarray(largest.exact) & (
            (np.abs(largest.value) >= model.output.smallest_normal) | (largest.value == 0)
        )
        error = np.where(kept, error, error + model.output.smallest_normal)
    if span is None:
        return Margins(error, error)
    value = expected.value
    return Margins(np.maximum(value - span.lower, 0.0) + error, np.maximum(span.upper - value, 0.0) + error)


def _larger(below: _Amount, above: _Amount) -> _Amount:
    return below if below is above else np.maximum(below, above)


def likely_margins(expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None) -> Margins:
    """How far errors of the size that rounding has come; arguments and result as of `margins`.

    n roundings add up to about sqrt(n) of one, where the worst case is n of them: in a narrow format that soon is more
    than the value itself, and any wrong value is within it (Higham and Mary, *A new approach to probabilistic rounding
    error analysis*, SIAM J. Sci. Comput. 41, 2019). Only terms of one sign may be rounded alike again and again, or be
    lost beside their sum: there the worst case counts, up to the value.
    """
    worst = margins(expected, model, operands=operands)
    if operands is not None and operands.span is not None:
        largest = _independent(operands.span.largest)
        operands = msgspec.structs.replace(operands, span=msgspec.structs.replace(operands.span, largest=largest))
    usual = margins(_independent(expected), model, operands=operands)
    if worst.below is None or worst.above is None or usual.below is None or usual.above is None:
        return usual
    whole = np.abs(expected.value)
    alike = (math.inf if expected.partial is None else expected.partial) <= 2.0 * whole
    below, above = (
        np.where(alike, np.maximum(few, np.minimum(most, whole)), few)
        for few, most in ((usual.below, worst.below), (usual.above, worst.above))
    )
    return Margins(below, above)


def _independent(expected: ExpectedOutput) -> ExpectedOutput:
    """The same with errors as n independent roundings leave them."""
    error, partial, arithmetic = expected.error, expected.partial, expected.arithmetic
    if partial is not None and arithmetic is not None:
        error = np.minimum(error, np.sqrt(np.asarray(error) * arithmetic.roundoff * partial))
    return msgspec.structs.replace(expected, error=error)


def _survives(value: Float64, model: ComputeModel) -> bool:
    """Whether no element may be flushed to zero on its way to the output."""
    if not model.flushes_result:
        return True
    return not bool(((np.abs(value) < model.output.smallest_normal) & (value != 0.0)).any())


def _largest(expected: ExpectedOutput, model: ComputeModel, operands: OperandFacts | None) -> ExpectedOutput:
    """What the oracle says of the largest operands that the mode can make of the stored ones."""
    if operands is not None and operands.span is not None and operands.covers(model):
        return operands.span.largest
    return expected


def ends(value: Float64, model: ComputeModel, *, below: _Amount | None, above: _Amount | None) -> Ends:
    """The least and the greatest result that conform, by the last rounding, from the margins around exact values."""
    form = model.output
    if below is None or above is None:
        if model.through is None and not model.output_truncates:
            if not form.ties_open:
                only = rounded(value, form)
                return Ends(only, only, 0.0, None)
            lower, upper = nearest(np.stack((value, value)), form)
            return Ends(lower, upper, np.where(lower == upper, 0.0, spacing(value, form, scale=0.5)), None)
        below = above = 0.0
    error = _larger(below, above)
    sides = None if below is above else (below, above)
    again = model.through is not None or model.output_truncates or not covers(form, model.accumulation)
    if not again:
        lower, upper = np.asarray(value - below), np.asarray(value + above)
        if lower.min(initial=0.0) < -form.largest or upper.max(initial=0.0) > form.largest:
            lower = np.where(
                lower < -form.largest, -np.inf, np.where(lower > form.largest, rounded(lower, form), lower)
            )
            upper = np.where(upper > form.largest, np.inf, np.where(upper < -form.largest, rounded(upper, form), upper))
        return Ends(lower, upper, error, sides)
    both = np.empty((2, *np.broadcast_shapes(np.shape(value), np.shape(below), np.shape(above))))
    np.subtract(value, below, out=both[0, ...])
    np.add(value, above, out=both[1, ...])
    # The larger magnitude, by bits: NumPy compares integers several times as fast.
    sizes = np.abs(both).view(np.int64)
    farthest: Float64 = np.asarray(np.maximum(sizes[0, ...], sizes[1, ...])).view(np.float64)
    last = spacing(farthest, form, scale=1.0 if model.output_truncates else 0.5)
    if model.through is not None:
        last = last + spacing(farthest, model.through, scale=0.5)
        narrowed = nearest(both, model.through)
        np.minimum(both[0], narrowed[0], out=both[0, ...])
        np.maximum(both[1], narrowed[1], out=both[1, ...])
    if model.output_truncates:
        lower, upper = _round_down(both[0, ...], form), -_round_down(-both[1, ...], form)
    else:
        both = nearest(both, form)
        lower, upper = both[0, ...], both[1, ...]
    return Ends(lower, upper, error + last, None if sides is None else (sides[0] + last, sides[1] + last))


_UNDERFLOW = 2.0**-100
"""More than underflow leaves of a result."""


def _round_down(values: Float64, form: BinaryFormat) -> Float64:
    """Round towards minus infinity; nothing becomes inf that is not beyond the largest finite number."""
    near = rounded(values, form)
    below = np.where(np.isinf(near), form.largest, near - spacing(values, form))
    if form.infinite:
        return np.where(near > values, below, near)
    # What underflows is no fraction of an integer. Beyond its range there is none: what becomes of a number is open.
    lower: Float64 = np.where(near - values > _UNDERFLOW, below, near)
    return np.where(lower < -form.largest, -np.inf, lower)


TINY = 5e-324
"""Divides an error where the bound is 0: the error ratio of an exact element stays 0."""
_ABOVE_ONE = math.nextafter(1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputElements:
    """What every element of an output is, all arrays in its shape."""

    faulty: NDArray[np.bool_]
    special: NDArray[np.bool_]
    """At fault, and inf or nan where it must not be, or not where it must."""
    open: NDArray[np.bool_]
    error_ratio: Float64
    """Error divided by the bound: above 1 where the element is at fault, 0 where it is open."""

    @property
    def kind(self) -> str:
        """The fault of those that are at fault."""
        return Fault.SPECIAL if self.special.any() else Fault.VALUE


def sorted_elements(
    got: NDArray[Any], expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None
) -> OutputElements:
    """The elements of an output in its storage dtype and logical shape, against the bound of its compute model."""
    with np.errstate(all="ignore"):
        values = widen(got)
        value = np.broadcast_to(expected.value, values.shape)
        return classify_elements(values, value, expected, model, bound(expected, model, operands=operands))


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
    unsaid |= np.isnan(limits.error) & ~required  # nothing is known of the error
    if not model.output.signed:
        unsaid |= limits.ends.lower <= 0.0
    if model.saturates:
        unsaid |= required | may_overflow | (np.isinf(limits.ends.lower) | np.isinf(limits.ends.upper))
        if model.output.lacks_largest:
            unsaid |= limits.ends.upper >= model.output.largest
    return unsaid, may_overflow


def classify_elements(
    values: Float64, value: Float64, expected: ExpectedOutput, model: ComputeModel, limits: Bound
) -> OutputElements:
    """The same of what was widened, with the exact values in its shape. The caller sees to NumPy's warnings."""
    lower, upper = limits.ends.lower, limits.ends.upper
    finite, required = np.isfinite(values), ~np.isfinite(value)
    inside = np.where(
        required, (values == value) | (np.isnan(values) & np.isnan(value)), (lower <= values) & (values <= upper)
    )
    unsaid, may_overflow = left_open(value, expected, model, limits)
    is_open = unsaid | (may_overflow & ~finite)
    faulty = ~inside & ~is_open
    special = faulty & (~finite | required)
    width = limits.ends.width_of(values, value)
    error_ratio = np.abs(values - value) / np.maximum(width, TINY)
    error_ratio = np.where(faulty, np.maximum(error_ratio, _ABOVE_ONE), np.minimum(error_ratio, 1.0))
    without = np.broadcast_to(width == 0.0, values.shape)
    error_ratio[without & ~faulty] = 0.0
    error_ratio[special | (without & faulty)] = np.inf
    error_ratio[is_open | (~faulty & ~finite)] = 0.0
    return OutputElements(faulty=faulty, special=special, open=is_open, error_ratio=error_ratio)
