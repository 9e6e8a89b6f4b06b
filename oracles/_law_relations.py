"""What laws are put together from: relations between computed results, shuffles and sums rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.law import Draw, LawCheck, LawInput, LawOutput, Parameters


def gamma64(count: int) -> float:
    """gamma_count of float64, for counts far below 2^53."""
    product = count * 2.0**-53
    return product / (1.0 - product)


def key(draw: Draw) -> Parameters:
    """The one choice of a law that shuffles: what the shuffling starts from."""
    return {"key": draw(0, 2**32 - 1)}


def shuffled(count: int, start: int) -> NDArray[np.int64]:
    """A permutation of `count` places that depends on `start` alone (Fisher and Yates, by a 64-bit congruence)."""
    places = list(range(count))
    state = (start * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    for last in range(count - 1, 0, -1):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        other = (state >> 33) % (last + 1)
        places[last], places[other] = places[other], places[last]
    return np.array(places, dtype=np.int64)


def all_finite(base: LawInput, *names: str) -> bool:
    """Whether the named inputs (all of them where none is named) hold neither inf nor nan."""
    return all(bool(np.isfinite(base.tensors[name]).all()) for name in names or tuple(base.tensors))


def same(output: str, left: LawOutput, right: LawOutput, relation: str) -> LawCheck:
    """Two results of one exact value: at most e1 + e2 apart, and equal where each has one conforming result."""
    bound = np.where(left.single & right.single, 0.0, left.distance + right.distance)
    bound = np.where(left.judged & right.judged, bound, np.inf)
    return LawCheck(output=output, left=left.got, right=right.got, bound=bound, relation=relation)


def combined(output: str, terms: Sequence[tuple[float, LawOutput]], right: LawOutput, relation: str) -> LawCheck:
    """sum_i c_i y_i against y, where the exact results obey: at most sum_i |c_i| e_i + e apart."""
    with np.errstate(all="ignore"):
        left = np.zeros(right.got.shape)
        bound = right.bound
        size = np.abs(right.got)
        for factor, term in terms:
            left = left + factor * term.got
            bound = bound + abs(factor) * term.bound
            size = size + np.abs(factor * term.got)
        bound = np.where(bound > 0.0, bound + gamma64(2 * len(terms)) * size, bound)
    return LawCheck(output=output, left=left, right=right.got, bound=bound, relation=relation)


def totals(values: Float64, axis: int) -> Float64:
    """The sums along an axis, each rounded once."""
    lines = np.moveaxis(values, axis, -1)
    sums = np.empty(lines.shape[:-1])
    for index in np.ndindex(*sums.shape):
        line = lines[index]
        sums[index] = math.fsum(line.tolist()) if np.isfinite(line).all() else line.sum()
    return sums
