"""aclnnFlashAttentionUnpaddingScoreGrad: attention backwards, sequence by sequence, from the statistics of its softmax.

With S = scale (Q K^T + pse), P = exp(S - max) / sum, 0 where masked, and dP = dY V^T: dV = P^T dY,
dS = P (dP - sum(dY Y)), dQ = scale dS K and dK = scale dS^T Q. Heads of a group share keys and values. P and dS pass
through the format of the output, which the matrix unit takes.
"""
# ruff: noqa: PLR0913, PLR0917 - a formula takes what the operator does

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator

_Numbers = NDArray[np.int64]
_Ends = tuple[int, ...]


def _scores(
    f: F, query: Array, key: Array, pse: Array | None, mask: _Numbers | None, ends: tuple[_Ends, _Ends], scale: float
) -> Iterator[tuple[slice, slice, Array, NDArray[np.bool_]]]:
    """Queries, keys and S of each sequence, by head, place in its group, query and key, and what is not masked."""
    queries, keys = (map(slice, (0, *each), each) for each in ends)
    for rows, columns in zip(queries, keys, strict=True):
        s = f.einsum("ihgd,jhd->hgij", query[rows], key[columns])
        if pse is not None and len(ends[0]) == 1:
            s = s + pse.reshape(*s.shape[:2], pse.shape[2], s.shape[3])
        part = np.ones(s.shape, np.bool_)
        if mask is not None and len(ends[0]) == 1:
            part &= (mask.reshape(s.shape) if mask.size == math.prod(s.shape) else mask) == 0
        yield rows, columns, s * scale, part


def _grouped(heads: int, *arrays: Array) -> list[Array]:
    """Arrays [T, N, ...] with the heads that share keys side by side."""
    return [array.reshape(array.shape[0], heads, array.shape[1] // heads, array.shape[2]) for array in arrays]


def _backward(
    f: F, query: Array, keyIn: Array, value: Array, dy: Array, pseShiftOptional: Array | None,
    dropMaskOptional: _Numbers | None, paddingMaskOptional: _Numbers | None, attenMaskOptional: _Numbers | None,
    softmaxMaxOptional: Array, softmaxSumOptional: Array, softmaxInOptional: Array | None, attentionInOptional: Array,
    actualSeqQLenOptional: _Ends, actualSeqKvLenOptional: _Ends, scaleValue: float, keepProb: float, sparseMode: int,
) -> Outputs:  # fmt: skip
    ends = actualSeqQLenOptional, actualSeqKvLenOptional
    statistics = softmaxMaxOptional[:, :, :1], softmaxSumOptional[:, :, :1]
    q, g, y, peak, total = _grouped(keyIn.shape[1], query, dy, attentionInOptional, *statistics)
    found = []
    for rows, keys, s, part in _scores(f, q, keyIn, pseShiftOptional, attenMaskOptional, ends, scaleValue):
        share = (g[rows] * y[rows]).sum(3, keepdims=True)
        top, below, lost = (array.transpose(1, 2, 0, 3) for array in (peak[rows], total[rows], share))
        p = f.where(part, f.exp(s - top) / below, 0.0)
        ds = f.store(p * (f.einsum("ihgd,jhd->hgij", g[rows], value[keys]) - lost))
        dq, dk = f.einsum("hgij,jhd->ihgd", ds, keyIn[keys]), f.einsum("hgij,ihgd->jhd", ds, q[rows])
        found.append((dq * scaleValue, dk * scaleValue, f.einsum("hgij,ihgd->jhd", f.store(p), g[rows])))
    dq, dk, dv = (f.concat(parts) for parts in zip(*found, strict=True))
    dropped = keepProb != 1 or (dropMaskOptional is not None and bool((dropMaskOptional != 255).any()))
    several = len(ends[0]) > 1 and not (pseShiftOptional is None and attenMaskOptional is None)
    other = sparseMode > 1 or paddingMaskOptional is not None or softmaxInOptional is not None
    gradients = {"dqOut": dq.reshape(*query.shape), "dkOut": dk, "dvOut": dv}
    return {name: f.undecided(found, where=dropped or several or other) for name, found in gradients.items()}


def _forward(
    f: F, query: Array, keyIn: Array, value: Array, pseShiftOptional: Array | None,
    attenMaskOptional: _Numbers | None, actualSeqQLenOptional: _Ends, actualSeqKvLenOptional: _Ends, scaleValue: float,
) -> Outputs:  # fmt: skip
    ends, found = (actualSeqQLenOptional, actualSeqKvLenOptional), []
    [q] = _grouped(keyIn.shape[1], query)
    for _, keys, s, part in _scores(f, q, keyIn, pseShiftOptional, attenMaskOptional, ends, scaleValue):
        top = f.where(part, s, -1e4).max(3, keepdims=True)
        e = f.where(part, f.exp(s - top), 0.0)
        total = e.sum(3, keepdims=True) + ~part.any(3, keepdims=True)
        attention = f.einsum("hgij,jhd->ihgd", e / total, value[keys])
        found.append((attention, top.transpose(2, 0, 1, 3), total.transpose(2, 0, 1, 3)))
    y, top, total = (f.concat(parts).reshape(*query.shape[:2], -1) for parts in zip(*found, strict=True))
    peaks, totals = (array.broadcast_to((*query.shape[:2], 8)) for array in (top, total))
    return {"y": y, "attentionInOptional": y, "softmaxMaxOptional": peaks, "softmaxSumOptional": totals}


SAVED = ("attentionInOptional", "softmaxMaxOptional", "softmaxSumOptional")
WRT = {"dqOut": "query", "dkOut": "keyIn", "dvOut": "value"}
FORMULA = Operator.of(_backward, derivative=Derivative(forward=_forward, gradients={"dy": "y"}, wrt=WRT, saved=SAVED))
