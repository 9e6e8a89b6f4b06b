"""Complex numbers in a formula: pairs of real arrays, which every backend follows as it follows any others.

A product is that of the definition, (a + bi)(c + di) = (ac - bd) + (ad + bc)i: four real products and two sums. The
error of each component is then that of a real expression, so that every order of them, fused or not, is within its
bound (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.6). A product by three
multiplications is not: it errs by the size of the other component too.
"""

from __future__ import annotations

import numpy as np

from aclnn_cts.formula.array import Array, Operand

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

    def conj(self) -> Complex:
        return Complex(self.re, -self.im)


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
