"""The two gradients of a convolution over time in FLOAT, sums in order: the second implementation for tolerances.

gradInput sums by taps and output channels, gradWeight by times and batches; `conv_tbc_backward` has the letters.
"""

from __future__ import annotations

import math

import numpy as np

from aclnn_cts.oracles._convolution import padded, windows
from aclnn_cts.oracles._single_precision import Float32, forward_sum

_STEPS = 1 << 18
_TERMS = 1 << 28
"""Steps of the loops and products in them up to which they are run: some seconds."""
_STACKED = 1 << 16
"""Products up to which all are made at once; a step of a loop takes longer than some hundred of them."""


def gradients_in_order(grad: Float32, x: Float32, weight: Float32, pad: int) -> tuple[Float32, Float32] | None:
    """Both gradients, gradInput first; None where plain loops would take longer than seconds."""
    out_time, batch, out_channels = grad.shape
    time, _, in_channels = x.shape
    length = weight.shape[0]
    if length * out_channels + out_time * batch > _STEPS or length * grad.size * in_channels > _TERMS:
        return None
    products = length * batch * in_channels * out_channels * max(time, out_time)
    # Padding takes part as zeros there, which only finite operands make nothing of.
    largest = sum(float(np.abs(each).max(initial=0.0)) for each in (grad, x, weight))
    if 0 < products <= _STACKED and math.isfinite(largest):
        return _stacked(grad, x, weight, pad)
    return _to_input(grad, x, weight, pad), _to_weight(grad, x, weight, pad)


def _to_input(grad: Float32, x: Float32, weight: Float32, pad: int) -> Float32:
    result = np.zeros(x.shape, np.float32)
    for k in range(weight.shape[0]):
        low, high = max(0, k - pad), min(x.shape[0], grad.shape[0] + k - pad)
        for o in range(grad.shape[2] if low < high else 0):
            result[low:high] += grad[low + pad - k : high + pad - k, :, o, None] * weight[k, :, o]
    return result


def _to_weight(grad: Float32, x: Float32, weight: Float32, pad: int) -> Float32:
    result = np.zeros(weight.shape, np.float32)
    for u in range(grad.shape[0]):
        first, last = max(0, pad - u), min(weight.shape[0], x.shape[0] + pad - u)
        for b in range(grad.shape[1] if first < last else 0):
            result[first:last] += x[u + first - pad : u + last - pad, b, :, None] * grad[u, b]
    return result


def _stacked(grad: Float32, x: Float32, weight: Float32, pad: int) -> tuple[Float32, Float32]:
    """The same terms in the same order, all products at once and the sums along their first axis."""
    out_time, batch, out_channels = grad.shape
    time, _, in_channels = x.shape
    length = weight.shape[0]
    # Tap k of window l = length - 1 - k, as in `_convolution`.
    moved = windows(padded(grad, length - 1 - pad, time + length - 1), length, time)[::-1]
    terms = moved.transpose(0, 2, 1)[..., None] * weight.transpose(0, 2, 1)[:, :, None, :]
    of_input = forward_sum(terms.reshape(length * out_channels, -1), axis=0).reshape(time, batch, in_channels)
    moved = windows(padded(x, pad, out_time + length - 1), length, out_time)
    terms = moved.transpose(1, 0, 2)[..., None] * grad.reshape(-1, 1, 1, out_channels)
    of_weight = forward_sum(terms.reshape(out_time * batch, -1), axis=0).reshape(weight.shape)
    return of_input, of_weight
