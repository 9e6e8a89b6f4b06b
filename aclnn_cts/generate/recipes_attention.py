"""Recipes of attention: masks with the shape of a window, and what the forward pass of the same call saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.generate.layouts import Array, to_storage
from aclnn_cts.generate.recipes_real import normal, repeated
from aclnn_cts.generate.request import Request, concatenate, next_half_words


def band(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """A mask: 0 where a column is from `low` to `high` beyond its row, else 1 (`core.attention.band`).

    `kernel` has for each first index the number of columns that are 0 in every row, `padding` a row and a column, from
    both of which on all is 1. Of the other elements a share of `mean` becomes 1.
    """
    return concatenate([_band(request, count) for request, count in zip(requests, counts, strict=True)])


def _band(request: Request, count: int) -> Array:
    from aclnn_cts.core.attention import band as banded  # noqa: PLC0415 - few calls have such masks

    data = request.data
    shape = (1,) * (2 - len(request.tensor.shape)) + request.tensor.shape
    far = max(shape[-2:])
    low, high = -far if data.low is None else data.low, far if data.high is None else data.high
    masked = banded(shape, low, high, data.kernel or ())
    if data.padding:
        row, column = data.padding[0], data.padding[-1]
        masked = np.where(np.arange(shape[-2])[:, None] >= row, np.arange(shape[-1]) >= column, masked)
    values = masked.reshape(-1)
    if data.mean:
        values = values | (
            next_half_words((request,), (count,)) < np.uint64(round(min(max(data.mean, 0.0), 1.0) * 2**32))
        )
    dtype = request.tensor.dtype
    if DTYPES[dtype].kind in ("signed", "unsigned", "bool"):
        whole: Array = values.astype(numpy_dtype(dtype))
        return whole
    return to_storage(values.astype(np.float64), dtype)


def softmax_max(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The greatest score of each row of the call's attention, in every place of the last dimension."""
    return _saved(requests, counts, 1, repeated)


def softmax_sum(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The sum of what e to the power of each score less the greatest gives, in the same places."""
    return _saved(requests, counts, 2, repeated)


def attention(requests: Sequence[Request], counts: Sequence[int]) -> Array:
    """The attention of the call."""
    return _saved(requests, counts, 0, normal)


def _saved(
    requests: Sequence[Request],
    counts: Sequence[int],
    which: int,
    otherwise: Callable[[Sequence[Request], Sequence[int]], Array],
) -> Array:
    """One of the results of the forward pass; of a call that has none of this shape, what another recipe gives."""
    parts = []
    for request, count in zip(requests, counts, strict=True):
        found = _result(request, which)
        parts.append(otherwise((request,), (count,)) if found is None else to_storage(found, request.tensor.dtype))
    return concatenate(parts)


def _result(request: Request, which: int) -> Array | None:
    found = None if request.contents is None else request.contents.attention
    if found is None:
        return None
    result, shape = found[which], request.tensor.shape
    if result.shape == shape:
        return result.reshape(-1)
    if not which:
        return None
    whole = np.broadcast_to(result[..., None], (*result.shape, shape[-1])) if shape else result
    return whole.reshape(-1) if whole.shape == shape else None
