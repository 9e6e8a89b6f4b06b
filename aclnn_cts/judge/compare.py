"""Outputs against what conforms: which elements do, which do not, and how near the worst one comes.

Ordinary outputs, finite and within their bounds, are most of them, and small ones are looked at together: a step of
NumPy costs as much for one of them as for all. What is not ordinary goes through the rules of `judge.elements` alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ExpectedOutput, Float64
from aclnn_cts.core.verdict import Deviation, Fault
from aclnn_cts.judge.bound import Margins, bound, ends, loosest, margins
from aclnn_cts.judge.elements import TINY, Elements, sort
from aclnn_cts.judge.figures import BINS, bins, cancellation, element, figure, histogram, index_of
from aclnn_cts.judge.model import ComputeModel
from aclnn_cts.judge.operands import OperandFacts

__all__ = ["Compared", "Comparison", "compare", "compare_all"]

_TOGETHER = 1 << 16
"""Elements that are looked at together; an output of more is by itself."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One output to be compared: what came back, in its storage dtype and logical shape, and what it is held to."""

    output: str
    got: NDArray[Any]
    expected: ExpectedOutput
    model: ComputeModel
    operands: OperandFacts | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one output comes to: its figures, and the kind of fault (empty: none)."""

    deviation: Deviation
    kind: str = ""
    judged: int = 0
    """Elements on which something was decided."""
    elements: Elements | None = None
    """Every element, where the output was no ordinary one."""


def compare(
    output: str,
    got: NDArray[Any],
    expected: ExpectedOutput,
    model: ComputeModel,
    *,
    operands: OperandFacts | None = None,
) -> Comparison:
    """Hold one output against the bound of its compute model.

    A fault is `Fault.SPECIAL` where the worst element is inf or nan and must not be, or must be and is not; else
    `Fault.VALUE`. Where the model is not a document's and the coarsest arithmetic in the promised formats
    (`bound.loosest`) explains all elements, it is `Fault.MODEL`: the model was exceeded, which may be the model's
    mistake.
    """
    return compare_all(
        [Compared(output=output, got=got, expected=expected, model=model, operands=operands)],
    )[0]


@dataclass(slots=True)
class _Open:
    """An output that is still to be compared."""

    item: Compared
    margins: Margins
    found: Comparison | None = None


def compare_all(items: Sequence[Compared]) -> list[Comparison]:
    """What `compare` says of each."""
    with np.errstate(all="ignore"):
        opened = [_Open(item, margins(item.expected, item.model, operands=item.operands)) for item in items]
        groups: dict[tuple[int, bool, bool], list[_Open]] = {}
        for entry in opened:
            item, known = entry.item, entry.margins
            if not item.got.size:
                entry.found = Comparison(deviation=Deviation(output=item.output, histogram=(0,) * BINS))
                continue
            single = known.below is None and item.model.through is None and not item.model.output_truncates
            if not single or item.expected.open is None:
                key = (id(item.model), single, known.below is known.above)
                groups.setdefault(key, []).append(entry)
        for (_, single, _), group in groups.items():
            for part in _parts(group):
                (_exactly if single else _within)(part)
        return [entry.found or _carefully(entry.item, entry.margins) for entry in opened]


def _parts(group: Sequence[_Open]) -> Iterator[Sequence[_Open]]:
    """Neighbours that are few enough to be looked at together."""
    part: list[_Open] = []
    size = 0
    for entry in group:
        if part and size + entry.item.got.size > _TOGETHER:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.item.got.size
    if part:
        yield part


def _joined(arrays: Sequence[NDArray[Any] | float | None], part: Sequence[_Open]) -> Float64:
    """Arrays that broadcast to the outputs of a part, flat and one after another; None is zeros."""
    rows: list[NDArray[Any]] = []
    for array, entry in zip(arrays, part, strict=True):
        shape = entry.item.got.shape
        if not isinstance(array, np.ndarray) or array.shape != shape:
            whole = np.empty(shape)
            whole[...] = 0.0 if array is None else array
            array = whole  # noqa: PLW2901 - the same, in full
        rows.append(array.reshape(-1))
    return np.concatenate(rows) if len(rows) > 1 else rows[0]


def _sizes(part: Sequence[_Open]) -> tuple[list[int], NDArray[np.intp]]:
    """How many elements each output of a part has, and at which its own start."""
    sizes = [entry.item.got.size for entry in part]
    starts = np.zeros(len(sizes), np.intp)
    np.cumsum(sizes[:-1], out=starts[1:])
    return sizes, starts


def _values(part: Sequence[_Open]) -> Float64:
    rows = [entry.item.got.reshape(-1) for entry in part]
    return (np.concatenate(rows) if len(rows) > 1 else rows[0]).astype(np.float64)


def _exactly(part: Sequence[_Open]) -> None:
    """The common case of exact data, where one output alone conforms: all elements equal and finite."""
    values = _values(part)
    exact = _joined([entry.item.expected.value for entry in part], part)
    only = ends(exact, part[0].item.model, below=None, above=None).lower
    same = (values == only) & np.isfinite(values)
    sizes, starts = _sizes(part)
    right = np.logical_and.reduceat(same, starts).tolist()
    first = values[starts].tolist()
    for entry, size, every, value in zip(part, sizes, right, first, strict=True):
        if every:
            item = entry.item
            shape = item.got.shape
            entry.found = Comparison(
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


def _within(part: Sequence[_Open]) -> None:
    """The common case of all others: all elements finite and within their bounds."""
    values = _values(part)
    exact = _joined([entry.item.expected.value for entry in part], part)
    below = _joined([entry.margins.below for entry in part], part)
    same = part[0].margins.below is part[0].margins.above
    above = below if same else _joined([entry.margins.above for entry in part], part)
    limits = ends(exact, part[0].item.model, below=below, above=above)
    inside = limits.lower <= values
    inside &= values <= limits.upper
    width = np.asarray(limits.width_of(values, exact))
    share = np.abs(values - exact)
    share /= np.maximum(width, TINY)
    ignored = [0] * len(part)
    sizes, starts = _sizes(part)
    if any(entry.item.expected.open is not None for entry in part):
        unsaid = _joined([entry.item.expected.open for entry in part], part).astype(np.bool_)
        inside |= unsaid
        share = np.where(unsaid, 0.0, share)
        ignored = np.add.reduceat(unsaid, starts, dtype=np.int64).tolist()
    largest = np.maximum.reduceat(share, starts)
    # nan, which is not at most 1: something is not finite.
    conforming = (np.logical_and.reduceat(inside, starts) & (largest <= 1.0)).tolist()
    if not any(conforming):
        return
    whose = np.repeat(np.arange(len(part)), sizes)
    counts = np.bincount(bins(share) + whose * BINS, minlength=len(part) * BINS).reshape(-1, BINS).tolist()
    hits = np.flatnonzero(share == largest[whose])
    worst = hits[np.minimum(np.searchsorted(hits, starts), max(hits.size - 1, 0))]
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
            entry.found = Comparison(
                deviation=Deviation(
                    output=item.output,
                    index=index_of(place, shape),
                    got=got,
                    expected=expected,
                    bound=bounded,
                    share=most,
                    cancellation=cancellation(item.expected, place, expected, shape),
                    elements=size,
                    histogram=tuple(count),
                    open=left,
                ),
                judged=size - left,
            )


def _beyond_any(item: Compared, values: Float64, value: Float64, *, cut: NDArray[np.bool_] | bool) -> str:
    """The fault that is left in the coarsest arithmetic of the promised formats; empty: it explains all elements."""
    expected, coarse = item.expected, loosest(item.model)
    known = margins(expected, coarse, operands=item.operands)
    around = ends(value, coarse, below=known.below, above=known.above)
    if np.logical_and.reduce((around.lower <= values) & (values <= around.upper), axis=None):
        return ""  # neither inf nor nan was asked for, or is there where it must not be
    limits = dataclasses.replace(bound(expected, coarse, operands=item.operands, known=known), cut=cut)
    left = sort(values, value, expected, coarse, limits)
    return left.kind if left.faulty.any() else ""


def _carefully(item: Compared, known: Margins) -> Comparison:
    values, expected, model = item.got.astype(np.float64), item.expected, item.model
    shape = values.shape
    value = np.broadcast_to(expected.value, shape)
    limits = bound(expected, model, operands=item.operands, known=known)
    elements = sort(values, value, expected, model, limits)
    worst = int(elements.share.argmax())
    ignored = int(np.count_nonzero(elements.open))
    exact = value.item(worst)
    deviation = Deviation(
        output=item.output,
        index=index_of(worst, shape),
        got=figure(values.item(worst)),
        expected=figure(exact),
        bound=0.0 if not math.isfinite(exact) else element(limits.ends.width_of(values, value), worst, shape),
        share=elements.share.item(worst),
        cancellation=cancellation(expected, worst, exact, shape),
        beyond=int(np.count_nonzero(elements.faulty)),
        elements=values.size,
        histogram=histogram(elements.share, ignored),
        open=ignored,
    )
    kind = ""
    if deviation.beyond:
        kind = elements.kind
        if model.basis != "document":
            kind = _beyond_any(item, values, value, cut=limits.cut) or Fault.MODEL
    return Comparison(deviation=deviation, kind=kind, judged=values.size - ignored, elements=elements)
