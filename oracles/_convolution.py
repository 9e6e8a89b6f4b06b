"""A convolution over time and its two gradients in NumPy, fast for small tensors and right for any operands.

`conv_tbc_backward` has the formulas and the letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64

Real: TypeAlias = NDArray[Any]

_STACKED_LIMIT = 1 << 18
"""Elements of the products of all kernel taps up to which they are computed in one stack instead of one by one."""


def with_sizes(calls: Sequence[Sequence[Float64]]) -> tuple[Float64, list[Float64]]:
    """The operands of n calls and their absolute values: side by side, (2, n, elements), and each operand in its shape.

    What is given second are views (2, n, ...) of the first.
    """
    both = np.empty((2, len(calls), sum(array.size for array in calls[0])))
    for place, arrays in enumerate(calls):
        np.concatenate([array.reshape(-1) for array in arrays], out=both[0, place])
    np.abs(both[0], out=both[1])
    views = []
    start = 0
    for array in calls[0]:
        views.append(both[..., start : start + array.size].reshape(2, len(calls), *array.shape))
        start += array.size
    return both, views


def fit_a_stack(grad: Real, x: Real, weight: Real) -> bool:
    """Whether operands of such shapes are small enough for the products of all taps to be made in one stack.

    Each operand is padded to the times of the other.
    """
    out_time, batch, out_channels = grad.shape
    time, _, in_channels = x.shape
    products = weight.shape[0] * batch * max(time, out_time) * max(in_channels, out_channels)
    return products <= _STACKED_LIMIT and grad.size > 0 and x.size > 0 and weight.size > 0


def gradients(grads: Float64, xs: Float64, weights: Float64, pad: int) -> tuple[Float64, Float64]:
    """The gradients (2, n, T, B, Ci) and (2, n, L, Ci, Co) of n calls' operands `with_sizes`, which must be finite.

    First the values, then the same sums over absolute values.
    """
    if fit_a_stack(grads[0, 0], xs[0, 0], weights[0, 0]):
        return _stacked(grads, xs, weights, pad)
    outer = grads.shape[:2]
    time, length = xs.shape[2], weights.shape[2]
    of_input, of_weight = np.empty(xs.shape), np.empty(weights.shape)
    for place in np.ndindex(outer):
        of_input[place] = to_input(grads[place], weights[place], time, pad)
        of_weight[place] = to_weight(grads[place], xs[place], length, pad)
    return of_input, of_weight


def to_input(grad: Real, weight: Real, time: int, pad: int) -> Real:
    """The value of gradInput, one matrix product a tap over the times alone that exist: right for any operands."""
    length, in_channels, _ = weight.shape
    result: Real = np.zeros((time, grad.shape[1], in_channels), grad.dtype)
    for k in range(length):
        low, high = max(0, k - pad), min(time, grad.shape[0] + k - pad)
        if low < high:
            reached = result[low:high]
            reached += grad[low + pad - k : high + pad - k] @ weight[k].T
    return result


def to_weight(grad: Real, x: Real, length: int, pad: int) -> Real:
    """The value of gradWeight in the same way."""
    out_time, batch, out_channels = grad.shape
    time, _, in_channels = x.shape
    result: Real = np.zeros((length, in_channels, out_channels), grad.dtype)
    for k in range(length):
        low, high = max(0, k - pad), min(time, out_time + k - pad)
        if low < high:
            pairs = (high - low) * batch
            used = grad[low + pad - k : high + pad - k].reshape(pairs, out_channels)
            result[k] = x[low:high].reshape(pairs, in_channels).T @ used
    return result


def _stacked(grads: Float64, xs: Float64, weights: Float64, pad: int) -> tuple[Float64, Float64]:
    """The same with zeros for padding, and all taps of all operands in one stack of products.

    Small tensors take a fraction of the loop's time. A tap's operand is a view of the padded tensor, moved by one time
    step from tap to tap.
    """
    *outer, out_time, batch, out_channels = grads.shape
    time, in_channels = xs.shape[-3], xs.shape[-1]
    length = weights.shape[-3]
    # Time t meets tap k at self[t + pad - k]: step t + (length - 1 - k) of what starts at pad - length + 1.
    moved = windows(padded(grads, length - 1 - pad, time + length - 1), length, time)
    products = moved @ weights[..., ::-1, :, :].swapaxes(-2, -1)
    of_input = np.add.reduce(products, axis=-3).reshape(*outer, time, batch, in_channels)
    # Time u meets tap k at input[u + k - pad]: step u + k of what starts at -pad.
    moved = windows(padded(xs, pad, out_time + length - 1), length, out_time)
    of_weight = moved.swapaxes(-2, -1) @ grads.reshape(*outer, 1, out_time * batch, out_channels)
    return of_input, of_weight


def padded(array: Real, before: int, steps: int) -> Real:
    """An array (..., T, B, C) over `steps` times from `before` ahead of it (cut if negative), zeros around it."""
    *outer, time, batch, channels = array.shape
    result = np.zeros((*outer, steps, batch, channels), array.dtype)
    low, high = max(before, 0), min(time + before, steps)
    if low < high:
        result[..., low:high, :, :] = array[..., low - before : high - before, :, :]
    return result


def windows(array: Real, length: int, steps: int) -> Real:
    """Views (..., length, steps * B, C) of (..., steps + length - 1, B, C), each a time step after the one before."""
    *more, _, batch, channels = array.shape
    *outer, time, _, element = array.strides
    strides = (*outer, time, channels * element, element)
    views: Real = np.ndarray((*more, length, steps * batch, channels), array.dtype, array, strides=strides)
    return views


def convolution(x: Float64, weight: Float64, out_time: int, pad: int) -> Float64:
    """The forward operator, y[u] = sum_k x[u + k - pad] weight[k] over the times of x that exist."""
    result = np.zeros((out_time, x.shape[1], weight.shape[2]))
    for u in range(out_time):
        for k in range(max(0, pad - u), min(weight.shape[0], x.shape[0] + pad - u)):
            result[u] += x[u + k - pad] @ weight[k]
    return result
