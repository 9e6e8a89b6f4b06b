"""Attention backwards, for calls in any layout: one formula from the saved statistics of the softmax.

S is scale (Q K^T + pse), or scale Q K^T + pse. P is exp(S - max) / sum, and 0 where a query does not see a key.
M is keep / keepProb of a dropout. Then dV = (P M)^T dY and dS = P (M dY V^T - sum(dY Y)). At last dQ = scale dS K and
dK = scale dS^T Q.
Heads of a group share keys and values. P and dS pass through the format of the output, which the matrix unit takes.
A sink is one more score of every row of a head, whose value is 0: the statistics hold it. Its gradient is the sum of
-(P M dY V^T) exp(sink - max) / sum over all that the head computes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

Numbers = NDArray[Any]
Flags = NDArray[np.bool_]

STATISTICS = 8
"""Copies of each number of a statistic."""
_CHECKS_ROWS = 2
"""The innerPrecise with which rows that see nothing are computed as they should be."""
_RIGHT_DOWN = 3
"""The sparse mode whose rows that see nothing are found by themselves."""
_OUTPUTS = ("dqOut", "dkOut", "dvOut")
WRT = dict(zip(_OUTPUTS, ("query", "keyIn", "value"), strict=True))
SAVED = ("attentionInOptional", "softmaxMaxOptional", "softmaxSumOptional")


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

    def parts(self) -> Iterator[Part]:
        """The sequences, those of equal length together."""
        for place in sequences(self.layout, self.heads, self.query.shape, self.key.shape, self.ends):
            yield Part(call=self, place=place)

    @property
    def is_open(self) -> bool:
        """Whether arguments contradict each other, so that nothing says what comes out."""
        if self.drop_mask is None:
            return self.keep_probability != 1
        return self.keep_probability == 1 and bool((self.drop_mask != 255).any())


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sequences of equal length, from here on with the dimensions [B, shared heads, heads of a group, ...]."""

    call: Attention
    place: Sequences

    @functools.cached_property
    def query(self) -> Array:
        """[B, h, g, Sq, D]."""
        found: Array = self.place.of_queries(self.call.query)
        return found

    @functools.cached_property
    def key(self) -> Array:
        """[B, h, Skv, D]."""
        found: Array = self.place.of_keys(self.call.key)
        return found

    @functools.cached_property
    def value(self) -> Array:
        """[B, h, Skv, D of values]."""
        found: Array = self.place.of_keys(self.call.value)
        return found

    @functools.cached_property
    def pse(self) -> Array | None:
        """[B or 1, N, Sq or 1, Skv]; None where there is none, or none that fits."""
        if self.call.pse is None or self.call.pse.shape[-1] != self.shape[4]:
            return None
        found: Array = of_sequences(self.call.pse, self.place)
        return found if found.shape[2] in (1, self.shape[3]) else None

    @property
    def sink(self) -> Array:
        """[1, h, g, 1, 1], of a call that has one."""
        sink: Any = self.call.sink
        found: Array = sink.reshape(1, *self.shape[1:3], 1, 1)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """[B, h, g, Sq, Skv]."""
        return (*self.query.shape[:4], self.key.shape[2])

    @functools.cached_property
    def seen(self) -> Flags:
        """Where a query sees a key."""
        rows, columns = self.shape[3:]
        flags = self.place.grouped(self.call.sparsity.seen(rows, columns, self.place))
        return np.broadcast_to(flags, self.shape)

    @functools.cached_property
    def kept(self) -> Flags | None:
        """What a dropout keeps; None where it keeps all."""
        mask, (batches, shared, group, rows, columns) = self.call.drop_mask, self.shape
        if mask is None or self.call.keep_probability == 1 or not self.place.is_alone:
            return None
        return kept_bits(mask, (batches, shared * group, rows, columns)).reshape(self.shape)

    @functools.cached_property
    def is_open(self) -> NDArray[np.bool_]:
        """[B, h, g, Sq]: rows of which nothing says what comes out."""
        rows, columns = self.shape[3:]
        misfit = self.call.pse is not None and self.pse is None
        scattered = self.call.keep_probability != 1 and not self.place.is_alone
        contradicted = self.call.is_open or self.call.sparsity.is_contradicted(rows, columns, self.place)
        if misfit or scattered or contradicted:
            return np.ones(self.shape[:4], np.bool_)
        knows = self.call.checks_rows or (self.call.sparsity.mode == _RIGHT_DOWN and rows > columns)
        return np.full(self.shape[:4], not knows) & ~self.seen.any(4)

    def scores(self, f: F) -> Array:
        """S, of all keys."""
        scores = f.einsum("bhgid,bhjd->bhgij", self.query, self.key)
        pse = None if self.pse is None else self.place.grouped(self.pse)
        if pse is not None and self.call.adds_first:
            scores = scores + pse
        scores = scores * self.call.scale
        result: Array = scores if pse is None or self.call.adds_first else scores + pse
        return result

    def dropped(self, f: F, array: Array) -> Array:
        """What the dropout leaves of an array like S."""
        return array if self.kept is None else f.where(self.kept, array / self.call.keep_probability, 0.0)

    def attention(self, f: F) -> tuple[Array, Array, Array]:
        """The forward pass: the result [B, h, g, Sq, D], and the greatest score and the sum of each row."""
        scores, sees_none = self.scores(f), ~self.seen.any(4, keepdims=True)
        seen = f.where(self.seen, scores, -1e4)
        if self.call.sink is None:
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

    def shares(self, f: F, dy: Array, top: Array, total: Array) -> tuple[Array, Array]:
        """P and M dY V^T, from statistics [B, h, g, Sq, 1]."""
        p = f.where(self.seen, f.exp(self.scores(f) - top) / total, 0.0)
        return p, self.dropped(f, f.einsum("bhgid,bhjd->bhgij", self.place.of_queries(dy), self.value))

    def gradients(self, f: F, dy: Array, y: Array, p: Array, dp: Array) -> tuple[Array, Array, Array]:
        """The gradients [B, N, S, D] of query, key and value, from `shares`."""
        gradient, result = self.place.of_queries(dy), self.place.of_queries(y)
        ds = f.store(p * (dp - (gradient * result).sum(4, keepdims=True)))
        dq = f.einsum("bhgij,bhjd->bhgid", ds, self.key) * self.call.scale
        dk = f.einsum("bhgij,bhgid->bhjd", ds, self.query) * self.call.scale
        dv = f.einsum("bhgij,bhgid->bhjd", f.store(self.dropped(f, p)), gradient)
        some = np.asarray(self.is_open.any((2, 3)))[:, :, None, None]
        return (
            _flat_heads(f.undecided(dq, where=np.broadcast_to(self.is_open[..., None], dq.shape))),
            f.undecided(dk, where=np.broadcast_to(some, dk.shape)),
            f.undecided(dv, where=np.broadcast_to(some, dv.shape)),
        )

    def sink_gradient(self, f: F, p: Array, dp: Array, top: Array, total: Array) -> Array:
        """[B, N, Sq, 1]: what each row adds to the gradient of the sink, from `shares` and statistics as above."""
        terms = -(p * dp).sum(4, keepdims=True) * (f.exp(self.sink - top) / total)
        return _flat_heads(f.undecided(terms, where=self.is_open[..., None]))


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
        top, total = (part.place.grouped(_of_part(array, call, part.place.rows)) for array in statistics)
        p, dp = part.shares(f, dy, top, total)
        found.append(tuple(in_layout(array, call.layout) for array in part.gradients(f, dy, result, p, dp)))
        if call.sink is not None:
            sinks.append(part.sink_gradient(f, p, dp, top, total))
    results = {name: f.concat(arrays) for name, arrays in zip(_OUTPUTS, zip(*found, strict=True), strict=True)}
    return results | ({"dsinkOut": f.concat(sinks, 2).sum((0, 2, 3))} if sinks else {})


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
