"""One output, or several small ones, against what conforms: the rules for ordinary elements, and those for all."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outside import number_or_word
from aclnn_cts.core.rounding import numeric, widen
from aclnn_cts.core.verdict import Deviation
from aclnn_cts.judgement.bound import (
    TINY,
    Margins,
    OutputElements,
    bound,
    classify_elements,
    coarsen_expected,
    ends,
    likely_margins,
    loosest_model,
)
from aclnn_cts.judgement.figures import BINS, bins, cancellation, element, histogram, index_of
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts

_TINY_BITS = np.array(TINY).view(np.int64)[()]


class ComparedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One output to be compared: what came back, in its storage dtype and logical shape, and what it is held to."""

    output: str
    got: NDArray[Any]
    expected: ExpectedOutput
    model: ComputeModel
    operands: OperandFacts | None = None
    in_parts: bool = False
    """Whether it is the real view of a complex output, with re and im in the last dimension."""


class OutputComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one output comes to: its figures, and the kind of fault (empty: none)."""

    deviation: Deviation
    kind: str = ""
    judged: int = 0
    """Elements on which something was decided."""
    elements: OutputElements | None = None
    """Every element, where the output was no ordinary one."""


@dataclass(slots=True)
class Pending:
    """An output that is still to be compared."""

    item: ComparedOutput
    margins: Margins
    found: OutputComparison | None = None


def comparison_group(entry: Pending) -> tuple[int, ...]:
    """What outputs must have in common for their ends to be found together: all that `ends` reads of a model."""
    model, known = entry.item.model, entry.margins
    formats = id(model.output), id(model.accumulation), id(model.through)
    return *formats, model.output_truncates, known.below is known.above


def _runs(part: Iterable[Pending]) -> Iterator[tuple[Sequence[Pending], slice]]:
    """The outputs of a part by their ways, and where their elements lie in it."""
    start = 0
    for _, alike in itertools.groupby(part, comparison_group):
        run = list(alike)
        stop = start + sum(entry.item.got.size for entry in run)
        yield run, slice(start, stop)
        start = stop


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Flat arrays one after another; a single one as it is."""
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]


def _joined(arrays: Sequence[NDArray[Any] | float | None], part: Sequence[Pending]) -> Float64:
    """Arrays that broadcast to the outputs of a part, flat and one after another; None is zeros."""
    rows: list[NDArray[Any]] = []
    for array, entry in zip(arrays, part, strict=True):
        shape = entry.item.got.shape
        if not isinstance(array, np.ndarray) or array.shape != shape:
            whole = np.empty(shape)
            whole[...] = 0.0 if array is None else array
            array = whole  # noqa: PLW2901 - the same, in full
        rows.append(array.reshape(-1))
    return _concatenated(rows)


def _sizes(part: Sequence[Pending]) -> tuple[list[int], NDArray[np.intp]]:
    """How many elements each output of a part has, and at which its own start."""
    sizes = [entry.item.got.size for entry in part]
    starts = np.zeros(len(sizes), np.intp)
    if len(sizes) > 1:
        np.cumsum(sizes[:-1], out=starts[1:])
    return sizes, starts


def _values(part: Sequence[Pending]) -> Float64:
    if len(part) == 1:
        return widen(part[0].item.got.reshape(-1))
    # Of several storage dtypes, among which NumPy would look for a common one.
    arrays = [numeric(entry.item.got.reshape(-1)) for entry in part]
    return np.concatenate(arrays, dtype=np.float64, casting="unsafe")


def settle_exact(part: Sequence[Pending]) -> None:
    """The common case of exact data, where one output alone conforms: all elements equal and finite."""
    values = _values(part)
    exact = _joined([entry.item.expected.value for entry in part], part)
    only = _concatenated(
        [ends(exact[place], run[0].item.model, below=None, above=None).lower for run, place in _runs(part)]
    )
    same = (values == only) & np.isfinite(values)
    sizes, starts = _sizes(part)
    right = np.logical_and.reduceat(same, starts).tolist()
    first = values[starts].tolist()
    for entry, size, every, value in zip(part, sizes, right, first, strict=True):
        if every:
            item = entry.item
            shape = item.got.shape
            entry.found = OutputComparison(
                deviation=Deviation(
                    output=item.output,
                    index=(0,) * len(shape),
                    got=value,
                    expected=value,
                    cancellation=cancellation(item.expected, 0, value, shape),
                    elements=size,
                    histogram=(size, *(0,) * (BINS - 1)),
                ),
                judged=size,
            )


def settle_within(part: Sequence[Pending]) -> None:
    """The common case of all others: all elements finite and within their bounds."""
    values = _values(part)
    exact = _joined([entry.item.expected.value for entry in part], part)
    lower, upper, width = _limits(part, values, exact)
    inside = lower <= values
    inside &= values <= upper
    error_ratio = np.subtract(values, exact)
    np.abs(error_ratio, out=error_ratio)
    error_ratio /= _at_least_tiny(width)
    ignored = [0] * len(part)
    sizes, starts = _sizes(part)
    if any(entry.item.expected.open is not None for entry in part):
        unsaid = _joined([entry.item.expected.open for entry in part], part).astype(np.bool_)
        inside |= unsaid
        error_ratio = np.where(unsaid, 0.0, error_ratio)
        ignored = np.add.reduceat(unsaid, starts, dtype=np.int64).tolist()
    first = int(error_ratio.argmax()) if len(part) == 1 else 0
    largest = error_ratio[first : first + 1] if len(part) == 1 else np.maximum.reduceat(error_ratio, starts)
    # nan, which is not at most 1: something is not finite.
    conforming = (np.logical_and.reduceat(inside, starts) & (largest <= 1.0)).tolist()
    if not any(conforming):
        return
    placed, worst = bins(error_ratio), np.array([first])
    if len(part) > 1:
        whose = np.repeat(np.arange(len(part)), sizes)
        placed += whose * BINS
        hits = np.flatnonzero(error_ratio == largest[whose])
        worst = hits[np.minimum(np.searchsorted(hits, starts), max(hits.size - 1, 0))]
    counts = np.bincount(placed, minlength=len(part) * BINS).reshape(-1, BINS).tolist()
    places = zip(
        (worst - starts).tolist(),
        values[worst].tolist(),
        exact[worst].tolist(),
        width[worst].tolist(),
        largest.tolist(),
        strict=True,
    )
    for entry, size, right, count, left, (place, got, expected, bounded, most) in zip(
        part, sizes, conforming, counts, ignored, places, strict=True
    ):
        if right:
            item = entry.item
            shape = item.got.shape
            count[0] -= left
            entry.found = OutputComparison(
                deviation=Deviation(
                    output=item.output,
                    index=index_of(place, shape),
                    got=got,
                    expected=expected,
                    bound=bounded,
                    error_ratio=most,
                    cancellation=cancellation(item.expected, place, expected, shape),
                    elements=size,
                    histogram=tuple(count),
                    open=left,
                ),
                judged=size - left,
            )


def _at_least_tiny(width: Float64) -> Float64:
    """Widths, of which none is negative, and `TINY` where they are less: by bits, which is several times as fast."""
    bits: NDArray[np.int64] = np.maximum(np.ascontiguousarray(width).view(np.int64), _TINY_BITS)
    return bits.view(np.float64)


def _limits(part: Sequence[Pending], values: Float64, exact: Float64) -> tuple[Float64, Float64, Float64]:
    """The least and the greatest result that conform, and the width on the side of each result."""
    limits: list[tuple[Float64, Float64, Float64]] = []
    for run, place in _runs(part):
        known = run[0].margins
        below = _joined([entry.margins.below for entry in run], run)
        above = below if known.below is known.above else _joined([entry.margins.above for entry in run], run)
        found = ends(exact[place], run[0].item.model, below=below, above=above)
        limits.append((found.lower, found.upper, np.asarray(found.width_of(values[place], exact[place]))))
    lower, upper, width = (_concatenated(arrays) for arrays in zip(*limits, strict=True))
    return lower, upper, width


def _beyond_any(item: ComparedOutput, values: Float64, value: Float64, *, cut: NDArray[np.bool_] | bool) -> str:
    """The fault that is left in the coarsest arithmetic of the promised formats; empty: all errors fit it."""
    coarse = loosest_model(item.model)
    expected = coarsen_expected(item.expected, coarse)
    known = likely_margins(expected, coarse, operands=item.operands)
    around = ends(value, coarse, below=known.below, above=known.above)
    if np.logical_and.reduce((around.lower <= values) & (values <= around.upper), axis=None):
        return ""  # neither inf nor nan was asked for, or is there where it must not be
    limits = dataclasses.replace(bound(expected, coarse, operands=item.operands, known=known), cut=cut)
    left = classify_elements(values, value, expected, coarse, limits)
    return left.kind if left.faulty.any() else ""


def compare_carefully(item: ComparedOutput, known: Margins) -> OutputComparison:
    """One output by all rules, whatever its elements are."""
    values, expected, model = widen(item.got), item.expected, item.model
    shape = values.shape
    value = np.broadcast_to(expected.value, shape)
    limits = bound(expected, model, operands=item.operands, known=known)
    elements = classify_elements(values, value, expected, model, limits)
    worst = int(elements.error_ratio.argmax())
    ignored = int(np.count_nonzero(elements.open))
    exact = value.item(worst)
    deviation = Deviation(
        output=item.output,
        index=index_of(worst, shape),
        got=number_or_word(values.item(worst)),
        expected=number_or_word(exact),
        bound=0.0 if not math.isfinite(exact) else element(limits.ends.width_of(values, value), worst, shape),
        error_ratio=elements.error_ratio.item(worst),
        cancellation=cancellation(expected, worst, exact, shape),
        beyond=int(np.count_nonzero(elements.faulty)),
        elements=values.size,
        histogram=histogram(elements.error_ratio, ignored),
        open=ignored,
    )
    kind = ""
    if deviation.beyond:
        kind = elements.kind
        if model.basis != "document":
            kind = _beyond_any(item, values, value, cut=limits.cut) or Fault.MODEL
    return OutputComparison(deviation=deviation, kind=kind, judged=values.size - ignored, elements=elements)
