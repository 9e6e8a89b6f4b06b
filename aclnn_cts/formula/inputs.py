"""The floating inputs of a call, looked at once for all that is evaluated on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from aclnn_cts.core.expected import Float64, OracleInput

_TOGETHER = 1 << 14
"""Elements of all tensors up to which they are looked at as one: a step costs more than they do."""
_ONE = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Known:
    """One tensor."""

    size: Float64
    """Absolute values."""
    largest: float
    """inf or nan where one of them is."""
    least: float
    """A lower bound of those that are not 0."""

    def below(self, floor: float) -> bool:
        """Whether an element that is not 0 is below a number."""
        return self.least < floor and bool(((self.size < floor) & (self.size > 0.0)).any())


@dataclass(frozen=True, slots=True)
class Inputs:
    """All floating tensors of a call but those that are no numbers to compute with."""

    tensors: Mapping[str, Known]
    lattices: Mapping[str, float]
    radii: Mapping[str, Float64]

    @property
    def finite(self) -> bool:
        """Whether none holds inf or nan."""
        return all(math.isfinite(known.largest) for known in self.tensors.values())

    @classmethod
    def of(cls, call: OracleInput, raw: frozenset[str]) -> Inputs:
        """Those of a call."""
        arrays = {name: array for name, array in call.tensors.items() if array.dtype == np.float64 and name not in raw}
        sizes = [array.size for array in arrays.values()]
        if len(sizes) < 2 or not all(sizes) or sum(sizes) > _TOGETHER:
            return cls({name: _alone(array) for name, array in arrays.items()}, call.lattices, call.radii)
        flat = np.abs(np.concatenate([array.reshape(-1) for array in arrays.values()]))
        starts = [0]
        for size in sizes[:-1]:
            starts.append(starts[-1] + size)
        largest = np.maximum.reduceat(flat, starts).tolist()
        least = _least(flat)
        found = {}
        for (name, array), start, most in zip(arrays.items(), starts, largest, strict=True):
            found[name] = Known(flat[start : start + array.size].reshape(array.shape), most, least)
        return cls(found, call.lattices, call.radii)


def _alone(array: Float64) -> Known:
    size = np.abs(array)
    return Known(size, float(np.maximum.reduce(size, axis=None, initial=0.0)), _least(size) if size.size else math.inf)


def _least(sizes: Float64) -> float:
    """The least number that is not 0: in the order of their bits as integers 0 less 1 is the largest."""
    bits = np.minimum.reduce(sizes.reshape(-1).view(np.uint64) - _ONE) + _ONE
    return float(bits.view(np.float64)) or math.inf
