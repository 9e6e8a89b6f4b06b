r"""What a mode's operand format does to the operands of one call, each by itself.

The operands are known, and so is what rounding makes of them: an operand a is used as it is stored, as fl(a) to the
mode's format, or as 0 where a device may flush it. Where sources differ on the format's bits, or on what becomes of a
tie, every one of these counts. All lie in an interval [lo, hi], and any number in it is permitted, for each operand by
itself: arithmetic that is finer than asked conforms, and nothing says that all operands are treated alike.

The oracle is asked twice: of the operands as they are stored, and of the middles of these intervals with their radii
(`OracleInput.radii`), whose error counts what the radii do. The interval of the exact value lies around the second
value, by as much as the second error is larger than the first. Against a unit roundoff this knows where an operand lies
between two numbers of the format, and on which side rounding takes it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Expected, ExpectedOutput, Float64, Oracle, OracleInput
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, rounded
from aclnn_cts.judgement.model import ComputeModel

_TIE = 2.0**-40
"""A relative step far below any format's unit: it takes a tie to one side and moves nothing else."""
_STEPS = np.array([[1.0 + _TIE], [1.0 - _TIE]])


class OperandSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the exact value of one output lies, over all that its operands may be rounded to."""

    form: BinaryFormat
    """The mode's format that this holds for."""
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


class OperandRule(NamedTuple):
    """What compute models let become of operands; many have the same."""

    form: BinaryFormat
    """What operands may be rounded to."""
    flushed_below: float
    """The smallest normal number of the format that they are used in, where a device may flush; else 0."""


class OperandValues(msgspec.Struct, frozen=True, kw_only=True):
    """What the operands of one call may be used as, by a rule."""

    rule: OperandRule
    facts: OperandFacts
    """Without a span, which is an output's own."""
    middles: Mapping[str, Float64] | None = None
    """Of each operand's interval, by tensor; None: every operand is used as it is stored."""
    largest: Mapping[str, Float64] | None = None
    """The largest magnitudes."""

    def in_doubt(self, stored: OracleInput) -> OracleInput | None:
        """What else the oracle is asked where operands change: of intervals."""
        if self.middles is None or self.largest is None:
            return None
        with np.errstate(invalid="ignore"):
            radii = {
                name: np.where(np.isfinite(middle), self.largest[name] - np.abs(middle), 0.0)
                for name, middle in self.middles.items()
            }
        # An operand that nothing changes is as exact as it was.
        radii = {name: radius for name, radius in radii.items() if radius.any()}
        return msgspec.structs.replace(
            stored,
            tensors={**stored.tensors, **{name: self.middles[name] for name in radii}},
            lattices={name: step for name, step in stored.lattices.items() if name not in radii},
            radii=radii,
        )


def operand_rule(models: Iterable[ComputeModel]) -> OperandRule | None:
    """What a call's models let become of operands: the first that rounds them; None where none does."""
    for model in models:
        if model.operand is not None:
            return OperandRule(model.operand, model.operand.smallest_normal if model.flushes_compute else 0.0)
    return None


def known_operands(
    oracle: Oracle,
    question: OracleInput,
    models: Mapping[str, ComputeModel],
    *,
    values: OperandValues | None = None,
) -> tuple[Expected, dict[str, OperandFacts]]:
    """What the oracle says of a question, and the facts for each output, with the interval of its exact value.

    `values` is what `operand_values` says of the question by the models' rule, where the caller has it.
    """
    stored = oracle(question)
    rule = operand_rule(models.values())
    if rule is None:
        return stored, dict.fromkeys(models, _AS_STORED)
    if values is None:
        [values] = operand_values([question], rule)
    found = dict.fromkeys(models, values.facts)
    doubted = values.in_doubt(question)
    if doubted is None:
        return stored, found
    between = oracle(doubted)
    expected = dict(stored)
    for name, model in models.items():
        if model.operand != rule.form:
            continue
        exact, middle = stored[name], between[name]
        whole = np.asarray(middle.error)
        radius = np.maximum(whole - exact.error, 0.0)
        span = OperandSpan(
            form=rule.form,
            lower=middle.value - radius,
            upper=middle.value + radius,
            largest=msgspec.structs.replace(middle, error=whole - radius),
        )
        found[name] = msgspec.structs.replace(values.facts, span=span)
        if middle.open is not None:
            unsaid = middle.open if exact.open is None else middle.open | exact.open
            expected[name] = msgspec.structs.replace(exact, open=unsaid)
    return expected, found


def operand_values(questions: Sequence[OracleInput], rule: OperandRule) -> list[OperandValues]:
    """What the operands of calls (float64, widened exactly) may be used as by a rule, looked at all together."""
    found = [OperandValues(rule=rule, facts=_AS_STORED)] * len(questions)
    calls = [call for place, question in enumerate(questions) if (call := _operands_of(place, question)).size]
    if not calls:
        return found
    with np.errstate(all="ignore"):
        stored, starts = _one_after_another(calls)
        narrow = rounded(stored, rule.form)
        changes = ~np.logical_and.reduceat((narrow == stored) | np.isnan(stored), starts)
        overflows = np.logical_or.reduceat(np.isinf(narrow) & np.isfinite(stored), starts)
        for call, inexact, beyond in zip(calls, changes.tolist(), overflows.tolist(), strict=True):
            if inexact:
                facts = OperandFacts(exact=False, overflows=beyond)
                found[call.place] = OperandValues(rule=rule, facts=facts)
        if rule.flushed_below:
            changes |= np.logical_or.reduceat(_may_be_flushed(stored, rule), starts)
        _look_closer(list(itertools.compress(calls, changes.tolist())), rule, found)
    return found


def _look_closer(calls: Sequence[_Call], rule: OperandRule, found: list[OperandValues]) -> None:
    """Put into their places what the operands of calls may be used as, of which one changes or may be flushed."""
    if not calls:
        return
    stored, starts = _one_after_another(calls)
    lower, upper = _interval(stored, rule)
    # Halves are added, so that the middle of two equal numbers is that number, whatever it is.
    middles, largest = 0.5 * lower + 0.5 * upper, np.maximum(np.abs(lower), np.abs(upper))
    changes = np.logical_or.reduceat(lower < upper, starts)
    for call, start in itertools.compress(zip(calls, starts.tolist(), strict=True), changes.tolist()):
        found[call.place] = msgspec.structs.replace(
            found[call.place],
            middles=_apart(middles[start:], call.tensors),
            largest=_apart(largest[start:], call.tensors),
        )


class _Call(NamedTuple):
    """The floating tensors of a call, among those that are looked at together."""

    place: int
    tensors: Mapping[str, Float64]
    size: int
    """Elements of all of them."""


def _operands_of(place: int, question: OracleInput) -> _Call:
    tensors = {name: array for name, array in question.tensors.items() if array.dtype == np.float64}
    return _Call(place, tensors, sum(array.size for array in tensors.values()))


def _one_after_another(calls: Sequence[_Call]) -> tuple[Float64, NDArray[np.intp]]:
    """All elements of calls in one array, and where those of each start in it."""
    stored = np.concatenate([array.reshape(-1) for call in calls for array in call.tensors.values()])
    return stored, np.cumsum([0, *(call.size for call in calls[:-1])])


def _apart(values: Float64, tensors: Mapping[str, Float64]) -> dict[str, Float64]:
    """What lies in one array, tensor after tensor, in their shapes."""
    found, start = {}, 0
    for name, array in tensors.items():
        found[name] = values[start : start + array.size].reshape(array.shape)
        start += array.size
    return found


def _interval(array: Float64, rule: OperandRule) -> tuple[Float64, Float64]:
    """The least and the greatest that each operand may be used as; one that the format holds stays what it is."""
    form = rule.form
    lower = upper = array
    for significand in range(form.significand, BINARY_FORMATS[form.name].significand + 1):
        width = binary_format(
            form.name, significand=significand, min_exponent=form.min_exponent, max_exponent=form.max_exponent
        )
        both = rounded(_STEPS * array, width)
        if not math.isfinite(np.add.reduce(both, axis=None)):
            # What overflows leaves the output open (`OperandFacts.overflows`).
            both = np.where(np.isfinite(both), both, array)
        lower, upper = np.fmin(lower, np.fmin(*both)), np.fmax(upper, np.fmax(*both))
    if rule.flushed_below:
        small = _may_be_flushed(array, rule)
        lower, upper = np.where(small, np.fmin(lower, 0.0), lower), np.where(small, np.fmax(upper, 0.0), upper)
    return lower, upper


def _may_be_flushed(array: Float64, rule: OperandRule) -> NDArray[np.bool_]:
    """Which operands are no zeros, and below the normal range."""
    found: NDArray[np.bool_] = (np.abs(array) < rule.flushed_below) & (array != 0.0)
    return found
