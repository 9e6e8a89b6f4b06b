"""Outputs against what conforms: which elements do, which do not, and how near the worst one comes.

Ordinary outputs, finite and within their bounds, are most of them, and small ones are looked at together: a step of
NumPy costs as much for one of them as for all. What is not ordinary goes through the rules of `_carefully`
alone.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Expected, ExpectedOutput, Float64
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outside import spelled
from aclnn_cts.core.rounding import blocks, is_large, numeric, widen
from aclnn_cts.core.verdict import Deviation
from aclnn_cts.judgement.bound import (
    TINY,
    Elements,
    Margins,
    bound,
    coarsened,
    ends,
    likely_margins,
    loosest,
    margins,
    sort,
)
from aclnn_cts.judgement.figures import BINS, bins, cancellation, element, histogram, index_of
from aclnn_cts.judgement.model import ComputeModel
from aclnn_cts.judgement.operands import OperandFacts

_TINY_BITS = np.array(TINY).view(np.int64)[()]
_TOGETHER = 1 << 13
"""Elements that are looked at together: what that takes stays in a processor's cache. An output of more is by itself.
"""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One output to be compared: what came back, in its storage dtype and logical shape, and what it is held to."""

    output: str
    got: NDArray[Any]
    expected: ExpectedOutput
    model: ComputeModel
    operands: OperandFacts | None = None
    in_parts: bool = False
    """Whether it is the real view of a complex output, with re and im in the last dimension."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one output comes to: its figures, and the kind of fault (empty: none)."""

    deviation: Deviation
    kind: str = ""
    judged: int = 0
    """Elements on which something was decided."""
    elements: Elements | None = None
    """Every element, where the output was no ordinary one."""


@dataclass(slots=True)
class _Open:
    """An output that is still to be compared."""

    item: Compared
    margins: Margins
    found: Comparison | None = None


def compare_all(items: Sequence[Compared]) -> list[Comparison]:
    """Hold each output against the bound of its compute model.

    A fault is `Fault.SPECIAL` where the worst element is inf or nan and must not be, or must be and is not; else
    `Fault.VALUE`. Where the model is not a document's, and all errors have the size that they have in the coarsest
    arithmetic of the promised formats (`bound.loosest`, `bound.likely_margins`), it is `Fault.MODEL`: the model was
    exceeded, which may be the model's mistake.
    """
    with np.errstate(all="ignore"):
        found = [_in_blocks(item) if is_large(item.got.size) else None for item in items]
        opened = [
            _Open(item, margins(item.expected, item.model, operands=item.operands))
            for item, known in zip(items, found, strict=True)
            if known is None
        ]
        single: list[_Open] = []
        others: list[_Open] = []
        for entry in opened:
            item, known = entry.item, entry.margins
            if not item.got.size:
                entry.found = Comparison(deviation=Deviation(output=item.output, histogram=(0,) * BINS))
            elif known.below is not None or item.model.through is not None or item.model.output_truncates:
                others.append(entry)
            elif item.expected.open is None:
                single.append(entry)
        for part in _parts(single):
            _exactly(part)
        for part in _parts(others):
            _within(part)
        rest = (entry.found or _carefully(entry.item, entry.margins) for entry in opened)
        settled = [known or next(rest) for known in found]
    return [
        msgspec.structs.replace(known, deviation=known.deviation.in_parts()) if item.in_parts else known
        for item, known in zip(items, settled, strict=True)
    ]


def compare_blocks(
    got: Mapping[str, NDArray[Any]],
    models: Mapping[str, ComputeModel],
    ask: Callable[[], Iterable[tuple[slice, Expected] | None]],
    *,
    ordinary: bool,
) -> tuple[dict[str, Comparison], dict[str, ComputeModel]] | None:
    """What `compare_all` says of outputs, from what is expected of one block after another.

    With it the models, which name the functions that a bound rests on. A block says of its consecutive elements of all
    outputs, flat, what the whole says of them, and blocks come in order. None where one of them is None, and with
    `ordinary` where an element is at fault, inf, nan or open.
    """
    for held in (frozenset[str](), frozenset(got)):
        blockwise = {
            name: _Blockwise(name, array, models[name], careful=not ordinary, exactly=False if name in held else None)
            for name, array in got.items()
        }
        with np.errstate(all="ignore"):
            for block in ask():
                if block is None:
                    return None
                place, outputs = block
                if not all([blockwise[name].look_at(place, output) for name, output in outputs.items()]):
                    break
            else:
                merged = {name: output.merged() for name, output in blockwise.items()}
                return merged, {name: models[name].using(output.functions) for name, output in blockwise.items()}
        if ordinary:
            break
    return None


def _in_blocks(item: Compared) -> Comparison | None:
    """The same of one output."""
    if item.operands is not None and item.operands.span is not None:
        return None
    expected = _flat(item.expected, item.got.shape)
    blockwise = _Blockwise(item.output, item.got, item.model, item.operands)
    if all(blockwise.look_at(place, _cut(expected, place)) for place in blocks(item.got.size)):
        return blockwise.merged()
    return None


class _Blockwise:
    """One output of many elements, looked at block by block: as long as these are ordinary, or `careful` all of them.

    What is exact of a block alone is held to margins of 0, which it has where the output is looked at as a whole.
    """

    __slots__ = ("_careful", "_exactly", "_found", "_got", "_model", "_operands", "_output", "_shape", "functions")

    def __init__(
        self,
        output: str,
        got: NDArray[Any],
        model: ComputeModel,
        operands: OperandFacts | None = None,
        *,
        careful: bool = False,
        exactly: bool | None = None,
    ) -> None:
        self._output, self._shape, self._got = output, got.shape, got.reshape(-1)
        self._model, self._operands, self._careful = model, operands, careful
        self._exactly = exactly
        """Whether all blocks so far are exact; None: nothing is known yet."""
        self._found: list[tuple[int, Comparison]] = []
        self.functions: tuple[str, ...] = ()
        """Those that the bound of the last block rests on."""

    def look_at(self, place: slice, expected: ExpectedOutput) -> bool:
        """Look at one more block: whether that settled it, in the same way as those before."""
        model, self.functions = self._model, expected.functions
        part = Compared(
            output=self._output, got=self._got[place], expected=expected, model=model, operands=self._operands
        )
        known = margins(expected, model, operands=self._operands)
        exact = known.below is None and model.through is None and not model.output_truncates
        if self._exactly is None:
            self._exactly = exact
        if self._exactly and not exact:
            return False  # the blocks before alone are exact, and were held to more than the whole is
        if not self._exactly and known.below is None:
            known = known._replace(below=0.0, above=0.0)
        entry = _Open(part, known)
        if not self._exactly:
            _within([entry])
        elif expected.open is None:
            _exactly([entry])
        if entry.found is None and self._careful:
            entry.found = msgspec.structs.replace(_carefully(part, known), elements=None)
        if entry.found is None:
            return False
        self._found.append((place.start, entry.found))
        return True

    def merged(self) -> Comparison:
        """What all blocks together come to: the first of the worst elements, and the counts of all."""
        start, worst = max(self._found, key=lambda entry: entry[1].deviation.share)
        deviations = [found.deviation for _, found in self._found]
        # A fault that no arithmetic explains says more than one that coarser arithmetic would.
        faulty = [found for _, found in self._found if found.kind]
        told = [found for found in faulty if found.kind != Fault.MODEL] or faulty
        size, ignored = self._got.size, sum(deviation.open for deviation in deviations)
        deviation = msgspec.structs.replace(
            worst.deviation,
            index=index_of(start + worst.deviation.index[0], self._shape),
            beyond=sum(deviation.beyond for deviation in deviations),
            elements=size,
            histogram=tuple(map(sum, zip(*(deviation.histogram for deviation in deviations), strict=True))),
            open=ignored,
        )
        kind = max(told, key=lambda found: found.deviation.share).kind if told else ""
        return Comparison(deviation=deviation, kind=kind, judged=size - ignored)


def _flat(expected: ExpectedOutput, shape: tuple[int, ...]) -> ExpectedOutput:
    """The same with arrays of one dimension; those of one number for all elements stay as they are."""

    def flat(array: Any) -> Any:  # noqa: ANN401 - an array or None or a number
        if not isinstance(array, np.ndarray) or not array.shape:
            return array
        return (array if array.shape == shape else np.broadcast_to(array, shape)).reshape(-1)

    return _each_array(expected, flat)


def _cut(expected: ExpectedOutput, place: slice) -> ExpectedOutput:
    """The elements of a block of what `_flat` gives."""
    return _each_array(expected, lambda array: array[place] if isinstance(array, np.ndarray) and array.shape else array)


def _each_array(expected: ExpectedOutput, change: Callable[[Any], Any]) -> ExpectedOutput:
    terms = tuple(
        msgspec.structs.replace(term, count=change(term.count), magnitude=change(term.magnitude))
        for term in expected.terms
    )
    return msgspec.structs.replace(
        expected,
        value=change(expected.value),
        terms=terms,
        underflows=change(expected.underflows),
        underflow_scale=change(expected.underflow_scale),
        partial=change(expected.partial),
        open=change(expected.open),
        error=change(expected.error),
        exact=change(expected.exact),
    )


def _way(entry: _Open) -> tuple[int, ...]:
    """What outputs must have in common for their ends to be found together: all that `ends` reads of a model."""
    model, known = entry.item.model, entry.margins
    formats = id(model.output), id(model.accumulation), id(model.through)
    return *formats, model.output_truncates, known.below is known.above


def _parts(group: Iterable[_Open]) -> Iterator[Sequence[_Open]]:
    """Outputs that are few enough to be looked at together, those of one way side by side."""
    part: list[_Open] = []
    size = 0
    for entry in sorted(group, key=_way):
        if part and size + entry.item.got.size > _TOGETHER:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.item.got.size
    if part:
        yield part


def _runs(part: Iterable[_Open]) -> Iterator[tuple[Sequence[_Open], slice]]:
    """The outputs of a part by their ways, and where their elements lie in it."""
    start = 0
    for _, alike in itertools.groupby(part, _way):
        run = list(alike)
        stop = start + sum(entry.item.got.size for entry in run)
        yield run, slice(start, stop)
        start = stop


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Flat arrays one after another; a single one as it is."""
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]


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
    return _concatenated(rows)


def _sizes(part: Sequence[_Open]) -> tuple[list[int], NDArray[np.intp]]:
    """How many elements each output of a part has, and at which its own start."""
    sizes = [entry.item.got.size for entry in part]
    starts = np.zeros(len(sizes), np.intp)
    if len(sizes) > 1:
        np.cumsum(sizes[:-1], out=starts[1:])
    return sizes, starts


def _values(part: Sequence[_Open]) -> Float64:
    if len(part) == 1:
        return widen(part[0].item.got.reshape(-1))
    # Of several storage dtypes, among which NumPy would look for a common one.
    arrays = [numeric(entry.item.got.reshape(-1)) for entry in part]
    return np.concatenate(arrays, dtype=np.float64, casting="unsafe")


def _exactly(part: Sequence[_Open]) -> None:
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
    lower, upper, width = _limits(part, values, exact)
    inside = lower <= values
    inside &= values <= upper
    share = np.subtract(values, exact)
    np.abs(share, out=share)
    share /= _at_least_tiny(width)
    ignored = [0] * len(part)
    sizes, starts = _sizes(part)
    if any(entry.item.expected.open is not None for entry in part):
        unsaid = _joined([entry.item.expected.open for entry in part], part).astype(np.bool_)
        inside |= unsaid
        share = np.where(unsaid, 0.0, share)
        ignored = np.add.reduceat(unsaid, starts, dtype=np.int64).tolist()
    first = int(share.argmax()) if len(part) == 1 else 0
    largest = share[first : first + 1] if len(part) == 1 else np.maximum.reduceat(share, starts)
    # nan, which is not at most 1: something is not finite.
    conforming = (np.logical_and.reduceat(inside, starts) & (largest <= 1.0)).tolist()
    if not any(conforming):
        return
    placed, worst = bins(share), np.array([first])
    if len(part) > 1:
        whose = np.repeat(np.arange(len(part)), sizes)
        placed += whose * BINS
        hits = np.flatnonzero(share == largest[whose])
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


def _at_least_tiny(width: Float64) -> Float64:
    """Widths, of which none is negative, and `TINY` where they are less: by bits, which is several times as fast."""
    bits: NDArray[np.int64] = np.maximum(np.ascontiguousarray(width).view(np.int64), _TINY_BITS)
    return bits.view(np.float64)


def _limits(part: Sequence[_Open], values: Float64, exact: Float64) -> tuple[Float64, Float64, Float64]:
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


def _beyond_any(item: Compared, values: Float64, value: Float64, *, cut: NDArray[np.bool_] | bool) -> str:
    """The fault that is left in the coarsest arithmetic of the promised formats; empty: all errors fit it."""
    coarse = loosest(item.model)
    expected = coarsened(item.expected, coarse)
    known = likely_margins(expected, coarse, operands=item.operands)
    around = ends(value, coarse, below=known.below, above=known.above)
    if np.logical_and.reduce((around.lower <= values) & (values <= around.upper), axis=None):
        return ""  # neither inf nor nan was asked for, or is there where it must not be
    limits = dataclasses.replace(bound(expected, coarse, operands=item.operands, known=known), cut=cut)
    left = sort(values, value, expected, coarse, limits)
    return left.kind if left.faulty.any() else ""


def _carefully(item: Compared, known: Margins) -> Comparison:
    values, expected, model = widen(item.got), item.expected, item.model
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
        got=spelled(values.item(worst)),
        expected=spelled(exact),
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


def as_stored(outputs: Iterable[Compared], models: Mapping[str, ComputeModel]) -> list[Compared]:
    """The outputs of a call that the mode's rounding of operands may change, with the models of unrounded ones."""
    return [
        msgspec.structs.replace(item, model=models[item.output])
        for item in outputs
        if item.model.operand is not None and item.operands is not None and item.operands.matters
    ]


def finer_than_asked(comparisons: Iterable[Comparison]) -> bool:
    """Whether every output of `as_stored` is within the bound of operands that are not rounded.

    Right outputs of a call alone may be asked about. Where rounding changes no operand that an output depends on, or
    nothing can be seen of it (no elements, or all of them open), the answer is no: there is nothing to tell the two
    apart by.
    """
    asked = list(comparisons)
    return not any(item.kind for item in asked) and any(item.judged for item in asked)
