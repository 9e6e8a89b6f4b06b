r"""Values with a bound of what any correct implementation may add to them: running error analysis of a formula.

Every array holds its exact value v (float64; longer where intermediates are float64 themselves) and bounds the error of
the computed one by

    E = gamma_k m + e + n eta w        gamma_k = k u / (1 - k u)

- m >= |v| is the sum of absolute values of the terms that v is made of; |v| itself for a product of inputs;
- k counts the successive roundings that each of these terms has met;
- e is an absolute error that no count describes: of a function's argument, of terms with different counts;
- n counts operations whose result may underflow, each by at most eta; what that is multiplied by later is at most w
  (`reach`).

The rules are those of Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapters 2 to 4; u carries the
unit roundoff of the value's own arithmetic:

    e(a b)   = M_a e_b + M_b e_a + e_a e_b,  M = (1 + gamma_k) m,  k = k_a + k_b + 1
    e(a / b) = (e_a + m rho) / (1 - rho),    rho = e_b / |b|; nothing is known where that reaches 1
    sums: n terms in any order meet at most n - 1 additions each; sums of sums are one sum
    functions: how far an error of the argument carries (`functions`), and their own stated error

Keeping m instead of |v| makes the bound hold for every order of sums and products, and for a factor that is multiplied
into the terms of a sum. `as_written` puts |v| in the place of m: what is behind it is computed as it stands.

Exactness: where every term is a multiple of a power of two (`lattice`) and m has no more digits than the significand,
nothing is rounded in any order. Overflow: the largest intermediate decides at the outputs; where a divisor, an argument
of a function or a side of a comparison may overflow, a finite result of it means nothing, and the error is inf.

Most calls neither overflow nor underflow, which is known from the largest element of each input. Only where that does
not suffice is the reach of every element followed (`careful`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.expected import Arithmetic
from aclnn_cts.core.rounding import BINARY_FORMATS, covers, nearest, rounded
from aclnn_cts.formula.array import Array, Backend, Cells, Operand, taken
from aclnn_cts.formula.contraction import Contraction, contract, subscripts_of
from aclnn_cts.formula.functions import FUNCTIONS
from aclnn_cts.formula.reach import ELEMENTS, GROWTH, WHOLE, Inputs, Ranges
from aclnn_cts.judgement.model import ORACLE_ROUNDOFF, gamma

Real: TypeAlias = NDArray[Any]
_ADD: Any = np.add.reduce
_MAX: Any = np.maximum.reduce
"""Without NumPy's overloads, which know no `keepdims` that is decided later."""
Amount: TypeAlias = "float | Real"

_LONGER = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant
_NEGLIGIBLE = 2.0**20
"""Times eta: an underflow allowance that hides no error anybody could mean. Above it, its share decides."""
_SHARE = 2.0**-7
_LATER = 8.0
"""Roundings of a product, and of what it is added to, up to the next quantity that is one number."""
_SLACK = 2.0**-51
"""Of the middle of an interval: what float64 rounds in it and in the ends that are found from it."""


class Tracked(Array):
    """An array of `Bounds`; the letters are those of the module."""

    __slots__ = (
        "_later",
        "_m",
        "_make",
        "_rounding",
        "e",
        "hi",
        "lattice",
        "length",
        "n",
        "number",
        "reach",
        "single",
        "still",
        "terms",
        "v",
    )

    f: Bounds

    def __init__(  # noqa: PLR0913 - the letters of the module
        self,
        f: Bounds,
        v: Any,  # noqa: ANN401 - a number for constants
        *,
        make: Callable[[], Any] | None = None,
        terms: Amount = 0.0,
        length: Amount = 1.0,
        still: bool = True,
        e: Amount | None = None,
        n: float = 0.0,
        hi: float,
        lattice: float | None = None,
        reach: Any = None,  # noqa: ANN401 - as the ranges at hand have it
    ) -> None:
        self.f, self.v, self.terms, self.length, self.still = f, v, terms, length, still
        self.e, self.n, self.hi, self.lattice, self.reach = e, n, hi, lattice, reach
        self._later: tuple[tuple[int, ...], Callable[[], Tracked]] | None = None
        self.single = False
        """Whether e is the error of one number, of which all that follows is computed (`evaluated`)."""
        self.number = 0.0
        """The value of a number that stands in the formula; 0 for everything else."""
        self._m: Any = None
        self._make = make
        self._rounding: Amount | None = None

    @classmethod
    def later(cls, f: Bounds, shape: tuple[int, ...], make: Callable[[], Tracked]) -> Tracked:
        """An array that is made when something of it but its shape is asked for, if ever."""
        array = cls.__new__(cls)
        array.f, array._later = f, (shape, make)  # noqa: SLF001 - of this class
        return array

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - asked for what is not there yet
        later = None if name == "_later" else self._later
        if later is None:
            raise AttributeError(name)
        self._later = None
        made = later[1]()
        for slot in Tracked.__slots__:
            setattr(self, slot, getattr(made, slot))
        return getattr(self, name)

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.v.shape if self._later is None else self._later[0]
        return shape

    @property
    def m(self) -> Any:  # noqa: ANN401 - a number for constants
        """The sum of absolute values; made when it is first asked for."""
        if self._m is None:
            self._m = np.abs(self.v) if self._make is None else self._make()
        return self._m

    @property
    def plain(self) -> bool:
        """Whether m is |v|."""
        return self._make is None

    @property
    def k(self) -> Amount:
        """The roundings that each term has met: its own, and the additions of a sum of `length` terms."""
        if self.still:
            return 0.0
        if isinstance(self.length, float):
            return self.terms + self.length - 1.0
        return self.terms + np.maximum(self.length - 1.0, 0.0)

    @property
    def certain(self) -> bool:
        """Whether nothing at all was rounded."""
        return self.e is None and not self.n and self.still

    def error(self) -> Amount | None:
        """E; None for nothing at all."""
        whole: Amount | None = _plus(self.rounding(), self.underflow())
        return whole

    def rounding(self) -> Amount | None:
        """E without what underflows; kept, since an output is asked for it twice."""
        if self.still:
            return self.e
        if self._rounding is None:
            self._rounding = _plus(self.e, self.f.gamma(self.k) * self.m)
        return self._rounding

    def underflow(self) -> Amount | None:
        """What underflows at most add."""
        return self.n * self.f.eta * self.f.ranges.weight(self.reach) if self.n else None

    def size_with_error(self) -> Any:  # noqa: ANN401 - a number or an array
        """The largest magnitude that a computed element may have, but for roundings and underflow."""
        return self.m if self.e is None else self.m + self.e


class Condition(Array):
    """A comparison: where it holds exactly, where computed sides may decide otherwise, where nothing is known."""

    __slots__ = ("doubt", "unknown", "v")

    f: Bounds

    def __init__(self, f: Bounds, v: Real, doubt: Real | None, unknown: Real | None) -> None:
        self.f, self.v, self.doubt, self.unknown = f, v, doubt, unknown

    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape


def _plus(left: Any, right: Any) -> Any:  # noqa: ANN401 - numbers, arrays or None
    if left is None:
        return right
    return left if right is None else left + right


def _full(values: Any, shape: tuple[int, ...]) -> Real:  # noqa: ANN401 - a number or an array
    """Values in their full shape."""
    if isinstance(values, np.ndarray) and values.shape == shape:
        return values
    return np.broadcast_to(values, shape)


def _there(array: Tracked, letters: str, others: str) -> Real:
    """1 where an element is a term of a sum, 0 where it is outside of what was taken, in a shape that broadcasts.

    Where all are there, a dimension whose letter the other operand has not is of size 1.
    """
    if isinstance(array.length, float):
        return np.ones([size if letter in others else 1 for letter, size in zip(letters, array.shape, strict=True)])
    length = _full(array.length, array.shape)
    return length if _largest(length) <= 1.0 else np.minimum(length, 1.0)


def _largest(values: Any) -> float:  # noqa: ANN401 - a number or an array
    return float(np.maximum.reduce(values, axis=None, initial=0.0))


def _power_below(sizes: Any, of: float) -> Real:  # noqa: ANN401 - a number or an array
    """The greatest power of two that is, times `of`, not above each; 0 where there is none, and no number as it is."""
    halves, exponents = np.frexp(sizes)
    exponents = exponents - np.where(2.0 * halves < of, 2, 1)
    powers: Real = np.ldexp(np.ones_like(sizes), np.where(np.isfinite(sizes), exponents, 0))
    return np.where(np.isfinite(sizes) & (sizes > 0.0), powers, np.maximum(sizes, 0.0))


def _lattice(combine: Callable[[Iterable[float]], float], *arrays: Tracked) -> float | None:
    """The power of two that divides all elements of a result of arrays; none where one of them has none."""
    known = [array.lattice for array in arrays if array.lattice is not None]
    return combine(known) if len(known) == len(arrays) else None


def _power_of_two(value: float) -> bool:
    return value != 0.0 and math.frexp(abs(value))[0] == 0.5


class Bounds(Backend[Tracked]):
    """The error analysis of one call in one arithmetic. NumPy's warnings are the caller's concern."""

    __slots__ = (
        "any_order",
        "arithmetic",
        "bits",
        "careful",
        "dtype",
        "eta",
        "inputs",
        "largest",
        "peak",
        "ranges",
        "stores",
        "u",
        "used",
    )

    def __init__(
        self,
        arithmetic: Arithmetic,
        *,
        inputs: Inputs,
        careful: bool = False,
        any_order: bool = True,
    ) -> None:
        self.arithmetic = arithmetic
        form = arithmetic.accumulation
        longer = form.significand >= 53 and _LONGER
        self.dtype = np.longdouble if longer else np.float64
        self.u = arithmetic.roundoff + (0.0 if longer else ORACLE_ROUNDOFF)
        self.bits, self.eta, self.largest = form.significand, arithmetic.floor, form.largest
        self.inputs, self.careful, self.any_order = inputs, careful, any_order
        self.ranges: Ranges = ELEMENTS if careful else WHOLE
        self.peak = 0.0
        """The largest intermediate that no output shows."""
        self.used: dict[str, None] = {}
        """The functions whose accuracy is part of a bound, in the order of their use."""
        self.stores = False
        """Whether an intermediate was rounded to the format of the output."""

    def gamma(self, count: Amount) -> Amount:
        """gamma_k in this arithmetic."""
        found: Amount = gamma(count, self.u)
        return found

    # Where arrays come from

    def leaf(self, name: str, values: Real) -> Tracked:
        """An input tensor; a mode may have rounded it by as much as its radius says."""
        known = self.inputs.tensors[name]
        radius = self.inputs.radii.get(name)
        array = Tracked(
            self,
            values if self.dtype is np.float64 else values.astype(self.dtype),
            e=radius,
            hi=known.largest,
            lattice=None if radius is not None else self.inputs.lattices.get(name),
        )
        array._m = known.size  # noqa: SLF001 - it is made here
        if self.arithmetic.flushes and (array.lattice is None or array.lattice < self.eta):
            array.n = float(known.below(self.eta))
        array.reach = self.ranges.leaf(
            known.size if radius is None else known.size + radius, hi=known.largest, loads=bool(array.n)
        )
        return array

    def lift(self, value: Operand) -> Tracked:
        """Numbers and arrays of the formula itself, rounded where the format does not hold them."""
        if isinstance(value, Tracked):
            return value
        if isinstance(value, (int, float)):
            return self._number(float(value))
        if isinstance(value, Array):
            raise TypeError(f"{type(value).__name__} is no operand of an arithmetic operation")
        array = np.asarray(value, np.float64)
        size = np.abs(array)
        hi = float(np.maximum.reduce(size, axis=None, initial=0.0))
        form = self.arithmetic.accumulation
        held = bool(np.array_equal(rounded(array, form), array))
        whole = held and bool(np.array_equal(np.trunc(array), array))
        made = Tracked(
            self,
            array.astype(self.dtype, copy=False),
            terms=0.0 if held else 1.0,
            still=held,
            hi=hi,
            lattice=1.0 if whole else None,
            reach=self.ranges.leaf(size, hi=hi, loads=False),
        )
        made._m = size  # noqa: SLF001 - it is made here
        return made

    def _number(self, value: float) -> Tracked:
        size = abs(value)
        fraction, exponent = math.frexp(size)
        scaled = math.ldexp(fraction, self.bits)
        held = scaled == math.floor(scaled) and size <= self.largest
        lattice: float | None = None
        if held:
            digits = int(scaled)
            lattice = math.ldexp(digits & -digits, exponent - self.bits) if digits else math.inf
        number = Tracked(
            self,
            self.dtype(value),
            terms=0.0 if held else 1.0,
            still=held,
            hi=size,
            lattice=lattice,
            reach=self.ranges.leaf(size, hi=size, loads=False),
        )
        number.number = value
        return number

    # Arithmetic

    def add(self, left: Tracked, right: Tracked) -> Tracked:
        return self._add(left, right, left.v + right.v)

    def sub(self, left: Tracked, right: Tracked) -> Tracked:
        return self._add(left, right, left.v - right.v)

    def _add(self, left: Tracked, right: Tracked, v: Any) -> Tracked:  # noqa: ANN401 - as `Tracked.v`
        result = Tracked(
            self,
            v,
            make=lambda: left.m + right.m,
            length=left.length + right.length,
            still=False,
            n=left.n + right.n,
            hi=left.hi + right.hi,
            lattice=_lattice(min, left, right),
        )
        result.reach = self.ranges.sum_of_two(left.reach, right.reach, result.size_with_error)
        if left.certain and right.certain and self._exact(result):
            result.still = True
            return self._ordered(result)
        flushed = 1.0 if self.arithmetic.flushes else 0.0
        if not (isinstance(result.length, float) and isinstance(left.terms, float) and isinstance(right.terms, float)):
            return self._ordered(self._add_by_element(result, left, right, underflows=flushed))
        # Of both, the terms with fewer roundings set the count; the others' are an error beside it.
        result.terms = min(left.terms, right.terms)
        base = self.gamma(result.terms + result.length - 1.0)
        for each in (left, right):
            if each.terms > result.terms:
                more = self.gamma(each.terms + result.length - 1.0) - base
                result.e = _plus(result.e, more * each.m)
            if each.e is not None:
                result.e = _plus(result.e, each.e * (1.0 + self.gamma(result.length - each.length)))
        self._round(result, 0.0, underflows=flushed)
        return self._ordered(result)

    def _add_by_element(self, result: Tracked, left: Tracked, right: Tracked, *, underflows: float) -> Tracked:
        """A sum whose terms have met other numbers of roundings from element to element."""
        for each in (left, right):
            counts = each.terms + np.maximum(result.length - 1.0, 0.0)
            result.e = _plus(result.e, self.gamma(counts) * each.m)
            if each.e is not None:
                result.e = result.e + each.e * (1.0 + self.gamma(result.length))
        result.still, result.lattice = True, None
        result.n += underflows
        return result

    def mul(self, left: Tracked, right: Tracked) -> Tracked:
        if left.number:
            left, right = right, left
        if right.number and _power_of_two(right.number):
            return self._scaled(left, right.number)
        plain = left.plain and right.plain
        result = Tracked(
            self,
            left.v * right.v,
            make=None if plain else lambda: left.m * right.m,
            terms=left.k + right.k,
            still=left.still and right.still,
            n=left.n + right.n,
            hi=left.hi * right.hi,
            lattice=_lattice(math.prod, left, right),
            reach=self.ranges.product(
                left.reach, right.reach, lambda: (left.size_with_error(), right.size_with_error())
            ),
        )
        if right.e is not None:
            grown = self._carrying(left, right)
            result.e = right.e * (grown if left.e is None else grown + left.e)
        if left.e is not None:
            result.e = _plus(result.e, left.e * self._carrying(right, left))
        if result.e is not None:
            result.e = result.e * (1.0 + self.u)
        self._round(result, 1.0, underflows=1.0)
        return result

    def _carrying(self, factor: Tracked, other: Tracked, later: float = _LATER) -> Any:  # noqa: ANN401 - or a number
        """What an error of the other factor is multiplied by at most, but for an error of this one beside its terms.

        That of one number meets this factor itself: where its terms are multiplied one by one, they have that number in
        common, and only their roundings, of which `later` are still to come, are errors of each.
        """
        if other.single:
            return np.abs(factor.v) + self.gamma(factor.k + later) * factor.m
        return factor.m if factor.still else factor.m * (1.0 + self.gamma(factor.k))

    def _scaled(self, array: Tracked, factor: float) -> Tracked:
        """Times a power of two: exact, but for what underflows."""
        size = abs(factor)
        make = array._make
        result = Tracked(
            self,
            array.v * factor,
            make=None if make is None else lambda: array.m * size,
            terms=array.terms,
            length=array.length,
            still=array.still,
            e=None if array.e is None else array.e * size,
            n=array.n,
            hi=array.hi * size,
            lattice=None if array.lattice is None else array.lattice * size,
            reach=self.ranges.scaled(array.reach, size),
        )
        if size < 1.0 and (result.lattice is None or result.lattice < self.eta):
            result.n += 1.0
        if size == 1.0 and array._m is not None:  # noqa: SLF001 - of this class
            result._m = array._m  # noqa: SLF001 - of this class
        return result

    def div(self, left: Tracked, right: Tracked) -> Tracked:
        if right.number and _power_of_two(right.number):
            return self._scaled(left, 1.0 / right.number)
        self.used["div"] = None
        stated = self.arithmetic.function("div")
        count: Amount = 2.0 * stated.ulps + stated.relative / self.u
        size = np.abs(right.v)
        least = float(np.minimum.reduce(size, axis=None, initial=math.inf)) if np.ndim(size) else float(size)
        reciprocal = math.inf if least == 0.0 else 1.0 / least
        result = Tracked(
            self,
            left.v / right.v,
            make=None if left.plain else lambda: left.m / size,
            terms=left.k,
            still=left.still,
            e=None if left.e is None else left.e / size,
            n=left.n + right.n,
            hi=left.hi * reciprocal,
            reach=self.ranges.quotient(left.reach, size, least=least),
        )
        self._met(right)
        if right.e is None and not right.n and (right.plain or right.still):
            result.terms = result.terms + right.k
            result.still = result.still and right.still
            if right.still and right.lattice is not None and not right.number:
                whole = np.frexp(size)[0] == 0.5
                if whole.size and whole.all():
                    return self._divided_exactly(result, left, right)
                if whole.any():
                    count = np.where(whole, 0.0, count)
        else:
            rho = right.error() / size
            whole_error = left.error()
            inner = result.m if whole_error is None else result.m + whole_error / size
            more = np.where(rho < 1.0, inner * rho / (1.0 - np.minimum(rho, 1.0 - 2.0**-40)), np.inf)
            result.e = _plus(result.e, more)
        if result.e is not None:
            result.e = result.e * (1.0 + self.gamma(count))
        if stated.absolute:
            result.e = _plus(result.e, stated.absolute)
        self._round(result, count, underflows=1.0)
        # A reciprocal that underflows is multiplied by the numerator.
        if right.hi > 1.0 / self.eta:
            result.e = _plus(result.e, left.m * self.eta)
        return self._absorbing(result, right)

    def _divided_exactly(self, result: Tracked, left: Tracked, right: Tracked) -> Tracked:
        """By powers of two: nothing is rounded but what underflows."""
        result.lattice = None if left.lattice is None else left.lattice / right.hi
        if result.lattice is None or result.lattice < self.eta:
            result.lattice = None
            result.n += 1.0
        return result

    def _exact(self, result: Tracked) -> bool:
        """Whether a lattice makes an operation on certain operands exact."""
        lattice = result.lattice
        if lattice is None or lattice < self.eta:
            return False
        limit = lattice * 2.0**self.bits  # inf for large DOUBLE lattices: ldexp would raise
        if result.hi <= limit:
            return True
        result.hi = min(result.hi, float(np.maximum.reduce(result.m, axis=None, initial=0.0)))
        return result.hi <= limit

    def _round(self, result: Tracked, count: Amount, *, underflows: float) -> None:
        """Count the roundings of an operation, where its result is not known to be exact.

        On a lattice no count was ever needed: `still` holds of every array that has one.
        """
        if result.lattice is not None and result.lattice >= self.eta:
            length = result.length
            result.still, result.terms = True, 0.0
            if result.e is None and self._exact(result):
                return
            # Some elements have too many digits, and others have not.
            more = length - 1.0 if isinstance(length, float) else np.maximum(length - 1.0, 0.0)
            size = result.m if result.e is None else result.m + result.e
            limit = result.lattice * 2.0**self.bits
            result.e = _plus(result.e, np.where(size <= limit, 0.0, self.gamma(count + more) * result.m))
            return
        result.lattice = None
        result.terms = result.terms + count
        result.still = False
        result.n += underflows

    def _ordered(self, result: Tracked) -> Tracked:
        return result if self.any_order else self.as_written(result)

    def _met(self, array: Tracked) -> None:
        """An intermediate that no output need show when it overflows."""
        if not self.careful:
            self.peak = max(self.peak, float(array.reach))

    def _beyond_largest(self, array: Tracked) -> NDArray[np.bool_]:
        """Where an intermediate may overflow; nan counts."""
        return ~(np.asarray(self.ranges.highest(array.reach)) * GROWTH <= self.largest)

    def _absorbing(self, result: Tracked, *operands: Tracked) -> Tracked:
        """Where an operand may have overflowed a finite result means nothing."""
        if self.careful:
            for each in operands:
                beyond = self._beyond_largest(each)
                if beyond.any():
                    result.e = np.where(beyond, np.inf, 0.0 if result.e is None else result.e)
        return result

    # Sums

    def sum(self, array: Tracked, axes: tuple[int, ...], *, keepdims: bool) -> Tracked:
        count = float(math.prod(array.shape[place] for place in axes))
        if not axes:
            return array

        def reduced(values: Any) -> Any:  # noqa: ANN401 - arrays or numbers
            return _ADD(_full(values, array.shape), axis=axes, keepdims=keepdims)

        length = array.length * count if isinstance(array.length, float) else reduced(array.length)
        result = Tracked(
            self,
            _ADD(array.v, axis=axes, keepdims=keepdims),
            make=lambda: reduced(array.m),
            terms=self._highest(array.terms),
            length=max(length, 1.0) if isinstance(length, float) else length,
            still=array.still,
            e=None if array.e is None else reduced(array.e),
            n=array.n * count,
            hi=array.hi * count,
            lattice=array.lattice,
        )

        def highest(values: Any) -> Any:  # noqa: ANN401 - arrays or numbers
            return _MAX(_full(values, array.shape), axis=axes, keepdims=keepdims, initial=0.0)

        result.reach = self.ranges.total(array.reach, highest, result.size_with_error, count=count)
        return self._ordered(self._summed(result, array, count))

    def _summed(self, result: Tracked, array: Tracked, count: float) -> Tracked:
        """The roundings of a sum of at most so many elements."""
        if count <= 1.0 or (array.certain and self._exact(result)):
            return result
        if result.e is not None:
            result.e = result.e * (1.0 + self.gamma(count - 1.0))
        result.still = False
        self._round(result, 0.0, underflows=count - 1.0 if self.arithmetic.flushes else 0.0)
        return result

    def scatter_add(self, array: Tracked, cells: Cells, shape: tuple[int, ...]) -> Tracked:
        return Tracked.later(self, shape, lambda: self._scatter_add(array, cells, shape))

    def _scatter_add(self, array: Tracked, cells: Cells, shape: tuple[int, ...]) -> Tracked:
        size = math.prod(shape)
        flat = _full(cells, array.shape).reshape(-1)
        # What is outside is added to a place of its own, before all others.
        outside = int(flat.size > 0 and int(np.minimum.reduce(flat)) < 0)
        if outside:
            flat = np.maximum(flat, -1)
            flat += 1

        def added(values: Any) -> Real:  # noqa: ANN401 - arrays or numbers
            whole = _full(values, array.shape).reshape(-1)
            if whole.dtype != np.float64:
                sums = np.zeros(size + outside, whole.dtype)
                np.add.at(sums, flat, whole)
                return sums[outside:].reshape(shape)
            # Of nothing it returns integers, weights or not.
            sums = np.bincount(flat, weights=whole, minlength=size + outside).astype(np.float64, copy=False)
            return sums[outside:].reshape(shape)

        counts = np.bincount(flat, minlength=size + outside)[outside:].reshape(shape).astype(np.float64)
        most = float(np.maximum.reduce(counts, axis=None, initial=0.0))
        length = counts * array.length if isinstance(array.length, float) else added(array.length)
        result = Tracked(
            self,
            added(array.v),
            make=lambda: added(array.m),
            terms=self._highest(array.terms),
            length=length,
            still=array.still,
            e=None if array.e is None else added(array.e),
            n=array.n * most,
            hi=array.hi * most,
            lattice=array.lattice,
        )

        def highest(values: Any) -> Real:  # noqa: ANN401 - arrays or numbers
            found = np.zeros(size + outside)
            np.maximum.at(found, flat, _full(values, array.shape).reshape(-1))
            return found[outside:].reshape(shape)

        result.reach = self.ranges.total(array.reach, highest, result.size_with_error, count=most)
        return self._ordered(self._summed(result, array, most))

    def einsum(self, subscripts: str, left: Tracked, right: Tracked) -> Tracked:
        plan = contract(subscripts, left.shape, right.shape)
        return Tracked.later(self, plan.shape, lambda: self._einsum(subscripts, plan, left, right))

    def _einsum(self, subscripts: str, plan: Contraction, left: Tracked, right: Tracked) -> Tracked:
        count = float(plan.terms)
        length: Amount = count
        if not (isinstance(left.length, float) and isinstance(right.length, float)):
            first, second, _ = subscripts_of(subscripts)
            there = _there(left, first, second), _there(right, second, first)
            length = contract(subscripts, there[0].shape, there[1].shape)(*there)
        result = Tracked(
            self,
            plan(left.v, right.v),
            make=lambda: plan(_full(left.m, left.shape), _full(right.m, right.shape)),
            terms=self._highest(left.k) + self._highest(right.k),
            length=length,
            still=left.still and right.still,
            n=(left.n + right.n) * count,
            hi=left.hi * right.hi * count,
            lattice=_lattice(math.prod, left, right),
        )
        if right.e is not None:
            grown = self._carrying(left, right, count + 1.0)
            grown = grown if left.e is None else grown + left.e
            result.e = plan(_full(grown, left.shape), _full(right.e, right.shape))
        if left.e is not None:
            grown = self._carrying(right, left, count + 1.0)
            result.e = _plus(result.e, plan(_full(left.e, left.shape), _full(grown, right.shape)))
        result.reach = self.ranges.contracted(
            # For all elements together: which products meet which element is not followed.
            self.ranges.moved(left.reach, _largest),
            self.ranges.moved(right.reach, _largest),
            lambda: (_largest(left.size_with_error()), _largest(right.size_with_error())),
            result.size_with_error,
            count=count,
        )
        if left.certain and right.certain and self._exact(result):
            return self._ordered(result)
        if result.e is not None:
            result.e = result.e * (1.0 + self.gamma(count))
        result.still = False
        flushed = max(count - 1.0, 0.0) if self.arithmetic.flushes else 0.0
        self._round(result, 1.0, underflows=count + flushed)
        return self._ordered(result)

    def _highest(self, count: Amount) -> float:
        return count if isinstance(count, float) else float(np.maximum.reduce(count, axis=None, initial=0.0))

    def max(self, array: Tracked, axes: tuple[int, ...], *, keepdims: bool) -> Tracked:
        def reduced(values: Any) -> Any:  # noqa: ANN401 - arrays or numbers
            return _MAX(np.broadcast_to(values, array.shape), axis=axes, keepdims=keepdims)

        error = array.error()
        self._met(array)
        # |max(x + d) - max(x)| <= max |d|
        result = Tracked(
            self,
            reduced(array.v),
            e=None if error is None else reduced(error),
            hi=array.hi,
            lattice=array.lattice,
            reach=self.ranges.moved(array.reach, reduced),
        )
        return self._absorbing(result, result)

    # Structure

    def moved(self, array: Tracked, move: Callable[[Any], Any]) -> Tracked:
        shape = array.shape

        def moved(values: Any) -> Any:  # noqa: ANN401 - arrays, numbers or None
            if values is None or isinstance(values, float):
                return values
            return move(_full(values, shape))

        make = array._make
        result = Tracked(
            self,
            move(np.asarray(array.v)),
            make=None if make is None else lambda: moved(array.m),
            terms=moved(array.terms),
            length=moved(array.length),
            still=array.still,
            e=moved(array.e),
            n=array.n,
            hi=array.hi,
            lattice=array.lattice,
            reach=self.ranges.moved(array.reach, moved),
        )
        if make is None and array._m is not None and not isinstance(array._m, float):  # noqa: SLF001 - of this class
            result._m = moved(array._m)  # noqa: SLF001 - of this class
        result.single = array.single
        return result

    def joined(self, arrays: Sequence[Tracked], axis: int) -> Tracked:
        def joined(parts: Iterable[Any]) -> Real:  # of arrays or numbers
            return np.concatenate(
                [_full(part, array.shape) for part, array in zip(parts, arrays, strict=True)], axis=axis
            )

        result = Tracked(
            self,
            joined(array.v for array in arrays),
            make=None if all(array.plain for array in arrays) else lambda: joined(array.m for array in arrays),
            n=max(array.n for array in arrays),
            hi=max(array.hi for array in arrays),
            lattice=_lattice(min, *arrays),
            reach=self.ranges.joined([array.reach for array in arrays], joined),
        )
        terms = {array.terms if isinstance(array.terms, float) else None for array in arrays}
        lengths = {array.length if isinstance(array.length, float) else None for array in arrays}
        stills = {array.still for array in arrays}
        if len(terms) == len(stills) == 1 and None not in terms and (len(lengths) == 1 or None in lengths):
            first = arrays[0]
            result.terms, result.still = first.terms, first.still
            result.length = joined(array.length for array in arrays) if None in lengths else first.length
            errors = [array.e for array in arrays]
        else:
            # As of a choice: the terms with fewer roundings set the count.
            result.terms = min(self._highest(array.k) for array in arrays)
            result.still = all(array.still for array in arrays)
            errors = [self._beyond(array, result.terms) for array in arrays]
        result.single = all(array.single or (array.e is None and array.still) for array in arrays)
        if any(error is not None for error in errors):
            result.e = joined(0.0 if error is None else error for error in errors)
        return result

    def take(self, array: Tracked, cells: Cells, fill: float = 0.0) -> Tracked:
        return Tracked.later(self, cells.shape, lambda: self._take(array, cells, fill))

    def _take(self, array: Tracked, cells: Cells, fill: float) -> Tracked:
        inside = cells >= 0
        if inside.all():
            return self.moved(array, lambda values: values.reshape(-1).take(cells))
        if not array.size:
            return self.lift(np.full(cells.shape, fill))
        result = self.moved(array, lambda values: taken(values, cells, 0.0))
        if fill:
            result.v = np.where(inside, result.v, fill)
            result._m = np.where(inside, result.m, abs(fill))  # noqa: SLF001 - of this class
            result._make = lambda: result._m  # noqa: SLF001 - of this class
            result.hi = max(result.hi, abs(fill))
            number = self._number(fill)
            result.lattice = _lattice(min, result, number)
            result.reach = self.ranges.either(result.reach, number.reach)
            if not number.still:
                result.e = np.where(inside, 0.0 if result.e is None else result.e, abs(fill) * self.u)
        else:
            # What is outside is 0 whatever the rest is, and no term of a sum.
            result.length = np.where(inside, result.length, 0.0)
        return result

    # Decisions

    def gt(self, left: Tracked, right: Tracked) -> Any:  # noqa: ANN401 - a Condition is no Tracked
        difference = np.asarray(left.v - right.v)
        error = _plus(left.error(), right.error())
        self._met(left)
        self._met(right)
        unknown = None
        if self.careful:
            beyond = self._beyond_largest(left) | self._beyond_largest(right)
            unknown = np.broadcast_to(beyond, difference.shape) if beyond.any() else None
        # Where nothing errs, equal sides are equal.
        doubt = None if error is None else (np.abs(difference) <= error) & (error > 0.0)
        return Condition(self, difference > 0.0, doubt, unknown)

    def where(self, condition: Any, left: Operand, right: Operand) -> Tracked:  # noqa: ANN401 - as of `gt`
        first, second = self.lift(left), self.lift(right)
        if not isinstance(condition, Condition):
            condition = Condition(self, np.asarray(condition), None, None)
        chosen = condition.v
        result = Tracked(
            self,
            np.where(chosen, first.v, second.v),
            make=None if first.plain and second.plain else lambda: np.where(chosen, first.m, second.m),
            n=max(first.n, second.n),
            hi=max(first.hi, second.hi),
            lattice=_lattice(min, first, second),
            reach=self.ranges.either(first.reach, second.reach),
        )
        if not (first.still and second.still):
            low = min(self._highest(first.k), self._highest(second.k))
            result.terms, result.still = low, low == 0.0
        parts = [self._beyond(each, result.terms) for each in (first, second)]
        if parts[0] is not None or parts[1] is not None:
            result.e = np.where(chosen, *(0.0 if part is None else part for part in parts))
        if condition.doubt is not None and condition.doubt.any():
            errors = [0.0 if (error := each.error()) is None else error for each in (first, second)]
            hull = np.abs(first.v - second.v) + np.maximum(errors[0], errors[1])
            result.e = np.where(condition.doubt, hull, 0.0 if result.e is None else result.e)
        if condition.unknown is not None:
            result.e = np.where(condition.unknown, np.inf, 0.0 if result.e is None else result.e)
        return result

    def _beyond(self, array: Tracked, count: Amount) -> Any:  # noqa: ANN401 - as `_plus`
        """The error of an array beyond `count` roundings of its terms, underflow aside."""
        k = array.k
        if isinstance(k, float) and k == count:
            return array.e
        return _plus(array.e, np.maximum(self.gamma(k) - self.gamma(count), 0.0) * array.m)

    # Functions and roundings

    def function(self, name: str, array: Tracked) -> Tracked:
        self.used[name] = None
        function, stated = FUNCTIONS[name], self.arithmetic.function(name)
        x = np.asarray(array.v, self.dtype)
        v = function.value(x).astype(self.dtype, copy=False)
        count = 2.0 * stated.ulps + stated.relative / self.u
        if self.dtype is not np.float64:
            count += 1.0  # some functions are known to float64 alone
        self._met(array)
        hi = float(np.maximum.reduce(np.abs(v), axis=None, initial=0.0))
        result = Tracked(self, v, terms=count, still=False, n=1.0, hi=hi)
        error = array.error()
        if error is not None:
            result.e = function.spread(x, v, np.asarray(error)) * (1.0 + self.gamma(count))
        if stated.absolute:
            result.e = _plus(result.e, np.full(v.shape, stated.absolute))
        # Units in the last place of a narrow format are more than `GROWTH` allows for.
        growth = 1.0 + self.gamma(count)
        result.reach = self.ranges.opaque(lambda: result.size_with_error() * growth, hi=2.0 * hi)
        return self._absorbing(result, array)

    def binade(self, array: Tracked, *, of: float = 1.0) -> Tracked:
        """In the middle between the powers of two that the argument's ends have."""
        self._met(array)
        size, error = np.abs(array.v), array.error()
        least, most = (_power_below(size if error is None else size + sign * error, of) for sign in (-1.0, 1.0))
        known = least > 0.0
        result = Tracked(self, np.where(known, (least + most) / 2.0, most), hi=_largest(most))
        if not known.all() or (least < most).any():
            result.e = np.where(known, (most - least) / 2.0, np.inf)
        result.lattice = float(np.minimum.reduce(least, axis=None, initial=math.inf, where=known)) / 2.0
        result.reach = self.ranges.opaque(lambda: most, hi=result.hi)
        return self._absorbing(result, array)

    def either(self, first: Tracked, second: Tracked) -> Tracked:
        """In the middle of the interval that holds both."""
        errors = [np.asarray(0.0 if (error := each.rounding()) is None else error) for each in (first, second)]
        least = np.minimum(first.v - errors[0], second.v - errors[1])
        most = np.maximum(first.v + errors[0], second.v + errors[1])
        alike = (first.v == second.v) | ~np.isfinite(most - least)
        middle = np.where(alike, first.v, least + (most - least) / 2.0)
        half = np.where(alike, np.maximum(*errors), (most - least) / 2.0 + np.abs(middle) * _SLACK)
        half = np.where(np.isnan(most - least), np.inf, half)
        return Tracked(
            self,
            middle,
            e=half if half.any() else None,
            n=max(first.n, second.n),
            hi=max(first.hi, second.hi),
            lattice=None if half.any() else _lattice(min, first, second),
            reach=self.ranges.either(first.reach, second.reach),
        )

    def narrowed(self, array: Tracked, dtype: str, *, normal: bool = True) -> Tracked:
        """In the middle of the interval that the ends and what they are rounded to leave."""
        form = BINARY_FORMATS[dtype]
        if covers(form, self.arithmetic.accumulation):
            return array
        self._met(array)
        error = array.error()
        v, margin = np.asarray(array.v, np.float64), np.asarray(0.0 if error is None else error, np.float64)
        ends = np.stack(np.broadcast_arrays(v - margin, v + margin))
        found = nearest(ends, form)
        small = (ends[0] < form.smallest_normal) & (ends[1] > -form.smallest_normal)
        least, most = np.minimum(ends[0], found[0]), np.maximum(ends[1], found[1])
        if self.arithmetic.flushes:
            least, most = np.where(small, np.minimum(least, 0.0), least), np.where(small, np.maximum(most, 0.0), most)
        changed = np.isfinite(most - least) & (True if normal else small)
        middle = np.where(changed, least + (most - least) / 2.0, v)
        half = np.where(changed, (most - least) / 2.0 + np.abs(middle) * _SLACK, margin)
        half = np.where(np.isinf(found).any(0), np.inf, half)
        result = Tracked(self, middle.astype(self.dtype, copy=False), e=half, hi=array.hi * (1.0 + form.unit_roundoff))
        result.reach = self.ranges.opaque(lambda: np.abs(middle) + half, hi=result.hi)
        return self._absorbing(result, array)

    def store(self, array: Tracked) -> Tracked:
        self.stores = True
        form = self.arithmetic.output
        result = self.moved(array, lambda values: values)
        if covers(form, self.arithmetic.accumulation):
            return result
        lattice = array.lattice
        held = array.certain and lattice is not None and lattice >= form.smallest_normal
        if held and lattice is not None and array.hi <= min(lattice * 2.0**form.significand, form.largest):
            return result
        result.terms, result.length, result.still = array.k, 1.0, False
        result.lattice = None
        error = array.error()
        largest = array.m if error is None else array.m + error
        result.terms = result.terms + form.unit_roundoff / self.u
        result.e = _plus(result.e, form.smallest_normal if self.arithmetic.flushes else form.smallest_subnormal)
        if array.e is not None:
            result.e = result.e + array.e * form.unit_roundoff
        if array.hi > form.largest:
            result.e = np.where(largest > form.largest, np.inf, result.e)
        return result

    def as_written(self, array: Tracked) -> Tracked:
        if array.plain and isinstance(array.length, float):
            if array.length == 1.0:
                return array
            result = self.moved(array, lambda values: values)
            result.terms, result.length = array.k, 1.0
            return result
        error = array.error()
        self._met(array)
        size = np.abs(array.v)
        result = Tracked(self, array.v, e=error, hi=array.hi, lattice=array.lattice)
        result.reach = self.ranges.opaque(lambda: size if error is None else size + error, hi=array.hi)
        return self._absorbing(result, array)

    def grouped(self, array: Tracked) -> Tracked:
        result = self.moved(array, lambda values: values)
        result.terms, result.length = array.k, 1.0
        result.reach = self.ranges.total(array.reach, lambda values: values, result.size_with_error, count=1.0)
        return result

    def difference(self, left: Tracked, right: Tracked) -> Tracked:
        result = super().difference(left, right)
        if result.e is not None and left.certain and right.certain:
            size = np.abs(result.v)
            result.e = self.u * size
            if self.arithmetic.flushes:
                result.e = result.e + np.where((size > 0.0) & (size < self.eta), self.eta, 0.0)
        return result

    def evaluated(self, array: Tracked) -> Tracked:
        written = self.as_written(array)
        result = self.moved(written, lambda values: values)
        result.single = result.plain and result.still and result.e is not None
        return result

    def released(self, array: Tracked) -> Tracked:
        size = array.m
        if not array.plain:
            array._make = lambda: size
        return array

    def undecided(self, array: Tracked, *, where: NDArray[np.bool_] | bool) -> Tracked:
        if where is False or not np.any(where):
            return array
        result = self.moved(array, lambda values: values)
        shape = array.shape
        result.e = np.where(np.broadcast_to(where, shape), np.inf, 0.0 if array.e is None else array.e)
        return result

    # What came of it

    def settled(self, output: Tracked) -> bool:
        """Whether nothing may overflow, and one number bounds what underflows in all elements of an output."""
        reach = float(output.reach)  # first: to make the output may raise the peak
        if not max(self.peak, reach) * GROWTH <= self.largest:
            return False
        allowance = output.n * self.eta * max(reach, 1.0)
        if allowance <= _NEGLIGIBLE * self.eta or not output.size:
            return True
        error = output.rounding()
        return error is not None and allowance <= _SHARE * float(np.minimum.reduce(error, axis=None))
