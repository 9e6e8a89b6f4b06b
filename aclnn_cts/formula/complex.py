"""Complex numbers in a formula: pairs of real arrays, which every backend follows as it follows any others.

A product is that of the definition, (a + bi)(c + di) = (ac - bd) + (ad + bc)i: four real products and two sums. The
error of each component is then that of a real expression, so that every order of them, fused or not, is within its
bound (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.6). A product by three
multiplications is not: it errs by the size of the other component too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.formula.array import Array, Axes, Backend, Cells, Index, Operand

_RE = np.array([True, False])


class Complex(Array):
    """A complex array: its real and its imaginary part, which have one shape."""

    __slots__ = ("im", "re")

    def __init__(self, re: Array, im: Array) -> None:
        self.f, self.re, self.im = re.f, re, im

    @property
    def shape(self) -> tuple[int, ...]:
        return self.re.shape

    def _with(self, other: Operand) -> Complex:
        """The other side of an operator; a real one has the imaginary part 0."""
        if isinstance(other, Complex):
            return other
        return Complex(self.f.lift(other), self.f.lift(0.0))

    def __add__(self, other: Operand) -> Complex:
        right = self._with(other)
        return Complex(self.re + right.re, self.im + right.im)

    def __radd__(self, other: Operand) -> Complex:
        return self._with(other) + self

    def __sub__(self, other: Operand) -> Complex:
        right = self._with(other)
        return Complex(self.re - right.re, self.im - right.im)

    def __rsub__(self, other: Operand) -> Complex:
        return self._with(other) - self

    def __mul__(self, other: Operand) -> Complex:
        right = self._with(other)
        return Complex(self.re * right.re - self.im * right.im, self.re * right.im + self.im * right.re)

    def __rmul__(self, other: Operand) -> Complex:
        return self._with(other) * self

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __truediv__(self, other: Operand) -> Complex:
        if isinstance(other, Complex):
            raise TypeError("a complex divisor: multiply with the conjugate, and divide by the real square of its size")
        return self.each(lambda part: part / other)

    def conj(self) -> Complex:
        return Complex(self.re, -self.im)

    def each(self, change: Callable[[Array], Array]) -> Complex:
        """What one linear real operation makes of both components."""
        return Complex(change(self.re), change(self.im))

    def sum(self, axis: Axes | None = None, *, keepdims: bool = False) -> Complex:
        return self.each(lambda part: part.sum(axis, keepdims=keepdims))

    def mean(self, axis: Axes | None = None, *, keepdims: bool = False) -> Complex:
        return self.each(lambda part: part.mean(axis, keepdims=keepdims))

    def reshape(self, *shape: int) -> Complex:
        return self.each(lambda part: part.reshape(*shape))

    def transpose(self, *axes: int) -> Complex:
        return self.each(lambda part: part.transpose(*axes))

    def __getitem__(self, index: Index) -> Complex:
        return self.each(lambda part: part[index])

    def broadcast_to(self, shape: Sequence[int]) -> Complex:
        return self.each(lambda part: part.broadcast_to(shape))


class ComplexBackend:
    """A backend whose linear primitives take complex arrays too, component by component; all else is its own."""

    def __init__(self, f: Backend[Any]) -> None:
        self._f = f

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the backend has
        return getattr(self._f, name)

    def _each(self, change: Callable[..., Array], *arrays: Operand) -> Array:
        """What an operation makes of the components of arrays, of which real ones have the imaginary part 0."""
        if not any(isinstance(array, Complex) for array in arrays):
            return change(*arrays)
        pairs = [array if isinstance(array, Complex) else self._real(array) for array in arrays]
        return Complex(change(*(pair.re for pair in pairs)), change(*(pair.im for pair in pairs)))

    def _real(self, array: Operand) -> Complex:
        re = self._f.lift(array)
        return Complex(re, self._f.lift(np.zeros(re.shape)))

    def take(self, array: Array, cells: Cells, fill: float = 0.0) -> Array:
        """As of the backend; outside, the imaginary part is 0."""
        if not isinstance(array, Complex):
            found: Array = self._f.take(array, cells, fill)
            return found
        return Complex(self._f.take(array.re, cells, fill), self._f.take(array.im, cells))

    def scatter_add(self, array: Array, cells: Cells, shape: tuple[int, ...]) -> Array:
        """As of the backend."""
        return self._each(lambda part: self._f.scatter_add(part, cells, shape), array)

    def where(self, condition: Array | NDArray[np.bool_], left: Operand, right: Operand) -> Array:
        """As of the backend."""
        return self._each(lambda *parts: self._f.where(condition, *parts), left, right)

    def concat(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        """As of the backend."""
        return self._each(lambda *parts: self._f.concat(parts, axis), *arrays)

    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        """As of the backend."""
        return self._each(lambda *parts: self._f.stack(parts, axis), *arrays)

    def reduce_to(self, array: Array, shape: Sequence[int]) -> Array:
        """As of the backend."""
        return self._each(lambda part: self._f.reduce_to(part, shape), array)

    def undecided(self, array: Array, *, where: NDArray[np.bool_] | bool) -> Array:
        """As of the backend."""
        return self._each(lambda part: self._f.undecided(part, where=where), array)


def separated(array: Array) -> Complex:
    """The complex array whose components lie in the last dimension of a real one."""
    cells = np.arange(array.size, dtype=np.int64).reshape(array.shape)
    return Complex(array.f.take(array, cells[..., 0]), array.f.take(array, cells[..., 1]))


def combined(array: Array) -> Array:
    """The components of an array in a last dimension; a real one has the imaginary part 0."""
    if not isinstance(array, Complex):
        array = Complex(array, array.f.lift(np.zeros(array.shape)))
    re, im = (part.reshape(*array.shape, 1) for part in (array.re, array.im))
    joined: Array = array.f.where(_RE, re, im)
    return joined
