"""How large inputs and intermediates can become, and what an underflow may be multiplied by afterwards.

Where nothing can overflow and no underflow matters, which is nearly always, one number an array shows it: the largest
of its elements with all factors below 1 left out. Where that does not suffice, `Reach` follows every element:

- `highest`: the largest intermediate on the way to it;
- `chain`: the largest product of any of the factors that it is a product of, prod max(1, |f_i|);
- `but_one`, `but_two`: the same without at least one, or two, of them;
- `weight`: what an underflow in it was multiplied by. Those of a factor meet the product of all others; a product of
  two factors that underflows meets others that come later, in some order.

Products are taken in any order. A sum, a function's result or a stored intermediate is one factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from aclnn_cts.core.expected import Float64, OracleInput

Range: TypeAlias = Any
"""A number or a `Reach`, as the class has it."""
Size: TypeAlias = Any
"""Magnitudes: a number or an array."""
Move: TypeAlias = "Callable[[Any], Any]"


GROWTH = 1.0 + 2.0**-10
"""How much larger rounding errors may make an intermediate than its bound says, with much to spare."""


class Reach(NamedTuple):
    """Of every element of an array; numbers where all are alike."""

    highest: Size
    chain: Size
    but_one: Size
    but_two: Size
    weight: Size


class Ranges:
    """How operations change what is known of an array's range; `size` bounds its elements' magnitudes.

    Here that is one number for all elements, at least as large as each of the four.
    """

    def leaf(self, size: Size, *, hi: float, loads: bool) -> Range:
        """An input, whose load may underflow."""
        return hi

    def sum_of_two(self, left: Range, right: Range, size: Callable[[], Any]) -> Range:
        """A sum or difference."""
        return left + right

    def product(self, left: Range, right: Range, sizes: Callable[[], tuple[Any, Any]]) -> Range:
        """A product of what has such magnitudes."""
        return max(left, 1.0) * max(right, 1.0)

    def scaled(self, array: Range, factor: float) -> Range:
        """A product with a power of two."""
        return max(array, 1.0) * max(factor, 1.0)

    def quotient(self, left: Range, divisor: Size, *, least: float) -> Range:
        """A quotient by what has such magnitudes, `least` the smallest of them."""
        return max(left, 1.0) * (max(1.0 / least, 1.0) if least else float("inf"))

    def total(self, array: Range, reduced: Move, size: Callable[[], Any], *, count: float) -> Range:
        """A sum of `count` elements; `reduced` takes the largest of them."""
        return array * max(count, 1.0)

    def contracted(
        self, left: Range, right: Range, sizes: Callable[[], tuple[Any, Any]], size: Callable[[], Any], *, count: float
    ) -> Range:
        """A sum of `count` products of what has such magnitudes."""
        return self.total(self.product(left, right, sizes), lambda values: values, size, count=count)

    def opaque(self, size: Callable[[], Any], *, hi: float) -> Range:
        """What is computed as such."""
        return hi

    def either(self, left: Range, right: Range) -> Range:
        """One of two."""
        return max(left, right)

    def joined(self, arrays: Sequence[Range], joined: Callable[[Sequence[Any]], Any]) -> Range:
        """The elements of several arrays; `joined` takes an array or a number of each."""
        return max(arrays)

    def moved(self, array: Range, move: Move) -> Range:
        """The elements in other places."""
        return array

    def weight(self, array: Range) -> Size:
        """What an underflow was multiplied by."""
        return max(array, 1.0)

    def highest(self, array: Range) -> Size:
        """The largest intermediate."""
        return array


class _Elements(Ranges):
    """A `Reach` an array."""

    def leaf(self, size: Size, *, hi: float, loads: bool) -> Reach:
        # Nothing is rounded yet.
        return Reach(size / GROWTH, np.maximum(size, 1.0), 1.0, 0.0, 1.0 if loads else 0.0)

    def sum_of_two(self, left: Reach, right: Reach, size: Callable[[], Any]) -> Reach:
        highest = np.maximum(left.highest, right.highest)
        return self._opaque(size(), highest, np.maximum(left.weight, right.weight))

    def product(self, left: Reach, right: Reach, sizes: Callable[[], tuple[Any, Any]]) -> Reach:
        of_left, of_right = sizes()
        return self._multiplied(
            np.maximum(left.highest, right.highest),
            left,
            right,
            np.maximum(left.weight * of_right, right.weight * of_left),
        )

    def _multiplied(self, highest: Size, left: Reach, right: Reach, weight: Size) -> Reach:
        chain = left.chain * right.chain
        but_two = np.maximum(left.but_one * right.but_one, left.but_two * right.chain)
        but_two = np.maximum(but_two, left.chain * right.but_two)
        return Reach(
            # Factors of which none is above 1 make no product larger.
            np.maximum(highest, np.where(np.minimum(left.chain, right.chain) <= 1.0, 0.0, chain)),
            chain,
            np.maximum(left.chain * right.but_one, left.but_one * right.chain),
            but_two,
            np.maximum(weight, but_two),
        )

    def scaled(self, array: Reach, factor: float) -> Reach:
        power = self.leaf(factor, hi=factor, loads=False)
        return self._multiplied(np.maximum(array.highest, power.highest), array, power, array.weight * factor)

    def quotient(self, left: Reach, divisor: Size, *, least: float) -> Reach:
        inverse = 1.0 / divisor
        factor = self.opaque(lambda: inverse, hi=0.0)
        return self._multiplied(np.maximum(left.highest, inverse), left, factor, left.weight * inverse)

    def total(self, array: Reach, reduced: Move, size: Callable[[], Any], *, count: float) -> Reach:
        return self._opaque(size(), reduced(array.highest), reduced(array.weight))

    def contracted(
        self, left: Reach, right: Reach, sizes: Callable[[], tuple[Any, Any]], size: Callable[[], Any], *, count: float
    ) -> Reach:
        product = self.product(left, right, sizes)
        if max(left.but_one, right.but_one) <= 1.0:
            # Both are single factors: each product is a term of its element, which the size counts.
            product = product._replace(highest=max(left.highest, right.highest))
        return self.total(product, lambda values: values, size, count=count)

    def opaque(self, size: Callable[[], Any], *, hi: float) -> Reach:
        return self._opaque(size(), 0.0, 0.0)

    def _opaque(self, size: Size, highest: Size, weight: Size) -> Reach:
        return Reach(np.maximum(highest, size), np.maximum(size, 1.0), 1.0, 0.0, np.maximum(weight, 1.0))

    def either(self, left: Reach, right: Reach) -> Reach:
        return Reach(*(np.maximum(*pair) for pair in zip(left, right, strict=True)))

    def joined(self, arrays: Sequence[Reach], joined: Callable[[Sequence[Any]], Any]) -> Reach:
        return Reach(*map(joined, zip(*arrays, strict=True)))

    def moved(self, array: Reach, move: Move) -> Reach:
        return Reach(*(move(part) for part in array))

    def weight(self, array: Reach) -> Size:
        return array.weight

    def highest(self, array: Reach) -> Size:
        return array.highest


WHOLE = Ranges()
ELEMENTS = _Elements()


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
    if (least := float(np.minimum.reduce(sizes, axis=None))) > 0.0:
        return least
    bits = np.minimum.reduce(sizes.reshape(-1).view(np.uint64) - _ONE) + _ONE
    return float(bits.view(np.float64)) or math.inf
