"""The forward pass of attention in single steps in float64 and in a stated order: its bits are everywhere equal.

Its exponential is its own: those of libraries differ in their last bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.attention import (
    ADDS_FIRST,
    AS_INPUT,
    Sequences,
    Sparsity,
    by_heads,
    in_layout,
    kept_bits,
    of_sequences,
    sequences,
    under_usual_names,
)
from aclnn_cts.core.rounding import blocks, widen
from aclnn_cts.core.selected_keys import seen

Real: TypeAlias = "NDArray[np.float64]"
Forward: TypeAlias = "tuple[Real, Real, Real]"
"""The attention, the greatest score and the sum of each row."""

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
"""Their sum is ln 2; products of the first with integers of 20 bits are exact."""
_TERMS = 14
"""Of the series of e^x for |x| < 0.35: what follows is below half a unit of float64."""
_LEAST = -700.0
"""e to that is 0 in every dtype but DOUBLE."""
_AT_ONCE = 1 << 14
"""Terms of sums that are made together: as many as the processor's cache holds."""
_SCORES = 1 << 20
"""Scores that are held at once."""


def forward(call: Mapping[str, Any]) -> Forward | None:
    """The results of a call, from its arguments with arrays for tensors; None where they make no attention."""
    try:
        return _of_named_keys(call) if "sparseIndices" in call else _forward(under_usual_names(call))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


def _forward(call: Mapping[str, Any]) -> Forward:
    layout = call["inputLayout"]
    query, key = (_with_rope(call, name) for name in ("query", "keyIn"))
    value = widen(call["value"])
    ends = (call.get("actualSeqQLenOptional") or (), call.get("actualSeqKvLenOptional") or ())
    places = sequences(layout, call["headNum"], query.shape, key.shape, ends)
    found = [_part(call, place, query, key, value) for place in places]
    results, tops, totals = ([part[number] for part in found] for number in range(3))
    joint = [np.concatenate([in_layout(item, layout) for item in results])]
    for items in (tops, totals):
        if layout != "TND":
            joint.append(np.concatenate(items))
            continue
        by_head = np.concatenate(items, 2)[0]
        as_input = call.get("softmaxInLayout", AS_INPUT) == AS_INPUT
        joint.append(by_head.T if as_input else by_head.reshape(by_head.shape[::-1]))
    # The sign of a nan that a processor makes is its own.
    attended, top, total = (np.where(np.isnan(item), np.nan, item) for item in joint)
    return attended, top, total


def _of_named_keys(call: Mapping[str, Any]) -> Forward:
    """Those of a call whose queries name the keys that they see: the statistics are [B, 1, rows, N], or [1, T, N].

    Without values, the attention is that of keys.
    """
    flat = call.get("layout", call.get("layoutOptional")) == "TND"
    query, key = (_with_rope(call, name) for name in ("query", "key"))
    query, key, numbers = (item[None] if flat else item for item in (query, key, call["sparseIndices"]))
    value = call.get("value")
    value = key if value is None else widen(value)[None] if flat else widen(value)
    flags = seen(numbers[:, :, 0], key.shape[1], all_keys=not call["sparseMode"])[:, None]
    columns = key.transpose(0, 2, 3, 1)
    scores = _product(query.transpose(0, 2, 1, 3), columns) * float(call["scaleValue"])
    top = np.where(flags.any(3), _greatest(np.where(flags, scores, -np.inf)), 0.0)
    powers = np.where(flags, _exponential(scores - top[..., None]), 0.0)
    total = np.where(flags.any(3), np.add.accumulate(powers, axis=3)[..., -1], 1.0)
    result = _product(powers / total[..., None], value.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    statistics = (item.transpose(0, 2, 1) for item in (top, total))
    found = (result[0] if flat else result, *(item if flat else item[:, None] for item in statistics))
    attended, greatest, sums = (np.where(np.isnan(item), np.nan, item) for item in found)
    return attended, greatest, sums


def _with_rope(call: Mapping[str, Any], name: str) -> Real:
    """Queries or keys, and behind the elements of each head those of its rotary embedding."""
    found, rope = widen(call[name]), call.get(name + "Rope", call.get(name + "RopeOptional"))
    return found if rope is None else np.concatenate((found, widen(rope)), -1)


def _part(call: Mapping[str, Any], place: Sequences, query: Real, key: Real, value: Real) -> Forward:
    """The forward pass of sequences at a place, some heads and queries at a time: their scores take little memory."""
    q = by_heads(query, place.layout, place.heads, place.rows)
    k, v = (place.of_keys(array) for array in (key, value))
    rows, columns, shared = q.shape[2], k.shape[2], k.shape[1]
    seen = np.broadcast_to(Sparsity.of(call).seen(rows, columns, place), (*q.shape[:2], rows, columns))
    pse, mask, share = call.get("pseShiftOptional"), call.get("dropMaskOptional"), float(call["keepProb"])
    pse = None if pse is None else of_sequences(widen(pse), place)
    kept = None if mask is None or share == 1.0 else kept_bits(mask, seen.shape)
    sink = call.get("sinkInOptional")
    sink = None if sink is None else widen(sink)[None, :, None]
    group = place.heads // shared
    each = max(q.shape[0] * columns, 1)
    heads = _heads_at_once(max(_SCORES // each, 1), group, place.heads)
    step = max(_SCORES // (each * heads), 1)
    found: list[Forward] = []
    for first in range(0, place.heads, heads):
        own, keys = slice(first, first + heads), slice(first // group, (first + heads - 1) // group + 1)
        parts: list[Forward] = []
        for start in range(0, max(rows, 1), step):
            some = slice(start, start + step)
            scores = _scores(call, q[:, own, some], k[:, keys], _some(_some(pse, 1, own), 2, some))
            powers, top, total = _softmax(scores, seen[:, own, some], _some(sink, 1, own))
            shares = powers / total[..., None]
            if kept is not None:
                shares = np.where(kept[:, own, some], shares / share, 0.0)
            parts.append((_product_of_heads(shares, v[:, keys]), top, total))
        found.append(_joined(parts, 2))
    return _joined(found, 1)


def _heads_at_once(most: int, group: int, heads: int) -> int:
    """As many of all heads as `most` allows: whole groups, or an equal part of each group."""
    if most >= group:
        return min(most // group * group, heads)
    return max(size for size in range(1, most + 1) if group % size == 0)


def _some(array: Real | None, axis: int, places: slice) -> Real | None:
    """Some places of an axis, or all of an axis that stands for each of them."""
    return array if array is None or array.shape[axis] == 1 else array[(slice(None),) * axis + (places,)]


def _joined(parts: Sequence[Forward], axis: int) -> Forward:
    if len(parts) == 1:
        return parts[0]
    result, top, total = (np.concatenate(arrays, axis) for arrays in zip(*parts, strict=True))
    return result, top, total


def _scores(call: Mapping[str, Any], query: Real, key: Real, pse: Real | None) -> Real:
    scores = _product_of_heads(query, key.swapaxes(2, 3))
    adds_first = call.get("pseType", ADDS_FIRST) == ADDS_FIRST
    if pse is not None and adds_first:
        scores = scores + pse
    scores = scores * float(call["scaleValue"])
    return scores if pse is None or adds_first else scores + pse


def _softmax(scores: Real, seen: NDArray[np.bool_], sink: Real | None) -> Forward:
    """The powers of scores less the greatest of each row, that greatest one, and the sum of each row's powers."""
    empty = ~seen.any(axis=3)
    top = np.where(empty, 0.0, _greatest(np.where(seen, scores, -np.inf)))
    if sink is not None:
        top = np.maximum(np.where(empty, sink, top), sink)
    powers = np.where(seen, _exponential(scores - top[..., None]), 0.0)
    total = np.ones(top.shape)
    if scores.shape[3]:
        total = np.where(empty, 1.0, np.add.accumulate(powers, axis=3)[..., -1])
    if sink is not None:
        total = np.where(empty, 0.0, total) + _exponential(sink - top)
    return powers, top, total


def _greatest(scores: Real) -> Real:
    """Of each row; 0 has no sign, since which of two zeros a processor takes is its own choice."""
    found: Real = scores.max(axis=3, initial=-np.inf) + 0.0
    return found


def _product_of_heads(left: Real, right: Real) -> Real:
    """The product of [B, N, ...] and [B, shared heads, ...]."""
    batches, shared = right.shape[:2]
    groups = left.reshape(batches, shared, left.shape[1] // shared, *left.shape[2:])
    grouped = _product(groups, right[:, :, None])
    return grouped.reshape(*left.shape[:-1], right.shape[-1])


def _product(left: Real, right: Real) -> Real:
    """The product of matrices in the last two dimensions, each sum from its first term to its last."""
    rows, columns = left.shape[-2], right.shape[-1]
    found = np.zeros((*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), rows, columns))
    if not found.size:
        return found
    if rows > columns:  # NumPy's loop is over the last dimension
        transposed: Real = _product(right.swapaxes(-1, -2), left.swapaxes(-1, -2)).swapaxes(-1, -2)
        return transposed
    of_left, of_right = (np.ascontiguousarray(np.moveaxis(array, axis, 0)) for array, axis in ((left, -1), (right, -2)))
    count = max(_AT_ONCE * rows // found.size, 1)  # so few rows that their sums stay in the cache
    for start in range(0, rows, count):
        place = slice(start, start + count)
        found[..., place, :] = _sums(of_left[..., place], of_right, found[..., place, :].shape)
    return found


def _sums(left: Real, right: Real, shape: tuple[int, ...]) -> Real:
    """The sums of this shape of the products of [terms, ..., rows] and [terms, ..., columns]."""
    found = np.zeros(shape)
    step = max(_AT_ONCE // found.size, 1)
    for start in range(0, left.shape[0], step):
        place = slice(start, start + step)
        products = left[place, ..., None] * right[place, ..., None, :]
        if start:  # the first term is no sum with 0, which has another sign than -0
            products[0] += found
        found = np.add.accumulate(products, axis=0, out=products)[-1] if step > 1 else products[0]
    return found


def _exponential(x: Real) -> Real:
    """e^x of numbers up to 0, of any other number nan: a power of two times a series."""
    found, flat = np.empty(x.shape), np.ascontiguousarray(x).reshape(-1)
    of_found = found.reshape(-1)
    for place in blocks(flat.size):
        of_found[place] = _exponential_of_few(flat[place])
    return found


def _exponential_of_few(x: Real) -> Real:
    inside = np.where(x <= 0.0, np.maximum(x, _LEAST), 0.0)
    powers = np.rint(inside * _LOG2_E)
    rest = inside - powers * _LN2_HIGH - powers * _LN2_LOW
    series: Real = np.ones(x.shape)
    for place in range(_TERMS, 0, -1):
        series *= rest
        series /= float(place)
        series += 1.0
    return np.where(x <= 0.0, np.ldexp(series, powers.astype(np.int64)), np.nan)
