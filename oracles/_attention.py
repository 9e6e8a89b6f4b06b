"""Attention backwards, for calls in any layout: one formula from the saved statistics of the softmax.

S is scale (Q K^T + pse), or scale Q K^T + pse. P is exp(S - max) / sum, and 0 where a query does not see a key.
M is keep / keepProb of a dropout. Then dV = (P M)^T dY and dS = P (M dY V^T - sum(dY Y)). At last dQ = scale dS K and
dK = scale dS^T Q.
Heads of a group share keys and values. P and dS pass through the format of the output, which the matrix unit takes.
A sink is one more score of every row of a head, whose value is 0: the statistics hold it. Its gradient is the sum of
-(P M dY V^T) exp(sink - max) / sum over all that the head computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.attention import (
    ADDS_FIRST,
    AS_INPUT,
    Sequences,
    Sparsity,
    in_layout,
    kept_bits,
    of_sequences,
    sequences,
)
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.oracles._blocks import in_blocks

Numbers = NDArray[Any]
Flags = NDArray[np.bool_]

STATISTICS = 8
"""Copies of each number of a statistic."""
_CHECKS_ROWS = 2
"""The innerPrecise with which rows that see nothing are computed as they should be."""
_RIGHT_DOWN = 3
"""The sparse mode whose rows that see nothing are found by themselves."""
_BATCHES, _SHARED_HEADS, _QUERIES, _KEYS = 0, 1, 3, 4
"""Axes of a part's scores, of which some places are computed at a time."""
_OF_KEYS = {_BATCHES: 0, _SHARED_HEADS: 1, _KEYS: 2}
"""The same axes of keys and values."""
_OUTPUTS = ("dqOut", "dkOut", "dvOut")
WRT = dict(zip(_OUTPUTS, ("query", "keyIn", "value"), strict=True))
SAVED = ("attentionInOptional", "softmaxMaxOptional", "softmaxSumOptional")
FLAGS = ("attenMaskOptional", "dropMaskOptional")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The arguments of a call, its arrays those of a formula, and those of integers NumPy's."""

    query: Array
    key: Array
    value: Array
    pse: Array | None
    adds_first: bool
    """Whether pse is added before the scaling."""
    scale: float
    layout: str
    heads: int
    sparsity: Sparsity
    drop_mask: Numbers | None
    keep_probability: float
    checks_rows: bool
    """Whether the call says how rows come out that see nothing."""
    ends: tuple[Sequence[int], Sequence[int]] = ((), ())
    sink: Array | None = None
    """[N]."""
    by_heads: bool = False
    """Whether statistics of the shape [T, N, 8] lie in memory as [N, T, 8]."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Attention:
        """That of a call, from its arguments."""
        return cls(
            query=arguments["query"],
            key=arguments["keyIn"],
            value=arguments["value"],
            pse=arguments["pseShiftOptional"],
            adds_first=arguments.get("pseType", ADDS_FIRST) == ADDS_FIRST,
            scale=arguments["scaleValue"],
            layout=arguments["inputLayout"],
            heads=arguments["headNum"],
            sparsity=Sparsity.of(arguments),
            drop_mask=arguments["dropMaskOptional"],
            keep_probability=arguments["keepProb"],
            checks_rows=arguments.get("innerPrecise", _CHECKS_ROWS) == _CHECKS_ROWS,
            ends=(arguments.get("actualSeqQLenOptional", ()), arguments.get("actualSeqKvLenOptional", ())),
            sink=arguments.get("sinkInOptional"),
            by_heads=arguments.get("softmaxInLayout", AS_INPUT) != AS_INPUT,
        )

    def parts(self) -> Iterator[SequenceGroup]:
        """The sequences, those of equal length together."""
        for place in sequences(self.layout, self.heads, self.query.shape, self.key.shape, self.ends):
            yield SequenceGroup.of(self, place)

    @property
    def is_open(self) -> bool:
        """Whether arguments contradict each other, so that nothing says what comes out."""
        if self.drop_mask is None:
            return self.keep_probability != 1
        return self.keep_probability == 1 and bool((self.drop_mask != 255).any())


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Sequences of equal length, from here on with the dimensions [B, shared heads, heads of a group, ...]."""

    call: Attention
    place: Sequences
    query: Array
    """[B, h, g, Sq, D]."""
    key: Array
    """[B, h, Skv, D]."""
    value: Array
    """[B, h, Skv, D of values]."""
    pse: Array | None
    """[B or 1, h or 1, g or 1, Sq or 1, Skv]; None where there is none, or none that fits."""
    sink: Array | None
    """[1, h, g, 1, 1]."""
    seen: Flags
    """[B, h, g, Sq, Skv]: where a query sees a key."""
    kept: Flags | None
    """The same shape: what a dropout keeps; None where it keeps all."""
    is_open: Flags
    """[B, h, g, Sq]: rows of which nothing says what comes out."""

    @classmethod
    def of(cls, call: Attention, place: Sequences) -> SequenceGroup:
        """The sequences of a call at a place."""
        query, key = place.of_queries(call.query), place.of_keys(call.key)
        rows, columns = query.shape[3], key.shape[2]
        shape = (*query.shape[:3], rows, columns)
        seen = np.broadcast_to(place.grouped(call.sparsity.seen(rows, columns, place)), shape)
        pse = _pse_of_part(call, place, shape)
        return cls(
            call=call,
            place=place,
            query=query,
            key=key,
            value=place.of_keys(call.value),
            pse=pse,
            sink=None if call.sink is None else call.sink.reshape(1, *shape[1:3], 1, 1),
            seen=seen,
            kept=_kept_by_dropout(call, place, shape),
            is_open=_open_rows(call, place, seen) | (call.pse is not None and pse is None),
        )

    def among(self, axis: int, places: slice) -> SequenceGroup:
        """The part with some of the batches, shared heads, queries or keys alone."""

        def some(array: Any) -> Any:  # noqa: ANN401 - a NumPy array, one of a formula, or none
            return _some(array, axis, places)

        return replace(
            self,
            query=self.query if axis == _KEYS else some(self.query),
            key=_some(self.key, _OF_KEYS.get(axis), places),
            value=_some(self.value, _OF_KEYS.get(axis), places),
            pse=some(self.pse),
            sink=some(self.sink),
            seen=some(self.seen),
            kept=some(self.kept),
            is_open=self.is_open if axis == _KEYS else some(self.is_open),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """[B, h, g, Sq, Skv]."""
        return self.seen.shape

    def scores(self, f: F) -> Array:
        """S, of all keys."""
        scores = f.einsum("bhgid,bhjd->bhgij", self.query, self.key)
        if self.pse is not None and self.call.adds_first:
            scores = scores + self.pse
        scores = scores * self.call.scale
        result: Array = scores if self.pse is None or self.call.adds_first else scores + self.pse
        return result

    def dropped(self, f: F, array: Array) -> Array:
        """What the dropout leaves of an array like S."""
        return array if self.kept is None else f.where(self.kept, array / self.call.keep_probability, 0.0)

    def attention(self, f: F) -> tuple[Array, Array, Array]:
        """The forward pass: the result [B, h, g, Sq, D], and the greatest score and the sum of each row."""
        scores, sees_none = self.scores(f), ~self.seen.any(4, keepdims=True)
        seen = f.where(self.seen, scores, -1e4)
        if self.sink is None:
            top = seen.max(4, keepdims=True)
            powers = f.where(self.seen, f.exp(scores - top), 0.0)
            total = powers.sum(4, keepdims=True) + sees_none
        else:
            sink = self.sink.broadcast_to((*self.shape[:4], 1))
            top = f.concat((seen, sink), 4).max(4, keepdims=True)
            powers = f.where(self.seen, f.exp(scores - top), 0.0)
            total = powers.sum(4, keepdims=True) + f.exp(sink - top)
        result: Array = f.einsum("bhgij,bhjd->bhgid", self.dropped(f, powers / total), self.value)
        return result, top, total

    def gradients(self, f: F, dy: Array, y: Array, top: Array, total: Array) -> tuple[Array, ...]:
        """What the queries add to the gradients of query, key and value, the first two not scaled.

        Where there is a sink, also what its gradient sums up, times the probability of the sink.
        From dY and Y [B, h, g, Sq, D of values] and statistics [B, h, g, Sq, 1].
        """
        p = f.where(self.seen, f.exp(self.scores(f) - top) / total, 0.0)
        dp = self.dropped(f, f.einsum("bhgid,bhjd->bhgij", dy, self.value))
        ds = f.store(p * (dp - (dy * y).sum(4, keepdims=True)))
        dq = f.einsum("bhgij,bhjd->bhgid", ds, self.key)
        dk = f.einsum("bhgij,bhgid->bhjd", ds, self.query)
        dv = f.einsum("bhgij,bhgid->bhjd", f.store(self.dropped(f, p)), dy)
        if self.sink is None:
            return dq, dk, dv
        return dq, dk, dv, -(p * dp).sum(4, keepdims=True)


def _some(array: Any, axis: int | None, places: slice) -> Any:  # noqa: ANN401 - a NumPy array, one of a formula, or none
    """Some places of an axis; all of an array that does not have it, or where one place stands for each of them."""
    if array is None or axis is None or array.shape[axis] == 1:
        return array
    return array[(slice(None),) * axis + (places,)]


def _pse_of_part(call: Attention, place: Sequences, shape: tuple[int, ...]) -> Array | None:
    """[B or 1, h or 1, g or 1, Sq or 1, Skv]; None where it does not fit."""
    if call.pse is None or call.pse.shape[-1] != shape[4]:
        return None
    found: Array = place.grouped(of_sequences(call.pse, place))
    return found if found.shape[3] in (1, shape[3]) else None


def _kept_by_dropout(call: Attention, place: Sequences, shape: tuple[int, ...]) -> Flags | None:
    """What a dropout keeps of the part."""
    if call.drop_mask is None or call.keep_probability == 1 or not place.is_alone:
        return None
    return kept_bits(call.drop_mask, shape)


def _open_rows(call: Attention, place: Sequences, seen: Flags) -> Flags:
    """The part's rows of which nothing says what comes out, pse aside."""
    rows, columns = seen.shape[3:]
    scattered = call.keep_probability != 1 and not place.is_alone
    if scattered or call.is_open or call.sparsity.is_contradicted(rows, columns, place):
        return np.ones(seen.shape[:4], np.bool_)
    if call.checks_rows or (call.sparsity.mode == _RIGHT_DOWN and rows > columns):
        return np.zeros(seen.shape[:4], np.bool_)
    sees_none: Flags = ~np.any(seen, axis=4)
    return sees_none


def _flat_heads(array: Array) -> Array:
    batches, shared, group, *rest = array.shape
    return array.reshape(batches, shared * group, *rest)


def backward(f: F, arguments: Mapping[str, Any]) -> Outputs:
    """The gradients of query, key, value and sink of a call; statistics are [B, N, Sq, 8], or [T, N, 8]."""
    call = Attention.of(arguments)
    dy, result, *statistics = (arguments[name] for name in ("dy", *SAVED))
    found: list[tuple[Array, ...]] = []
    sinks: list[Array] = []
    for part in call.parts():
        saved = [part.place.of_queries(array) for array in (dy, result)]
        saved += [part.place.grouped(_of_part(array, call, part.place.rows)) for array in statistics]
        dq, dk, dv, *sink = _part_gradients(f, part, saved)
        found.append(tuple(in_layout(array, call.layout) for array in (dq, dk, dv)))
        sinks += sink
    results = {name: f.concat(arrays) for name, arrays in zip(_OUTPUTS, zip(*found, strict=True), strict=True)}
    return results | ({"dsinkOut": f.concat(sinks, 2).sum((0, 2, 3))} if sinks else {})


def _gradients(f: F, part: SequenceGroup, saved: Sequence[Array], axes: Sequence[int]) -> Sequence[Array]:
    """`SequenceGroup.gradients`, some places of the first axis at a time; where one is large, some of the next."""
    axis, *inner = axes

    def compute(places: slice) -> tuple[Sequence[Array], Sequence[Array]]:
        block, own = part, saved
        if places != slice(None):
            block = part.among(axis, places)
            own = saved if axis == _KEYS else [_some(array, axis, places) for array in saved]
        found = _gradients(f, block, own, inner) if inner else block.gradients(f, *own)
        dq, dk, dv, *sink = found
        if axis == _QUERIES:
            return (dq, *sink), (dk, dv)
        return ((dk, dv), (dq, *sink)) if axis == _KEYS else (found, ())

    count = part.shape[axis]
    each = part.seen.size // max(count, 1)
    along, sums = in_blocks(f, compute, count=count, each=each, axis=_OF_KEYS.get(axis, axis))
    if axis == _QUERIES:
        return (along[0], *sums, *along[1:])
    return (sums[0], *along, *sums[1:]) if axis == _KEYS else along


def _part_gradients(f: F, part: SequenceGroup, saved: Sequence[Array]) -> tuple[Array, ...]:
    """[B, N, S, D] of query, key and value, and [B, N, Sq, 1] of a sink, from the part's dY, Y and statistics."""
    # What the shorter of these axes has is summed up for each block of the longer one.
    longest = sorted((_QUERIES, _KEYS), key=part.shape.__getitem__, reverse=True)
    dq, dk, dv, *sink = _gradients(f, part, saved, (_BATCHES, _SHARED_HEADS, *longest))
    dq, dk = dq * part.call.scale, dk * part.call.scale
    if part.sink is not None:
        top, total = saved[2:]
        sink = [array * (f.exp(part.sink - top) / total) for array in sink]
    opened = part.is_open[..., None]
    some = np.any(opened, axis=(2, 3))[:, :, None]
    return (
        _flat_heads(f.undecided(dq, where=np.broadcast_to(opened, dq.shape))),
        f.undecided(dk, where=np.broadcast_to(some, dk.shape)),
        f.undecided(dv, where=np.broadcast_to(some, dv.shape)),
        *(_flat_heads(f.undecided(array, where=opened)) for array in sink),
    )


def _of_part(array: Array, call: Attention, rows: slice) -> Array:
    """[B, N, Sq, 1] of a statistic."""
    if call.layout != "TND":
        return array[:, :, :, :1]
    tokens, heads, copies = array.shape
    by_heads = array.reshape(heads, tokens, copies) if call.by_heads else array.transpose(1, 0, 2)
    return by_heads[:, rows, :1].reshape(1, heads, -1, 1)


def with_sink(f: F, results: Outputs, heads: int) -> Outputs:
    """The results, and of a call without a sink a gradient that is open."""
    return {"dsinkOut": f.undecided(f.where(np.zeros(heads, np.bool_), 0.0, 0.0), where=True), **results}


def forward(f: F, arguments: Mapping[str, Any]) -> Outputs:
    """The forward pass: the attention, also under `y`, and the statistics as they are saved."""
    call = Attention.of(arguments)
    found: list[tuple[Array, ...]] = []
    for part in call.parts():
        result, *numbers = (_flat_heads(array) for array in part.attention(f))
        copies = [array.broadcast_to((*array.shape[:3], STATISTICS)) for array in numbers]
        if call.layout == "TND" and not call.by_heads:
            copies = [in_layout(array, call.layout) for array in copies]
        found.append((in_layout(result, call.layout), *copies))
    results, *saved = zip(*found, strict=True)
    y = f.concat(results)
    statistics = [f.concat(arrays, 2 if call.by_heads else 0) for arrays in saved]
    if call.by_heads:
        statistics = [array.reshape(y.shape[0], call.heads, STATISTICS) for array in statistics]
    return {"y": y, **dict(zip(SAVED, (y, *statistics), strict=True))}
