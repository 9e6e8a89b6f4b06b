r"""What a mode's operand format does to the operands of one call, each by itself.

The operands are known, and so is what rounding makes of them: an operand a is used as it is stored, as fl(a) to the
mode's format, or as 0 where a device may flush it. Where sources differ on the format's bits, or on what becomes of a
tie, every one of these counts. All lie in an interval [lo, hi], and any number in it is permitted, for each operand by
itself: arithmetic that is finer than asked conforms, and nothing says that all operands are treated alike.

With m the middles of these intervals and r their radii, every sum of products of such operands lies within

    F(m) +- (M(|m| + r) - M(|m|))

F being the operator's formula and M the same sum over absolute values: a product of c factors differs from that of the
middles by at most prod (|m_i| + r_i) - prod |m_i|, as its expansion shows, and sums add up (for c = 2 the midpoint and
radius arithmetic of Rump, *Fast and parallel interval arithmetic*, BIT 39, 1999). Both are what the oracle says, once
of the middles and once of the largest magnitudes |m| + r: F as its value, M as the magnitude of its `operand` terms.
Against a unit roundoff times M this knows where an operand lies between two numbers of the format, and on which side
rounding takes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from aclnn_cts.core.expected import Expected, ExpectedOutput, Float64, Oracle, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, round_to, rounded
from aclnn_cts.judge.gamma import ORACLE_ROUNDOFF, gamma
from aclnn_cts.judge.model import ComputeModel

__all__ = ["OperandFacts", "OperandSpan", "known_operands", "operand_facts"]

_TIE = 2.0**-40
"""A relative step far below any format's unit: it takes a tie to one side and moves nothing else."""
_STEPS = np.array([[1.0 + _TIE], [1.0 - _TIE]])


class OperandSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the exact value of one output lies, over all that its operands may be rounded to."""

    form: BinaryFormat | None
    """The mode's format that this holds for; None: flushing alone."""
    lower: Float64
    upper: Float64
    largest: ExpectedOutput
    """What the oracle says of the largest magnitudes that operands may have."""


class OperandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a mode's operand format does to the operands of one call, and to one of its outputs."""

    exact: bool
    """Whether the format holds every operand exactly (true without a mode)."""
    overflows: bool
    """Whether it takes a finite operand to inf."""
    span: OperandSpan | None = None
    """None where every operand is used as it is stored, or no operand of the output is rounded."""

    @property
    def matters(self) -> bool:
        """Whether rounding may change the output's exact value."""
        return not self.exact and self.span is not None and bool((self.span.lower < self.span.upper).any())

    def covers(self, model: ComputeModel) -> bool:
        """Whether the span was made for the model's operand format."""
        return self.span is not None and self.span.form == model.operand


_AS_STORED = OperandFacts(exact=True, overflows=False)


def operand_facts(tensors: Iterable[Float64], form: BinaryFormat | None) -> OperandFacts:
    """Look at all operands of a call (float64, widened exactly); `form` is what a mode rounds them to, if anything."""
    exact, overflows = True, False
    if form is None:
        return _AS_STORED
    for tensor in tensors:
        narrow = round_to(tensor, form)
        if not _same(narrow, tensor):
            exact = False
            overflows = overflows or bool((np.isinf(narrow) & np.isfinite(tensor)).any())
    return OperandFacts(exact=exact, overflows=overflows)


def known_operands(
    oracle: Oracle, question: OracleInput, expected: Expected, models: Mapping[str, ComputeModel]
) -> dict[str, OperandFacts]:
    """The facts for each output of a call, with the interval of its exact value where there is one.

    `expected` is what the oracle says of the question as it stands; it is asked twice more where operands change.
    """
    form = next((model.operand for model in models.values() if model.operand is not None), None)
    concerned = [
        name
        for name, model in models.items()
        if "operand" in [term.kind for term in expected[name].terms] and model.operand == form
    ]
    if form is None and not concerned:
        return dict.fromkeys(models, _AS_STORED)
    tensors = {name: array for name, array in question.tensors.items() if array.dtype == np.float64}
    # All operands in one array: they are small as a rule, and each step costs as much for one as for all.
    stored = np.concatenate([array.reshape(-1) for array in tensors.values()]) if tensors else np.zeros(0)
    facts = operand_facts((stored,), form)
    found = dict.fromkeys(models, facts)
    if not concerned:
        return found
    model = models[concerned[0]]
    with np.errstate(all="ignore"):
        interval = _interval(stored, model, rounds=not facts.exact)
        if interval is None:
            return found
        lower, upper = interval
        # Halves are added, so that the middle of two equal numbers is that number, whatever it is.
        middles = _apart(0.5 * lower + 0.5 * upper, tensors)
        largest = _apart(np.maximum(np.abs(lower), np.abs(upper)), tensors)
        between = oracle(msgspec.structs.replace(question, tensors={**question.tensors, **middles}, lattices={}))
        beyond = oracle(msgspec.structs.replace(question, tensors={**question.tensors, **largest}))
        for name in concerned:
            span = _span(between[name], beyond[name], form)
            found[name] = msgspec.structs.replace(facts, span=span)
    return found


def _apart(values: Float64, tensors: Mapping[str, Float64]) -> dict[str, Float64]:
    """What lies in one array, tensor after tensor, in their shapes."""
    found, start = {}, 0
    for name, array in tensors.items():
        found[name] = values[start : start + array.size].reshape(array.shape)
        start += array.size
    return found


def _interval(array: Float64, model: ComputeModel, *, rounds: bool) -> tuple[Float64, Float64] | None:
    """The least and the greatest that each operand may be used as; None where all are used as they are stored."""
    form = model.operand
    lower = upper = array
    if form is not None and rounds:
        for significand in range(form.significand, BINARY_FORMATS[form.name].significand + 1):
            width = binary_format(
                form.name,
                significand=significand,
                min_exponent=form.min_exponent,
                max_exponent=form.max_exponent,
            )
            both = rounded(_STEPS * array, width)
            if not math.isfinite(np.add.reduce(both, axis=None)):
                # What overflows leaves the output open (`OperandFacts.overflows`).
                both = np.where(np.isfinite(both), both, array)
            lower, upper = np.fmin(lower, np.fmin(*both)), np.fmax(upper, np.fmax(*both))
    if model.flushes_compute:
        small = np.abs(array) < (form or model.accumulation).smallest_normal
        if small.any():
            lower, upper = np.where(small, np.fmin(lower, 0.0), lower), np.where(small, np.fmax(upper, 0.0), upper)
    if lower is upper or _same(lower, upper):
        return None
    return lower, upper


def _same(left: Float64, right: Float64) -> bool:
    """Whether all elements are equal, nan to nan; without a look for nan where none can be."""
    equal = left == right
    return bool(np.logical_and.reduce(equal, axis=None) or np.array_equal(left, right, equal_nan=True))


def _span(between: ExpectedOutput, beyond: ExpectedOutput, form: BinaryFormat | None) -> OperandSpan:
    """The interval from both answers; what float64 rounds in them is part of it."""
    radius = np.zeros(between.value.shape)
    for middle, most in zip(between.terms, beyond.terms, strict=True):
        if middle.kind == "operand":
            radius = radius + np.maximum(most.magnitude - middle.magnitude, 0.0)
    # The value and both magnitudes are sums that float64 rounds as the terms of kind `compute` say.
    own = np.zeros(between.value.shape)
    for term in beyond.terms:
        if term.kind == "compute":
            own = own + 3.0 * gamma(term.count, ORACLE_ROUNDOFF) * term.magnitude
    radius = np.where(radius > 0.0, radius + own, radius)
    return OperandSpan(form=form, lower=between.value - radius, upper=between.value + radius, largest=beyond)
