"""One output against what conforms: which elements do, which do not, and how near the worst one comes.

The rules for what is not an ordinary number:

- Where the exact value is inf or nan, every permitted order of evaluation gives it: it must be there, with its sign.
- Where an intermediate may overflow (`Bound.overflow`), inf and nan conform beside the finite numbers within the bound,
  and the element counts as open when it holds one. So they do beside an inf that is required: a partial sum of finite
  terms that overflowed meets it as the other infinity in one order, and makes nan, and not in another. A nan stays nan.
- Where rounding to the output may overflow, the inf of that sign conforms; where it must, only that inf does.
- On arithmetic that saturates, elements with any of these three are open. So are, where intermediates may be
  truncated, those with one that may overflow: rounding toward zero makes the largest finite number of it (IEEE
  754-2019, section 7.4), which later terms go on from.
- The sign of a zero is not judged: no document states it, and an exact sum may be either zero.
- Subnormal results need no rule: the bound holds what flushing may do.
- Elements that the oracle leaves open are not looked at.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.verdict import Deviation, Fault
from aclnn_cts.judge.bound import Bound, bound, loosest
from aclnn_cts.judge.model import ComputeModel
from aclnn_cts.judge.operands import OperandFacts

__all__ = ["SHARE_EDGES", "Comparison", "compare", "figure", "histogram", "index_of", "shares"]

SHARE_EDGES: tuple[int, ...] = tuple(range(-12, 5))
"""Edges of `Deviation.histogram` as powers of two of the share, each the upper end of its bin: the first bin holds all
shares up to 2^-12, the last those above 2^4. Elements up to the edge 0 conform."""

_BINS = len(SHARE_EDGES) + 1
# Shares as integers: less one, so that a power of two falls into the bin that it ends; the exponent then counts bins.
_BIN_OFFSET = np.int64(-1 - ((1023 + SHARE_EDGES[0] - 1) << 52))
_TINY = 5e-324
_ABOVE_ONE = math.nextafter(1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What one output comes to: its figures, and the kind of fault (empty: none)."""

    deviation: Deviation
    kind: str = ""
    judged: int = 0
    """Elements on which something was decided."""


def compare(
    output: str,
    got: NDArray[Any],
    expected: ExpectedOutput,
    model: ComputeModel,
    *,
    operands: OperandFacts | None = None,
) -> Comparison:
    """Hold one output, in its storage dtype and logical shape, against the bound of its compute model.

    A fault is `Fault.SPECIAL` where the worst element is inf or nan and must not be, or must be and is not; else
    `Fault.VALUE`. Where the model is not a document's and the coarsest arithmetic in the promised formats
    (`bound.loosest`) explains all elements, it is `Fault.MODEL`: the model was exceeded, which may be the model's
    mistake.
    """
    if got.size == 0:
        return Comparison(deviation=Deviation(output=output, histogram=(0,) * _BINS))
    with np.errstate(all="ignore"):
        values = got.astype(np.float64)
        limits = bound(expected, model, operands=operands)
        if limits.lower is limits.upper and expected.open is None:
            comparison = _exactly(output, values, expected, limits)
        else:
            comparison = _within(output, values, expected, limits)
        if comparison is not None:
            return comparison
        return _carefully(output, values, expected, model, limits, operands)


def shares(
    got: NDArray[Any], expected: ExpectedOutput, model: ComputeModel, *, operands: OperandFacts | None = None
) -> tuple[Float64, NDArray[np.bool_]]:
    """The share of every element, above 1 where it is at fault, and which are judged. Arguments as of `compare`."""
    with np.errstate(all="ignore"):
        values = got.astype(np.float64)
        value = np.broadcast_to(expected.value, values.shape)
        elements = _sort(values, value, expected, model, bound(expected, model, operands=operands))
    return elements.share, ~elements.open


def _exactly(output: str, values: Float64, expected: ExpectedOutput, limits: Bound) -> Comparison | None:
    """The common case of exact data: all elements equal and finite. None: look closer."""
    if not np.logical_and.reduce(values == limits.lower, axis=None) or not math.isfinite(np.add.reduce(values, None)):
        return None
    size = values.size
    first = (0,) * values.ndim
    value = values.item(0)
    return Comparison(
        deviation=Deviation(
            output=output,
            index=first,
            got=value,
            expected=value,
            cancellation=_cancellation(expected, 0, value, values.shape),
            elements=size,
            histogram=(size, *(0,) * (_BINS - 1)),
        ),
        judged=size,
    )


def _within(output: str, values: Float64, expected: ExpectedOutput, limits: Bound) -> Comparison | None:
    """The common case: all elements finite and within their bounds. None: look closer."""
    value = expected.value
    inside = limits.lower <= values
    inside &= values <= limits.upper
    share = np.abs(values - value)
    width = limits.width_of(values, value)
    share /= np.maximum(width, _TINY)
    ignored = 0
    if expected.open is not None:
        inside |= expected.open
        share = np.where(expected.open, 0.0, share)
        ignored = int(np.count_nonzero(np.broadcast_to(expected.open, values.shape)))
    if not np.logical_and.reduce(inside, axis=None):
        return None
    worst = int(share.argmax())
    largest = share.item(worst)
    if not largest <= 1.0:  # nan: something is not finite
        return None
    exact = _at(value, worst, values.shape)
    return Comparison(
        deviation=Deviation(
            output=output,
            index=index_of(worst, values.shape),
            got=values.item(worst),
            expected=exact,
            bound=_at(width, worst, values.shape),
            share=largest,
            cancellation=_cancellation(expected, worst, exact, values.shape),
            elements=values.size,
            histogram=histogram(share, ignored),
            open=ignored,
        ),
        judged=values.size - ignored,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elements:
    """Every element sorted: conforming, at fault or open, and its share."""

    faulty: NDArray[np.bool_]
    special: NDArray[np.bool_]
    open: NDArray[np.bool_]
    share: Float64


def _carefully(
    output: str,
    values: Float64,
    expected: ExpectedOutput,
    model: ComputeModel,
    limits: Bound,
    operands: OperandFacts | None,
) -> Comparison:
    shape = values.shape
    value = np.broadcast_to(expected.value, shape)
    elements = _sort(values, value, expected, model, limits)
    worst = int(elements.share.argmax())
    ignored = int(np.count_nonzero(elements.open))
    exact = value.item(worst)
    deviation = Deviation(
        output=output,
        index=index_of(worst, shape),
        got=figure(values.item(worst)),
        expected=figure(exact),
        bound=0.0 if not math.isfinite(exact) else _at(limits.width_of(values, value), worst, shape),
        share=elements.share.item(worst),
        cancellation=_cancellation(expected, worst, exact, shape),
        beyond=int(np.count_nonzero(elements.faulty)),
        elements=values.size,
        histogram=histogram(elements.share, ignored),
        open=ignored,
    )
    kind = ""
    if deviation.beyond:
        kind = _kind(elements)
        if model.basis != "document":
            coarse = loosest(model)
            ends = dataclasses.replace(bound(expected, coarse, operands=operands), cut=limits.cut)
            left = _sort(values, value, expected, coarse, ends)
            kind = _kind(left) if left.faulty.any() else Fault.MODEL
    return Comparison(deviation=deviation, kind=kind, judged=values.size - ignored)


def _sort(values: Float64, value: Float64, expected: ExpectedOutput, model: ComputeModel, limits: Bound) -> _Elements:
    lower, upper = limits.lower, limits.upper
    finite, required = np.isfinite(values), ~np.isfinite(value)
    inside = np.where(
        required, (values == value) | (np.isnan(values) & np.isnan(value)), (lower <= values) & (values <= upper)
    )
    is_open = np.zeros(values.shape, dtype=np.bool_)
    if expected.open is not None:
        is_open |= expected.open
    may_overflow = limits.overflow & ~required
    if required.any() and expected.partial is not None:
        may_overflow |= limits.overflow & np.isinf(value) & np.isfinite(expected.partial)
    is_open |= may_overflow & ~finite
    is_open |= limits.cut & ~required
    if model.saturates:
        is_open |= required | may_overflow | (np.isinf(lower) | np.isinf(upper))
    error = np.asarray(limits.error)
    if (np.isnan(error) & ~required & ~is_open).any():
        raise ValueError(
            "an error term is nan where the expected value is finite; the oracle must leave such elements open"
        )
    faulty = ~inside & ~is_open
    special = faulty & (~finite | required)
    width = limits.width_of(values, value)
    share = np.abs(values - value) / np.maximum(width, _TINY)
    share = np.where(faulty, np.maximum(share, _ABOVE_ONE), np.minimum(share, 1.0))
    without = np.broadcast_to(width == 0.0, values.shape)
    share[without & ~faulty] = 0.0
    share[special | (without & faulty)] = np.inf
    share[is_open | (~faulty & ~finite)] = 0.0
    return _Elements(faulty=faulty, special=special, open=is_open, share=share)


def _kind(elements: _Elements) -> str:
    return Fault.SPECIAL if elements.special.any() else Fault.VALUE


def histogram(share: Float64, ignored: int) -> tuple[int, ...]:
    """Counts by bin; open elements have the share 0 and are taken out of the first bin."""
    bins = share.reshape(-1).view(np.int64) + _BIN_OFFSET
    bins >>= 52
    np.maximum(bins, 0, out=bins)
    np.minimum(bins, _BINS - 1, out=bins)
    counts: list[int] = np.bincount(bins, minlength=_BINS).tolist()
    counts[0] -= ignored
    return tuple(counts)


def _cancellation(expected: ExpectedOutput, position: int, exact: float, shape: tuple[int, ...]) -> float:
    """The largest magnitude among the terms over the value that they leave; at least 1, inf where nothing is left."""
    magnitude = abs(exact)
    for term in expected.terms:
        magnitude = max(magnitude, _at(term.magnitude, position, shape))
    if magnitude == 0.0 or not math.isfinite(magnitude):
        return 1.0
    return magnitude / abs(exact) if exact else math.inf


def _at(array: Float64 | float, position: int, shape: tuple[int, ...]) -> float:
    """One element, by its row-major position in `shape`, of an array that broadcasts to it."""
    if isinstance(array, float):
        return array
    if array.shape == shape:
        return float(array.item(position))
    own = array.shape
    index = index_of(position, shape)[len(shape) - len(own) :]
    return float(array[tuple(place if size > 1 else 0 for place, size in zip(index, own, strict=True))])


def index_of(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element by its place in row-major order."""
    index = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.append(place)
    return tuple(reversed(index))


def figure(value: float) -> float | str:
    """A float, or the word that JSON has none for."""
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
