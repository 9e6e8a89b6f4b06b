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

Error term, with gamma_m = m u / (1 - m u) (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapter
4): the sum of the k elements of a range in any order takes k - 1 additions and is off by at most gamma_{k-1}
times the sum of their absolute values; a matrix unit's products with 0 and 1 are exact. Underflow: the loads and the
additions, where the model flushes.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import ErrorTerm, Expected, ExpectedOutput, Float64, OracleInput
from aclnn_cts.formula.array import Array, F, Outputs
from aclnn_cts.formula.definition import Derivative, Operator
from aclnn_cts.oracles._exact import sum_of_products
from aclnn_cts.oracles._nearest import Edges, differing, edges_exact, edges_forward, edges_range
from aclnn_cts.oracles._single_precision import Float32, forward_sum, single
from aclnn_cts.oracles._special_values import finite_part

_KEPT = 1 << 12
"""Both lengths together up to which ranges are kept: a few megabytes for all."""


def expected(call: OracleInput) -> Expected:
    """The gradient `out`, (N, C, ol)."""
    grad: Float64 = call.tensors["gradOutput"]
    length, width = grad.shape[-1], call.shape("out")[-1]
    if not length or not width:
        return {"out": ExpectedOutput(value=np.zeros((*grad.shape[:-1], width)), partial=np.zeros(()))}
    with np.errstate(all="ignore"):
        scale = max(call.number("scalesOptional"), 0.0)
        # A search asks for the same few lengths again and again, and the ranges take longer than their sums.
        ranges = (_kept_ranges if length + width <= _KEPT else _ranges)(length, width, scale)
        value = _sums(grad, ranges)
        magnitude = _sums(np.abs(grad), ranges)
        partial = magnitude
        if not math.isfinite(np.add.reduce(magnitude, axis=None)):
            # Sums of inf and nan come out as in every order of summation; the magnitudes speak of the finite terms.
            magnitude = _sums(np.abs(finite_part(grad)), ranges)
            partial = np.where(np.isnan(value), 0.0, magnitude)
        return {
            "out": ExpectedOutput(
                value=value,
                terms=(ErrorTerm(kind="compute", count=ranges.additions, magnitude=magnitude),),
                underflows=ranges.underflows,
                partial=partial,
                lattice=call.lattices.get("gradOutput"),
                open=None if ranges.unsettled is None else np.broadcast_to(ranges.unsettled, value.shape),
            )
        }


def exact(call: OracleInput, output: str, index: tuple[int, ...]) -> Fraction:
    """One element in rational arithmetic: every j is asked where it was copied from; gradients must be finite."""
    grad = call.tensors["gradOutput"]
    length, width = grad.shape[-1], call.shape("out")[-1]
    line = grad[index[0], index[1]].tolist()
    sources = (min((2 * j + 1) * width // (2 * length), width - 1) for j in range(length))
    return sum_of_products([line[j] for j, source in enumerate(sources) if source == index[2]])


def benchmark(call: OracleInput) -> dict[str, Float32]:
    """The gradient in FLOAT over the exact map's ranges, each from its first element to its last."""
    grad = single(call.tensors["gradOutput"])
    length, width = grad.shape[-1], call.shape("out")[-1]
    out = np.zeros((*grad.shape[:-1], width), np.float32)
    if length and width:
        edges = edges_exact(length, width)
        sizes = edges[1:] - edges[:-1]
        with np.errstate(all="ignore"):
            if sizes.max() > width:
                for place, (first, last) in enumerate(itertools.pairwise(edges)):
                    out[..., place] = forward_sum(grad[..., first:last], axis=-1)[..., 0]
                return {"out": out}
            for step in range(int(sizes.max())):
                wide = sizes > step
                out[..., wide] += grad[..., edges[:-1][wide] + step]
    return {"out": out}


class _Ranges(NamedTuple):
    """What the elements of a line of `out` receive by the exact map; arrays over the line, none to be written to."""

    starts: Edges
    """Of the ranges that are not empty: they follow each other without a hole."""
    filled: NDArray[np.bool_] | None
    """Which elements those belong to; None: all."""
    additions: NDArray[np.int64]
    underflows: NDArray[np.int64]
    """Loads and additions."""
    unsettled: NDArray[np.bool_] | None
    """Where a map gives an element another range; None where all agree everywhere."""


def _ranges(length: int, width: int, scale: float) -> _Ranges:
    """The ranges of lines of `length`, summed to `width` elements; `scale` is 0 where it has no say."""
    edges = edges_exact(length, width)
    sizes = edges[1:] - edges[:-1]
    filled = sizes > 0 if length < width else None
    starts = edges[:-1] if filled is None else edges[:-1][filled]
    additions = np.maximum(sizes - 1, 0)
    found = _Ranges(starts, filled, additions, sizes + additions, _unsettled(edges, scale, length))
    for array in found:
        if array is not None:
            array.flags.writeable = False
    return found


_kept_ranges = functools.lru_cache(maxsize=256)(_ranges)


def _unsettled(edges: Edges, scale: float, length: int) -> NDArray[np.bool_] | None:
    """Where a map gives an element another range than the exact one; None where all agree everywhere."""
    width = edges.size - 1
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
    return differing(edges, others)


def _sums(grad: Float64, ranges: _Ranges) -> Float64:
    """The sum of each range along the last axis, 0 for an empty one."""
    sums: Float64 = np.add.reduceat(grad, ranges.starts, axis=-1)
    if ranges.filled is None:
        return sums
    value = np.zeros((*grad.shape[:-1], ranges.filled.size))
    value[..., ranges.filled] = sums
    return value


def _formula(f: F, gradOutput: Array, scalesOptional: float, out: tuple[int, ...]) -> Outputs:
    length, width = gradOutput.shape[-1], out[-1]
    if not length or not width:
        return {"out": f.lift(np.zeros(out))}
    ranges = (_kept_ranges if length + width <= _KEPT else _ranges)(length, width, max(scalesOptional, 0.0))
    total = f.scatter_add(gradOutput, _cells(gradOutput.shape, width), out)
    return {"out": total if ranges.unsettled is None else f.undecided(total, where=ranges.unsettled)}


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


@functools.lru_cache(maxsize=256)
def _cells(shape: tuple[int, ...], width: int) -> Edges:
    """Where each element of `gradOutput` was copied from."""
    source = (2 * np.arange(shape[-1]) + 1) * width // (2 * shape[-1])
    cells = (np.arange(math.prod(shape[:-1]))[:, None] * width + source).reshape(shape)
    cells.flags.writeable = False
    return cells


FORMULA = Operator.of(
    _formula,
    _gathered,
    derivative=Derivative(forward=_upsampled, gradients={"gradOutput": "y"}, wrt={"out": "self"}),
)
