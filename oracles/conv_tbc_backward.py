r"""aclnnConvTbcBackward: the gradients of a convolution over time with respect to input, weight and bias.

With the gradient of the output `self` (To, B, Co), `input` (T, B, Ci) and `weight` (L, Ci, Co), To = T + 2 pad + 1 - L,
and only those terms whose time index exists:

    gradInput[t, b, i]  = sum_{k, o} self[t + pad - k, b, o] weight[k, i, o]
    gradWeight[k, i, o] = sum_{u, b} input[u + k - pad, b, i] self[u, b, o]
    gradBias[o]         = sum_{u, b} self[u, b, o]

Where pad > L - 1 some rows of `self` see nothing but padding: they count in gradBias alone. The values of `bias` are
never used.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator


def _gathered(f: F, self: Array, input: Array, weight: Array, pad: int) -> Outputs:
    gathered = f.take(self, _cells(self.shape, input.shape[0], range(pad, pad - weight.shape[0], -1)))
    return {
        "gradInput": f.einsum("tbko,kio->tbi", gathered, weight),
        "gradWeight": f.einsum("tbko,tbi->kio", gathered, input),
        "gradBias": self.sum(1).sum(0),
    }


def _scattered(f: F, self: Array, input: Array, weight: Array, pad: int) -> Outputs:
    length = weight.shape[0]
    # Steps before and after these meet nothing but padding.
    first = max(pad - length + 1, 0)
    seen = self[first : input.shape[0] + pad]
    cells = _cells(input.shape, seen.shape[0], range(first - pad, first - pad + length))
    products = f.einsum("ubo,kio->ubki", seen, weight)
    return {
        "gradInput": f.scatter_add(products, cells, input.shape),
        "gradWeight": f.einsum("ubki,ubo->kio", f.take(input, cells), seen),
        "gradBias": self.sum((0, 1)),
    }


def _convolution(f: F, input: Array, weight: Array, bias: Array, pad: int) -> Outputs:
    length = weight.shape[0]
    cells = _cells(input.shape, input.shape[0] + 2 * pad + 1 - length, range(-pad, length - pad))
    return {"y": f.einsum("ubki,kio->ubo", f.take(input, cells), weight) + bias}


@functools.lru_cache(maxsize=8)
def _cells(shape: tuple[int, int, int], steps: int, offsets: range) -> NDArray[np.int64]:
    """The places (u, b, k, c) in an array (T, B, C) that step u meets with tap k: those of time u + offsets[k].

    Kept, since a formula is evaluated several times for a call.
    """
    time, batch, channels = shape
    times = np.arange(steps)[:, None] + np.array(offsets, np.int64)
    times = np.where((times >= 0) & (times < time), times, -1).reshape(steps, 1, len(offsets), 1)
    return times * (batch * channels) + np.arange(batch * channels).reshape(batch, 1, channels)


FORMULA = Operator.of(
    _gathered,
    _scattered,
    derivative=Derivative(
        forward=_convolution,
        gradients={"self": "y"},
        wrt={"gradInput": "input", "gradWeight": "weight", "gradBias": "bias"},
    ),
)
