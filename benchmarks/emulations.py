"""Sums and products as a correct implementation may compute them, one rounding at a time, in NumPy.

Numbers are float64 arrays that hold values of the emulated format, so that every rounding is one `round_to`. The sum
and the product of two FLOAT numbers are right when they are rounded to FLOAT by way of float64, which has more than
twice its bits (Figueroa, *When is double rounding innocuous?*, SIGNUM Newsletter 30, 1995). A fused multiply-add is the
product in float64, which is exact, plus the sum, rounded once more; the 2^-53 of that is part of every bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Float64
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat, binary_format, round_to, toward_zero

Operand: TypeAlias = Callable[[Float64], Float64]
"""What becomes of an operand before it is used."""

ORDERS = ("forward", "reversed", "pairwise", "blocked", "random")
_BLOCK = 16
_FLOAT = BINARY_FORMATS["FLOAT"]


def unrounded(values: Float64) -> Float64:
    """Operands as they are stored."""
    return values


def rounding_even(form: BinaryFormat) -> Operand:
    """Operands rounded to the nearest number of a format, ties to even."""
    return functools.partial(round_to, form=form)


def rounding_away(form: BinaryFormat) -> Operand:
    """Operands rounded to the nearest number of a format, ties to the larger magnitude."""
    # A relative step far below any format's unit takes a tie to the larger magnitude and moves nothing else.
    return lambda values: round_to(values * (1.0 + 2.0**-40), form)


def each_its_own(operands: Sequence[Operand], key: int) -> Operand:
    """Each operand by one of these rules, at random."""

    def operand(values: Float64) -> Float64:
        random = np.random.Generator(np.random.Philox(key))
        chosen = random.integers(len(operands), size=values.shape)
        return np.choose(chosen, [rule(values) for rule in operands])

    return operand


def hfloat32(stored: int) -> BinaryFormat:
    """HFLOAT32 with 10 or 11 stored bits."""
    return binary_format("HFLOAT32", significand=stored + 1, min_exponent=-126, max_exponent=127)


def _float(values: Float64) -> Float64:
    """`round_to` for FLOAT, without a change of NumPy's error state: `emulate` made that once."""
    return values.astype(np.float32).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One of the ways in which an implementation may compute."""

    order: str = "forward"
    fused: bool = False
    formula: int = 0
    """Which of the operator's equivalent formulas, modulo their number."""
    operand: Operand = unrounded
    truncates: bool = False
    """Whether sums are truncated instead of rounded."""
    flushes: bool = False
    """Whether operands and results below the normal range become 0."""
    flush_below: float = _FLOAT.smallest_normal
    """The smallest normal number of the operands' format."""
    accumulation: BinaryFormat = _FLOAT
    """The format of partial sums; everything else is computed in FLOAT."""
    factor: float | None = None
    """What one term of one sum is multiplied by, for a fault; None: no fault."""
    key: int = 0
    """Decides the random order, and which term of which sum a fault meets."""


@dataclass(slots=True)
class Sums:
    """The arithmetic of one emulated call: knows how many sums were asked for, so that a fault meets one of them."""

    way: Way
    count: int
    """How many sums the operator computes."""
    done: int = 0
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """The stream of random decisions."""
        self.random = np.random.Generator(np.random.Philox(self.way.key))

    def single(self, values: Float64) -> Float64:
        """The result of one operation in FLOAT, which was computed in float64."""
        return self._flushed(_float(values))

    def load(self, values: Float64) -> Float64:
        """An operand as it is used."""
        values = self.way.operand(values)
        if self.way.flushes:
            return np.where(np.abs(values) < self.way.flush_below, 0.0, values)
        return values

    def plain(self, values: Float64) -> Float64:
        """An operand that no mode rounds."""
        return self._flushed(values)

    def product(self, left: Float64, right: Float64) -> Float64:
        """A product, rounded."""
        return self.single(left * right)

    def difference(self, left: Float64, first: Float64, second: Float64) -> Float64:
        """The difference left - first second; with a fused operation it is rounded once."""
        product = first * second
        return self.single(left - (product if self.way.fused else self.single(product)))

    def dot(self, left: Float64, right: Float64, exists: NDArray[np.bool_] | None = None) -> Float64:
        """The sum over axis 0 of the products of arrays that broadcast; terms that do not exist are left out."""
        terms = left * right
        if exists is not None:
            terms = np.where(exists, terms, 0.0)
        return self.total(terms, exact=True)

    def total(self, terms: Float64, *, exact: bool = False) -> Float64:
        """The sum over axis 0. `exact`: the terms are products that are not rounded yet."""
        number, self.done = self.done, self.done + 1
        way = self.way
        if way.factor is not None and way.key % self.count == number:
            terms = self._harm(terms, way.factor)
        if not terms.shape[0]:
            return np.zeros(terms.shape[1:])
        if exact and not way.fused:
            terms, exact = self.single(terms), False
        if way.order == "pairwise":
            return self._pairwise(terms, exact=exact)
        if way.order == "blocked":
            return self._blocked(terms, exact=exact)
        if way.order == "reversed":
            terms = terms[::-1]
        elif way.order == "random":
            terms = terms[self.random.permutation(terms.shape[0])]
        return self._forward(terms, exact=exact)

    def _harm(self, terms: Float64, factor: float) -> Float64:
        """One term of one sum that has others, multiplied."""
        flat = terms.reshape(terms.shape[0], -1)
        counted = (flat != 0.0) & np.isfinite(flat)
        counted &= np.count_nonzero(counted, axis=0) > 1
        places = np.flatnonzero(counted)
        if places.size:
            flat = flat.copy()
            flat.reshape(-1)[self.random.choice(places)] *= factor
        return flat.reshape(terms.shape)

    def _partial(self, values: Float64) -> Float64:
        form = self.way.accumulation
        if self.way.truncates:
            return self._flushed(toward_zero(values, form))
        return self._flushed(_float(values) if form is _FLOAT else round_to(values, form))

    def _flushed(self, values: Float64) -> Float64:
        if self.way.flushes:
            return np.where(np.abs(values) < _FLOAT.smallest_normal, 0.0, values)
        return values

    def _forward(self, terms: Float64, *, exact: bool) -> Float64:
        way = self.way
        if not exact and not way.truncates and not way.flushes and way.accumulation is _FLOAT:
            sums: NDArray[Any] = np.add.accumulate(terms.astype(np.float32), axis=0)[-1]
            return np.asarray(sums, np.float64)
        # The first product alone is an operation too; a term that was rounded before is loaded.
        result = self._partial(terms[0])
        for term in terms[1:]:
            result = self._partial(result + term)
        return result

    def _pairwise(self, terms: Float64, *, exact: bool) -> Float64:
        if exact:
            terms = terms.copy()
            terms[1::2] = self.single(terms[1::2])
            if terms.shape[0] % 2:
                terms[-1] = self.single(terms[-1])
        terms = self._partial(terms) if terms.shape[0] == 1 else terms
        while terms.shape[0] > 1:
            even = terms.shape[0] // 2 * 2
            sums = self._partial(terms[0:even:2] + terms[1:even:2])
            terms = np.concatenate([sums, terms[even:]]) if even < terms.shape[0] else sums
        result: Float64 = terms[0]
        return result

    def _blocked(self, terms: Float64, *, exact: bool) -> Float64:
        blocks = -(-terms.shape[0] // _BLOCK)
        if blocks == 1:
            return self._forward(terms, exact=exact)
        padded = np.zeros((blocks * _BLOCK, *terms.shape[1:]))
        padded[: terms.shape[0]] = terms
        inside = padded.reshape(blocks, _BLOCK, *terms.shape[1:]).swapaxes(0, 1)
        return self._forward(self._forward(inside, exact=exact), exact=False)
