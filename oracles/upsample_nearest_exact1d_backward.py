r"""aclnnUpsampleNearestExact1dBackward: each element of `gradOutput` is added to the element it was copied from.

With gl = the length of `gradOutput` and ol = `inputSize[2]`, the length of `out`:

    out[n, c, i] = sum_{j: source(j) = i} gradOutput[n, c, j]

The formula of the document is a lost picture, and nearest-exact sampling is evaluated in three ways that differ where
a rounding meets a tie. Each source map is monotone, so that element i receives a range [edge(i), edge(i + 1)) of j:

- exact: source(j) = floor((j + 1/2) ol / gl), that is edge(i) = ceil(i gl / ol - 1/2), in integers;
- range, each operation rounded to float32: edge(i) = ceil(fl(fl(i s) - 1/2)), s = fl(gl / ol), cut to [0, gl];
- forward, each operation rounded to float32: source(j) = floor(fl((j + 1/2) fl(ol / gl))), at most ol - 1.

Of `scalesOptional` the document says no more than that it is a scaling factor of `out`; some implementations let a
positive one take the place of gl / ol. Then three more maps join: range with s = fl(scale), forward with
fl(1 / scale), and range in double precision (an exact map of the scale has no claim: the double is itself rounded).

An element on which all maps agree has that sum for its value; every other one is open. An element that
receives nothing is exactly 0.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._nearest import Edges, differing, edges_exact, edges_forward, edges_range

_KEPT = 1 << 12
"""Both lengths together up to which masks are kept: a megabyte for all."""


def _unsettled(length: int, width: int, scale: float) -> NDArray[np.bool_] | None:
    """Where a map gives an element another range than the exact one; `scale` is 0 where it has no say.

    None where all agree everywhere.
    """
    single = np.float32
    others = [
        edges_range(single(length) / single(width), length, width),
        edges_forward(single(width) / single(length), length, width),
    ]
    if scale > 0:
        factor = np.float64(scale)
        others += [
            edges_range(single(factor), length, width),
            edges_range(factor, length, width),
            edges_forward(single(1 / factor), length, width),
        ]
    return differing(edges_exact(length, width), others)


_kept_unsettled = functools.lru_cache(maxsize=256)(_unsettled)


def _formula(f: F, gradOutput: Array, scalesOptional: float, out: tuple[int, ...]) -> Outputs:
    length, width = gradOutput.shape[-1], out[-1]
    if not length or not width:
        return {"out": f.lift(np.zeros(out))}
    total = f.scatter_add(gradOutput, _cells(gradOutput.shape, width), out)
    # A search asks for the same few lengths again and again, and the maps take longer than the sums.
    mask = (_kept_unsettled if length + width <= _KEPT else _unsettled)(length, width, max(scalesOptional, 0.0))
    return {"out": total if mask is None else f.undecided(total, where=mask)}


def _gathered(f: F, gradOutput: Array, scalesOptional: float, out: tuple[int, ...]) -> Outputs:
    length, width = gradOutput.shape[-1], out[-1]
    if not length or not width:
        return {"out": f.lift(np.zeros(out))}
    edges = edges_exact(length, width)
    steps = np.arange(int((edges[1:] - edges[:-1]).max()))
    places = np.where(edges[:-1, None] + steps < edges[1:, None], edges[:-1, None] + steps, -1)
    lines = np.arange(math.prod(out[:-1])).reshape(*out[:-1], 1, 1) * length
    return {"out": f.take(gradOutput, np.where(places >= 0, lines + places, -1)).sum(-1)}


def _upsampled(f: F, self: Array, gradOutput: tuple[int, ...]) -> Outputs:
    return {"y": f.take(self, _cells(gradOutput, self.shape[-1]))}


@functools.lru_cache(maxsize=8)
def _cells(shape: tuple[int, ...], width: int) -> Edges:
    """Where each element of `gradOutput` was copied from; kept, since a formula is evaluated again and again."""
    source = (2 * np.arange(shape[-1]) + 1) * width // (2 * shape[-1])
    cells = (np.arange(math.prod(shape[:-1]))[:, None] * width + source).reshape(shape)
    cells.flags.writeable = False
    return cells


FORMULA = Operator.of(
    _formula,
    _gathered,
    derivative=Derivative(forward=_upsampled, gradients={"gradOutput": "y"}, wrt={"out": "self"}),
)

LEADING = -1
