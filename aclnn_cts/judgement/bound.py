r"""From an oracle's error terms and a compute model to the outputs that conform, element by element.

Let s be the exact value and u the unit roundoff of the accumulation format (twice that where it may truncate). What an
implementation holds before its last rounding differs from s by at most

    E = theta M_o + (1 + theta) gamma_n M_c + (1 + theta) (1 + gamma_n) gamma'_k M_s + a

- M_o, theta = (1 + u_o)^c - 1: c operands rounded to the mode's format, of unit roundoff u_o, and multiplied. Where
  the operands are known, what rounding does to each of them is known as well: then the exact value lies in an
  interval (`judgement.operands`) that takes the place of s and of this term.
- M_c, gamma_n = n u / (1 - n u): n successive roundings, in any order (Higham, *Accuracy and Stability of Numerical
  Algorithms*, 2nd ed., chapter 3; `judgement.model.gamma`). The factor before it is there because rounded operands are
  summed.
- M_s, gamma'_k: k roundings of an intermediate to the output's format.
- a: underflow (Higham, chapter 2). Each of the operations that the oracle counts, loads of operands among them, adds at
  most the smallest subnormal number of the accumulation format, or the smallest normal one where the model may flush.
  A result that may be flushed adds the smallest normal number of the output.

An oracle that follows errors through its formula states E itself, for the model's arithmetic and without what flushing
the result adds (`ExpectedOutput.error`), and where it is known to be 0 (`ExpectedOutput.exact`).

The oracle itself computes in float64: u carries 2^-53 more, so that its error is inside E too.

Rounding is monotone. So the outputs that conform are those from fl(s - E) to fl(s + E), ends included, where fl is
the rounding to the output's format. This is as sharp as it can be: no constant stands in for the last rounding, and
overflow of the output and its subnormals need no rule of their own. Where the accumulation format is the output's own,
the last operation has rounded already and the ends are s - E and s + E.

Exact data: where every term is a multiple of `lattice` and `partial / lattice` is at most 2^p, every partial sum fits
the p bits of the format, nothing is rounded in any order, and M_c adds nothing. With E = 0 one output alone conforms.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import FLOAT8
from aclnn_cts.core.expected import ErrorTerm, ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import BinaryFormat, covers, nearest, rounded, spacing, widen
from aclnn_cts.judgement.model import ORACLE_ROUNDOFF, ComputeModel, gamma
from aclnn_cts.judgement.operands import OperandFacts, OperandSpan

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
    grown: float
    """How much larger, in itself, rounded operands may make an intermediate."""


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


def loosest(model: ComputeModel) -> ComputeModel:
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


def coarsened(expected: ExpectedOutput, model: ComputeModel) -> ExpectedOutput:
    """What an oracle that states errors says in a coarser arithmetic than its own: there exact sums are rounded too.

    An addition is off by the unit roundoff of the largest intermediate at most, unless that has few enough digits.
    """
    arithmetic = expected.arithmetic
    partial = np.full(np.shape(expected.value), expected.largest) if expected.partial is None else expected.partial
    is_known = np.isfinite(partial).all()
    if expected.error is None or arithmetic is None or not is_known or model.roundoff <= arithmetic.roundoff:
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

    `operands` is what `judgement.operands` says of them, with the interval of this output; without it they are taken to
    be inexact in the mode's format and in its normal range. Arrays are float64 and broadcast to the output's logical
    shape. Elements whose exact value is inf or nan get meaningless ends (`judgement.compare` treats them apart).
    `known` is what `margins` says of the same, where the caller has it.
    """
    with np.errstate(all="ignore"):
        below, above, grown = margins(expected, model, operands=operands) if known is None else known
        partial = _largest(expected, model, operands).partial
        overflow: NDArray[np.bool_] | bool = False
        if partial is not None:
            overflow = ~(partial * _growth(expected.terms, model, grown) <= model.accumulation.largest)
        cut = overflow if model.truncates else False
        if (
            operands is not None
            and operands.overflows
            and model.operand is not None
            and (expected.error is not None or any(term.kind == "operand" for term in expected.terms))
        ):
            overflow = True
        error = 0.0 if below is None or above is None else _larger(below, above)
        return Bound(
            error=error, ends=ends(expected.value, model, below=below, above=above), overflow=overflow, cut=cut
        )


def margins(expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None) -> Margins:
    """E, on either side of the exact value; arguments as of `bound`. The caller sees to NumPy's warnings."""
    span = operands.span if operands is not None and operands.covers(model) else None
    largest = expected if span is None else span.largest
    if largest.error is not None:
        return _stated(expected, model, largest, span)
    operand_error, grown = None, 0.0
    if span is None and not (operands is not None and operands.exact):
        operand_error, grown = _operand_error(expected.terms, model)
    terms = [term for term in largest.terms if term.kind == "compute"]
    error = _rounding_error(largest, terms, model.accumulation, model.roundoff, scale=1.0 + grown)
    error = _add(operand_error, error)
    if terms := [term for term in largest.terms if term.kind == "storage"]:
        growth = _growth(expected.terms, model, grown)
        stored = _rounding_error(largest, terms, model.output, model.output.unit_roundoff, scale=growth)
        error = _add(error, stored)
    error = _add(error, _underflow(largest, model))
    if span is None:
        return Margins(error, error, grown)
    return _around(span, expected.value, 0.0 if error is None else error, grown)


def _around(span: OperandSpan, value: Float64, error: _Amount, grown: float) -> Margins:
    """The margins that an error leaves around an interval of exact values."""
    return Margins(np.maximum(value - span.lower, 0.0) + error, np.maximum(span.upper - value, 0.0) + error, grown)


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
    alike = _magnitude(expected) <= 2.0 * whole
    below, above = (
        np.where(alike, np.maximum(few, np.minimum(most, whole)), few)
        for few, most in ((usual.below, worst.below), (usual.above, worst.above))
    )
    return Margins(below, above, worst.grown)


def _independent(expected: ExpectedOutput) -> ExpectedOutput:
    """The same with errors as n independent roundings leave them."""
    error, partial, arithmetic = expected.error, expected.partial, expected.arithmetic
    if error is not None:
        if partial is not None and arithmetic is not None:
            error = np.minimum(error, np.sqrt(np.asarray(error) * arithmetic.roundoff * partial))
        return msgspec.structs.replace(expected, error=error)
    terms = tuple(
        msgspec.structs.replace(term, count=np.ceil(np.sqrt(term.count)).astype(np.int64))
        if term.kind == "compute"
        else term
        for term in expected.terms
    )
    return msgspec.structs.replace(expected, terms=terms)


def _magnitude(expected: ExpectedOutput) -> _Amount:
    """The largest sum of absolute values behind each element; inf where the oracle does not state it."""
    if expected.error is not None:
        return math.inf if expected.partial is None else expected.partial
    magnitude: _Amount = 0.0
    for term in expected.terms:
        magnitude = np.maximum(magnitude, term.magnitude)
    return magnitude


def _stated(
    expected: ExpectedOutput, model: ComputeModel, largest: ExpectedOutput, span: OperandSpan | None
) -> Margins:
    """E where the oracle states it; `largest` is what it says of the operands that the mode may make of the stored."""
    if largest.exact is True and largest.lattice is None and span is None and _survives(largest.value, model):
        return Margins(None, None, 0.0)
    error: _Amount = 0.0 if largest.error is None else largest.error
    if largest.arithmetic is not None and model.roundoff != largest.arithmetic.roundoff:
        error = error * (model.roundoff / largest.arithmetic.roundoff)
    if model.flushes_result and largest.exact is False:
        error = error + model.output.smallest_normal
    elif model.flushes_result:
        kept = np.asarray(largest.exact) & (
            (np.abs(largest.value) >= model.output.smallest_normal) | (largest.value == 0)
        )
        error = np.where(kept, error, error + model.output.smallest_normal)
    return Margins(error, error, 0.0) if span is None else _around(span, expected.value, error, 0.0)


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


def _add(left: _Amount | None, right: _Amount | None) -> _Amount | None:
    """None is nothing at all: exactness is known and not found by looking for zeros."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _operand_error(terms: tuple[ErrorTerm, ...], model: ComputeModel) -> tuple[_Amount | None, float]:
    """The error from rounding operands that are not known, and the largest relative factor in it."""
    if model.operand is None:
        return None, 0.0
    error: _Amount | None = None
    grown = 0.0
    for term in terms:
        if term.kind == "operand":
            factor = np.expm1(term.count * math.log1p(model.operand_roundoff))
            error = _add(error, factor * term.magnitude)
            grown = max(grown, float(np.max(factor)), model.operand.unit_roundoff)
    return error, grown


def _rounding_error(
    expected: ExpectedOutput, terms: Iterable[ErrorTerm], form: BinaryFormat, roundoff: float, *, scale: float
) -> _Amount | None:
    """Terms of one kind, each gamma times its magnitude; None where all of them are exact on the lattice."""
    lattice, partial = expected.lattice, expected.partial
    limit = None
    if lattice is not None and partial is not None and lattice >= form.smallest_subnormal:
        limit = math.ldexp(lattice, form.significand)
        if np.maximum.reduce(partial, axis=None, initial=0.0) <= limit:
            return None
    error: _Amount | None = None
    for term in terms:
        count = term.count
        if not isinstance(count, int):
            magnitude = term.magnitude if scale == 1.0 else term.magnitude * scale
            error = _add(error, gamma(count, roundoff + ORACLE_ROUNDOFF) * magnitude)
        elif count:
            error = _add(error, term.magnitude * (gamma(count, roundoff + ORACLE_ROUNDOFF) * scale))
    if error is not None and limit is not None and partial is not None:
        return np.where(partial <= limit, 0.0, error)
    return error


def _growth(terms: tuple[ErrorTerm, ...], model: ComputeModel, grown: float) -> float:
    """How much larger an intermediate may be than the oracle says, by the roundings before it."""
    most = 0
    for term in terms:
        if term.kind == "compute":
            most = max(most, term.count if isinstance(term.count, int) else int(term.count.max(initial=0)))
    return (1.0 + grown) * (1.0 + float(gamma(most, model.roundoff)))


def _underflow(expected: ExpectedOutput, model: ComputeModel) -> _Amount | None:
    form = model.accumulation
    lattice = expected.lattice
    floor = form.smallest_normal if model.flushes_compute else form.smallest_subnormal
    error: _Amount | None = None
    if lattice is None or lattice < floor:
        number, factor = expected.underflows, expected.underflow_scale
        if not isinstance(number, int):
            error = number.astype(np.float64) * floor  # converted first, as in `gamma`
        elif number:
            error = number * floor
        if error is not None and not (isinstance(factor, float) and factor == 1.0):
            error = error * factor
    if model.flushes_result and (lattice is None or lattice < model.output.smallest_normal):
        # Beside a result of ordinary size this vanishes in float64, so that exact data stay exact.
        error = _add(error, model.output.smallest_normal)
    return error


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
    unsaid |= np.isnan(limits.error) & ~required  # nothing is known of the error
    if not model.output.signed:
        unsaid |= limits.ends.lower <= 0.0
    if model.saturates:
        unsaid |= required | may_overflow | (np.isinf(limits.ends.lower) | np.isinf(limits.ends.upper))
        if model.output.lacks_largest:
            unsaid |= limits.ends.upper >= model.output.largest
    return unsaid, may_overflow


def sort(values: Float64, value: Float64, expected: ExpectedOutput, model: ComputeModel, limits: Bound) -> Elements:
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
    share = np.abs(values - value) / np.maximum(width, TINY)
    share = np.where(faulty, np.maximum(share, _ABOVE_ONE), np.minimum(share, 1.0))
    without = np.broadcast_to(width == 0.0, values.shape)
    share[without & ~faulty] = 0.0
    share[special | (without & faulty)] = np.inf
    share[is_open | (~faulty & ~finite)] = 0.0
    return Elements(faulty=faulty, special=special, open=is_open, share=share)
