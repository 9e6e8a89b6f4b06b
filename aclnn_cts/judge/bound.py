r"""From an oracle's error terms and a compute model to the outputs that conform, element by element.

Let s be the exact value and u the unit roundoff of the accumulation format (twice that where it may truncate). What an
implementation holds before its last rounding differs from s by at most

    E = theta M_o + (1 + theta) gamma_n M_c + (1 + theta) (1 + gamma_n) gamma'_k M_s + a

- M_o, theta = (1 + u_o)^c - 1: c operands rounded to the mode's format, of unit roundoff u_o, and multiplied. Where
  the operands are known, what rounding does to each of them is known as well: then the exact value lies in an
  interval (`judge.operands`) that takes the place of s and of this term.
- M_c, gamma_n = n u / (1 - n u): n successive roundings, in any order (Higham, *Accuracy and Stability of Numerical
  Algorithms*, 2nd ed., chapter 3; `judge.gamma`). The factor before it is there because rounded operands are summed.
- M_s, gamma'_k: k roundings of an intermediate to the output's format.
- a: underflow (Higham, chapter 2). Each of the operations that the oracle counts, loads of operands among them, adds at
  most the smallest subnormal number of the accumulation format, or the smallest normal one where the model may flush.
  A result that may be flushed adds the smallest normal number of the output.

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
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ErrorTerm, ExpectedOutput, Float64
from aclnn_cts.core.rounding import BinaryFormat, covers, round_to, spacing
from aclnn_cts.judge.gamma import ORACLE_ROUNDOFF, gamma
from aclnn_cts.judge.model import ComputeModel
from aclnn_cts.judge.operands import OperandFacts

__all__ = ["Bound", "bound", "loosest"]

_Amount: TypeAlias = "float | Float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The outputs that conform: `lower` to `upper`, elements of the output's format (or of the accumulation's)."""

    error: _Amount
    """E: the largest error before the last rounding."""
    lower: Float64
    upper: Float64
    """The same object as `lower` where one output alone conforms, in every element."""
    width: _Amount
    """The bound as one number: E and half a unit of the output in the binade of |s| + E. No conforming output is
    farther from s; a few others may be as near."""
    overflow: NDArray[np.bool_] | bool
    """Where an intermediate may overflow, so that inf and nan conform too."""
    cut: NDArray[np.bool_] | bool
    """Where such an overflow may be truncated to the largest finite number instead, so that nothing can be required."""
    sides: tuple[_Amount, _Amount] | None = None
    """The width below s and that above it, where the two are not the same."""

    def width_of(self, values: Float64, exact: Float64) -> _Amount:
        """The width on the side of the exact value that each result lies on."""
        if self.sides is None:
            return self.width
        return np.where(values < exact, *self.sides)


def loosest(model: ComputeModel) -> ComputeModel:
    """The coarsest arithmetic that any reading of the promised formats leaves room for.

    It accumulates in the narrowest of the formats that take part, truncates, and flushes. An output beyond the model
    but within this one is explained by precision; one that is beyond both is wrong in any arithmetic.
    """
    formats = (model.accumulation, model.output, *((model.operand,) if model.operand else ()))
    return dataclasses.replace(
        model,
        accumulation=min(formats, key=lambda form: form.significand),
        truncates=True,
        output_truncates=True,
        flushes_compute=True,
        flushes_result=True,
    )


def bound(expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None) -> Bound:
    """Derive what conforms of one output.

    `operands` is what `judge.operands` says of them, with the interval of this output; without it they are taken to be
    inexact in the mode's format and in its normal range. Arrays are float64 and broadcast to the output's logical
    shape. Elements whose exact value is inf or nan get meaningless ends (`judge.compare` treats them apart).
    """
    with np.errstate(all="ignore"):
        span = operands.span if operands is not None and operands.covers(model) else None
        # Magnitudes are those of the largest operands that the mode can make of the stored ones.
        largest = expected if span is None else span.largest
        partial = largest.partial
        reach = float(np.maximum.reduce(partial, axis=None, initial=0.0)) if partial is not None else None
        operand_error, grown = None, 0.0
        if span is None and not (operands is not None and operands.exact):
            operand_error, grown = _operand_error(expected.terms, model)
        error = _add(
            operand_error,
            _rounding_error(largest, "compute", model.accumulation, model.roundoff, reach=reach, scale=1.0 + grown),
        )
        largest_factor = _largest_factor(expected.terms, model.roundoff)
        growth = (1.0 + grown) * (1.0 + largest_factor)
        output_roundoff = model.output.unit_roundoff
        error = _add(
            error, _rounding_error(largest, "storage", model.output, output_roundoff, reach=reach, scale=growth)
        )
        error = _add(error, _underflow(largest, model))

        overflow: NDArray[np.bool_] | bool = False
        if partial is not None and not (reach is not None and reach * growth <= model.accumulation.largest):
            overflow = ~(partial * growth <= model.accumulation.largest)
        cut = overflow if model.truncates else False
        if (
            operands is not None
            and operands.overflows
            and model.operand is not None
            and any(term.kind == "operand" for term in expected.terms)
        ):
            overflow = True
        value = expected.value
        if span is not None:
            rounding = 0.0 if error is None else error
            below, above = np.maximum(value - span.lower, 0.0), np.maximum(span.upper - value, 0.0)
            return _ends(value, below + rounding, above + rounding, model, overflow=overflow, cut=cut)
        if error is None and model.through is None and not model.output_truncates:
            only = round_to(value, model.output)
            return Bound(error=0.0, lower=only, upper=only, width=0.0, overflow=overflow, cut=cut)
        both = 0.0 if error is None else error
        return _ends(value, both, both, model, overflow=overflow, cut=cut)


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
    expected: ExpectedOutput, kind: str, form: BinaryFormat, roundoff: float, *, reach: float | None, scale: float
) -> _Amount | None:
    """The terms of one kind, each gamma times its magnitude; None where all of them are exact on the lattice."""
    lattice, partial = expected.lattice, expected.partial
    limit = None
    if lattice is not None and partial is not None and reach is not None and lattice >= form.smallest_subnormal:
        limit = math.ldexp(lattice, form.significand)
        if reach <= limit:
            return None
    error: _Amount | None = None
    for term in expected.terms:
        if term.kind == kind:
            count = term.count
            if isinstance(count, int):
                if count == 0:
                    continue
                error = _add(error, term.magnitude * (gamma(count, roundoff + ORACLE_ROUNDOFF) * scale))
            else:
                error = _add(error, gamma(count, roundoff + ORACLE_ROUNDOFF) * (term.magnitude * scale))
    if error is not None and limit is not None and partial is not None:
        return np.where(partial <= limit, 0.0, error)
    return error


def _largest_factor(terms: tuple[ErrorTerm, ...], roundoff: float) -> float:
    most = 0
    for term in terms:
        if term.kind == "compute":
            most = max(most, term.count if isinstance(term.count, int) else int(term.count.max(initial=0)))
    return float(gamma(most, roundoff))


def _underflow(expected: ExpectedOutput, model: ComputeModel) -> _Amount | None:
    form = model.accumulation
    lattice = expected.lattice
    floor = form.smallest_normal if model.flushes_compute else form.smallest_subnormal
    error: _Amount | None = None
    if lattice is None or lattice < floor:
        underflows: Any = expected.underflows
        if not isinstance(underflows, int) or underflows:
            error = underflows * floor * expected.underflow_scale
    if model.flushes_result and (lattice is None or lattice < model.output.smallest_normal):
        # Beside a result of ordinary size this vanishes in float64, so that exact data stay exact.
        error = _add(error, model.output.smallest_normal)
    return error


def _ends(
    value: Float64,
    below: _Amount,
    above: _Amount,
    model: ComputeModel,
    *,
    overflow: NDArray[np.bool_] | bool,
    cut: NDArray[np.bool_] | bool,
) -> Bound:
    """The least and the greatest result that conform, by the last rounding."""
    lower = np.asarray(value - below)
    upper = np.asarray(value + above)
    error = below if below is above else np.maximum(below, above)
    sides = None if below is above else (below, above)
    form = model.output
    again = model.through is not None or model.output_truncates or not covers(form, model.accumulation)
    if not again:
        if lower.min(initial=0.0) < -form.largest or upper.max(initial=0.0) > form.largest:
            lower = np.where(
                lower < -form.largest, -np.inf, np.where(lower > form.largest, round_to(lower, form), lower)
            )
            upper = np.where(
                upper > form.largest, np.inf, np.where(upper < -form.largest, round_to(upper, form), upper)
            )
        return Bound(error=error, lower=lower, upper=upper, width=error, overflow=overflow, cut=cut, sides=sides)
    ends = np.empty((2, *lower.shape))
    ends[0], ends[1] = lower, upper
    farthest = np.maximum(upper, -lower)
    last = spacing(farthest, form) * (1.0 if model.output_truncates else 0.5)
    if model.through is not None:
        last = last + spacing(farthest, model.through) * 0.5
        narrowed = round_to(ends, model.through)
        np.minimum(ends[0], narrowed[0], out=ends[0, ...])
        np.maximum(ends[1], narrowed[1], out=ends[1, ...])
    if model.output_truncates:
        lower, upper = _round_down(ends[0, ...], form), -_round_down(-ends[1, ...], form)
    else:
        ends = round_to(ends, form)
        lower, upper = ends[0, ...], ends[1, ...]
    return Bound(
        error=error,
        lower=lower,
        upper=upper,
        width=error + last,
        overflow=overflow,
        cut=cut,
        sides=None if sides is None else (sides[0] + last, sides[1] + last),
    )


def _round_down(values: Float64, form: BinaryFormat) -> Float64:
    """Round towards minus infinity; nothing becomes inf that is not beyond the largest finite number."""
    rounded = round_to(values, form)
    below = np.where(np.isinf(rounded), form.largest, rounded - spacing(values, form))
    return np.where(rounded > values, below, rounded)
