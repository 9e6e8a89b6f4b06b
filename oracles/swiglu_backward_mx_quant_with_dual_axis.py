"""aclnnSwigluBackwardMxQuantWithDualAxis: the gradient of SwiGLU, quantised in blocks of 32 along both axes.

A block has the scale 2^floor(log2(max |V|)) 2^-8, by the document's formula. The document names cuBLAS besides, whose
scale is max |V| / 448 rounded up to a power of two. The two differ where the largest is above 1.75 times its power.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Operator
from aclnn_cts.oracles._windows import Numbers, Shape

BLOCK, LARGEST, LEAST_SCALE = 32, 448.0, 2.0**-127


def _gradient(f: F, x: Array, yGrad: Array, *, activateLeft: bool) -> Array:
    halves = x[:, : yGrad.shape[1]], x[:, yGrad.shape[1] :]
    a, b = halves if activateLeft else halves[::-1]
    s = f.sigmoid(a)
    of_a, of_b = yGrad * b * s * (1.0 + a - a * s), yGrad * a * s
    gradient: Array = f.concat([of_a, of_b] if activateLeft else [of_b, of_a], 1)
    return gradient


def _quantised(f: F, values: Array, ends: Sequence[int], dtype: str) -> tuple[Array, Array]:
    """The scales of all blocks of rows, group after group, and the elements."""
    starts = np.concatenate([np.arange(low, high, BLOCK) for low, high in zip((0, *ends), ends, strict=False)])
    stops = np.append(starts[1:], ends[-1])
    longest = int(np.max(stops - starts))
    rows = np.minimum(starts[:, None] + np.arange(longest), stops[:, None] - 1)  # a short block has its last row again
    # Whether the gradient is rounded to the dtype of x is not said. Of elements the compute model allows it.
    sizes = f.take(f.where(values > 0.0, values, -values), np.arange(values.size).reshape(values.shape)[rows])
    largest, values = f.narrowed(sizes.max(1), dtype), f.narrowed(values, dtype, normal=False)
    of = np.arange(largest.size).reshape(largest.shape)[np.repeat(np.arange(len(starts)), stops - starts)]
    scales = f.binade(largest) * 2.0**-8, f.binade(largest, of=LARGEST / 256.0) * 2.0**-7
    quotients = [values / f.take(scale, of) for scale in scales]
    low, high = (f.where(q > LARGEST, LARGEST, f.where(q < -LARGEST, -LARGEST, q)) for q in quotients)
    return f.either(*scales), f.either(low, high)


def _interleaved(f: F, scales: Array, ends: Sequence[int], shape: Shape) -> Array:
    """Pairs of rows of scales. A group begins behind the one before it, or at its row / 64 and its number: not said."""
    tables = np.full((2, shape[0] * 2), -2)
    first, packed = 0, 0
    for group, (low, high) in enumerate(zip((0, *ends), ends, strict=False)):
        blocks = -(-(high - low) // BLOCK)
        for table, at in zip(tables, (packed, low // 64 + group), strict=True):
            table[2 * at : 2 * at + blocks + blocks % 2] = -1
            table[2 * at : 2 * at + blocks] = first + np.arange(blocks)
        first, packed = first + blocks, packed + -(-blocks // 2)
    table, other = tables.reshape(2, shape[0], 1, 2)
    cells = np.where(table < 0, -1, table * shape[1] + np.arange(shape[1])[:, None])
    pairs: Array = f.undecided(f.take(scales, cells, LEAST_SCALE), where=(table != other) | (table == -2))
    return pairs


def _backward(
    f: F, x: Array, yGrad: Array, groupIndexOptional: Numbers | None, *, activateLeft: bool, dtypes: dict[str, str],
    mxscale1Out: Shape, mxscale2Out: Shape,
) -> Outputs:  # fmt: skip
    gradient = _gradient(f, x, yGrad, activateLeft=activateLeft)
    ends = [x.shape[0]] if groupIndexOptional is None else groupIndexOptional.tolist()
    scale1, y1 = _quantised(f, gradient.transpose(1, 0), [x.shape[1]], dtypes["x"])
    scale2, y2 = _quantised(f, gradient, ends, dtypes["x"])
    return {
        "y1Out": y1.transpose(1, 0),
        "mxscale1Out": scale1.transpose(1, 0).reshape(*mxscale1Out),
        "y2Out": y2,
        "mxscale2Out": _interleaved(f, scale2, ends, mxscale2Out),
    }


FORMULA = Operator.of(_backward, derivative="its results are quantised: steps have no derivative")
