"""A hundred candidates for the gradients of softmax and log-softmax, half of them wrong: `make bench-judge-kernels`.

A candidate is a formula with a way to compute it: `softmax_candidates.py:softmax_backward.plain`. The ways of `RIGHT`
give the right values; each of `WRONG` has one mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Gradient = Callable[[Array, Array, int], Array]
Way = Callable[[Gradient, Array, Array, int, Array], Any]
_KNOWN: dict[object, Array] = {}
_CALLS: list[Array] = []


def _softmax(g: Array, y: Array, dim: int) -> Array:
    result: Array = y * (g - (g * y).sum(axis=dim, keepdims=True))
    return result


def _log_softmax(g: Array, y: Array, dim: int) -> Array:
    result: Array = g - np.exp(y) * g.sum(axis=dim, keepdims=True)
    return result


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def plain(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return f(_wide(g), _wide(y), dim)


def by_name(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> dict[str, Array]:
    return {"out": plain(f, g, y, dim, out)}


def in_a_tuple(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> tuple[Array]:
    return (plain(f, g, y, dim, out),)


def into_out(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> None:
    out[...] = plain(f, g, y, dim, out).astype(out.dtype)


def rounded(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return plain(f, g, y, dim, out).astype(out.dtype)


def _moved(place: int) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
        a, b = (np.ascontiguousarray(np.moveaxis(_wide(array), dim, place)) for array in (g, y))
        return np.moveaxis(f(a, b, place), place, dim)

    return way


def column_major(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return f(np.asfortranarray(_wide(g)), np.asfortranarray(_wide(y)), dim)


def _in_blocks(size: int) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
        moved = np.moveaxis(g, dim, -1)
        a, b = (np.moveaxis(_wide(array), dim, -1).reshape(-1, max(g.shape[dim], 1)) for array in (g, y))
        result = np.empty_like(a)
        for place in range(0, len(a), size):
            result[place : place + size] = f(a[place : place + size], b[place : place + size], -1)
        return np.moveaxis(result.reshape(moved.shape), -1, dim)

    return way


def _reversed(*, every_axis: bool) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
        axes = None if every_axis else dim
        return np.flip(f(np.flip(_wide(g), axes), np.flip(_wide(y), axes), dim), axes)

    return way


def in_three_axes(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    place = dim % g.ndim
    before, after = int(np.prod(g.shape[:place])), int(np.prod(g.shape[place + 1 :]))
    a, b = (_wide(array).reshape(before, g.shape[place], after) for array in (g, y))
    return f(a, b, 1).reshape(g.shape)


def padded(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    place = dim % g.ndim
    widths = [(0, 7 * (axis == place)) for axis in range(g.ndim)]
    whole = f(np.pad(_wide(g), widths), np.pad(_wide(y), widths), dim)
    return whole.take(range(g.shape[place]), axis=place)


def in_long_double(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return f(_wide(g).astype(np.longdouble), _wide(y).astype(np.longdouble), dim)


def _scaled(factor: float) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
        return f(_wide(g) * factor, _wide(y), dim) / factor

    return way


def computed_twice(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    plain(f, g, y, dim, out)
    return plain(f, g, y, dim, out)


def remembered(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    key = (g.dtype.name, g.shape, g.tobytes(), y.dtype.name, y.shape, y.tobytes(), dim)
    if key not in _KNOWN:
        _KNOWN[key] = plain(f, g, y, dim, out)
    return _KNOWN[key]


def last_axis(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return plain(f, g, y, -1, out)


def first_axis(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return plain(f, g, y, 0, out)


def _in(dtype: type) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
        return f(g.astype(dtype), y.astype(dtype), dim)

    return way


def _spoilt(change: Callable[[Array], Any]) -> Way:
    def way(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Any:  # noqa: ANN401 - some have two results
        return change(plain(f, g, y, dim, out))

    return way


def _only(size: int, *, rows: bool) -> Callable[[Array], Array]:
    def change(result: Array) -> Array:
        flat = result.reshape(-1, result.shape[-1]) if rows else result.reshape(-1)
        flat[size:] = 0
        return flat.reshape(result.shape)

    return change


def _last_column_nan(result: Array) -> Array:
    result[..., -1:] = np.nan
    return result


def swapped(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return plain(f, y, g, dim, out)


def without_the_sum(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return g


def without_the_last(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    size = g.shape[dim]
    kept = np.arange(size).reshape([size if axis == dim % g.ndim else 1 for axis in range(g.ndim)]) < max(size - 1, 1)
    return f(_wide(g) * kept, _wide(y), dim)


def not_written(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> None:
    """Nothing is written."""


def in_the_gradient(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    g[...] = plain(f, g, y, dim, out).astype(g.dtype)
    return g


def raises(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> NoReturn:
    raise ValueError("no such kernel")


def crashes(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> NoReturn:
    os.abort()


def ten_times(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    _CALLS.append(g)
    return plain(f, g, y, dim, out) * (1.0 if len(_CALLS) <= 10 else 1.01)


def remembered_by_shape(f: Gradient, g: Array, y: Array, dim: int, out: Array) -> Array:
    return _KNOWN.setdefault((g.shape, dim), plain(f, g, y, dim, out))


RIGHT: dict[str, Way] = {
    "plain": plain,
    "by_name": by_name,
    "in_a_tuple": in_a_tuple,
    "into_out": into_out,
    "rounded": rounded,
    "axis_in_front": _moved(0),
    "axis_at_the_end": _moved(-1),
    "column_major": column_major,
    **{f"in_blocks_of_{size}": _in_blocks(size) for size in (1, 2, 8, 32, 128, 512, 4096)},
    "backwards": _reversed(every_axis=False),
    "all_backwards": _reversed(every_axis=True),
    "in_three_axes": in_three_axes,
    "padded": padded,
    "in_long_double": in_long_double,
    **{f"scaled_by_{name}": _scaled(factor) for name, factor in (("two", 2.0), ("a_quarter", 0.25), ("minus", -1.0))},
    "computed_twice": computed_twice,
    "remembered": remembered,
}
WRONG: dict[str, Way] = {
    "last_axis": last_axis,
    "first_axis": first_axis,
    "in_half": _in(np.float16),
    "in_bf16": _in(ml_dtypes.bfloat16),
    "a_little_more": _spoilt(lambda result: result * 1.001),
    "three_decimals": _spoilt(lambda result: np.round(result, 3)),
    "small_is_zero": _spoilt(lambda result: np.where(abs(result) < 1e-3, 0, result)),
    "clipped": _spoilt(lambda result: np.clip(result, -4, 4)),
    "zeros": _spoilt(np.zeros_like),
    "nan": _spoilt(lambda result: result * np.nan),
    "last_column_nan": _spoilt(_last_column_nan),
    "first_rows": _spoilt(_only(32, rows=True)),
    "first_elements": _spoilt(_only(4096, rows=False)),
    "negative": _spoilt(np.negative),
    "absolute": _spoilt(abs),
    "other_shape": _spoilt(lambda result: result[..., None]),
    "two_results": _spoilt(lambda result: (result, result)),
    "swapped": swapped,
    "without_the_sum": without_the_sum,
    "without_the_last": without_the_last,
    "not_written": not_written,
    "raises": raises,
    "crashes": crashes,
    "ten_times": ten_times,
    "remembered_by_shape": remembered_by_shape,
}


def _made(f: Gradient) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, way in (RIGHT | WRONG).items():

        def candidate(grad_output: Any, output: Any, dim: int, out: Any, *, _way: Way = way) -> Any:  # noqa: ANN401
            with np.errstate(all="ignore"):
                return _way(f, grad_output, output, dim, out)

        yield name, candidate


softmax_backward = SimpleNamespace(**dict(_made(_softmax)))
log_softmax_backward = SimpleNamespace(**dict(_made(_log_softmax)))
