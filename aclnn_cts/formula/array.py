"""What a formula is written in: arrays whose operators are a backend's, and the primitives that every backend has.

A formula is an ordinary function `backward(f, gradOutput, output, *, dim)`. `f` is a backend and the floating tensors
are its arrays; what the formula computes depends on the backend alone: values with error bounds (`bounds`), arithmetic
in a format (`emulator`), or a graph that single elements are evaluated from (`graph`).
"""

# The operators hand on what a backend makes, whose arrays are its own class.
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Axes: TypeAlias = "int | tuple[int, ...]"
Index: TypeAlias = "int | slice | tuple[int | slice, ...]"
Cells: TypeAlias = "NDArray[np.int64]"
"""Places in the row-major order of an array; a negative one is outside."""


class Array:
    """An array of a backend: shape, arithmetic, and the methods that NumPy's arrays have under these names."""

    __slots__ = ("f",)
    __array_ufunc__: ClassVar[None] = None
    """NumPy's arrays leave the operators to this class."""

    f: Backend[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __add__(self, other: Operand) -> Array:
        return self.f.add(self, self.f.lift(other))

    def __radd__(self, other: Operand) -> Array:
        return self.f.add(self.f.lift(other), self)

    def __sub__(self, other: Operand) -> Array:
        return self.f.sub(self, self.f.lift(other))

    def __rsub__(self, other: Operand) -> Array:
        return self.f.sub(self.f.lift(other), self)

    def __mul__(self, other: Operand) -> Array:
        return self.f.mul(self, self.f.lift(other))

    def __rmul__(self, other: Operand) -> Array:
        return self.f.mul(self.f.lift(other), self)

    def __truediv__(self, other: Operand) -> Array:
        return self.f.div(self, self.f.lift(other))

    def __rtruediv__(self, other: Operand) -> Array:
        return self.f.div(self.f.lift(other), self)

    def __neg__(self) -> Array:
        return self.f.mul(self.f.lift(-1.0), self)

    def __gt__(self, other: Operand) -> Array:  # type: ignore[misc]  # no number compares with an array
        return self.f.gt(self, self.f.lift(other))

    def __lt__(self, other: Operand) -> Array:  # type: ignore[misc]  # as above
        return self.f.gt(self.f.lift(other), self)

    def sum(self, axis: Axes | None = None, *, keepdims: bool = False) -> Array:
        """The sum over axes (all of them where none is given), in any order."""
        return self.f.sum(self, axes_of(axis, self.ndim), keepdims=keepdims)

    def mean(self, axis: Axes | None = None, *, keepdims: bool = False) -> Array:
        """The sum over axes, divided by the number of elements in it."""
        axes = axes_of(axis, self.ndim)
        count = math.prod(self.shape[place] for place in axes)
        return self.f.sum(self, axes, keepdims=keepdims) / float(max(count, 1))

    def max(self, axis: Axes | None = None, *, keepdims: bool = False) -> Array:
        """The largest element along axes."""
        return self.f.max(self, axes_of(axis, self.ndim), keepdims=keepdims)

    def reshape(self, *shape: int) -> Array:
        """The same elements in another shape, of which one size may be -1."""
        if -1 in shape:
            known = math.prod(size for size in shape if size >= 0)
            shape = tuple(self.size // max(known, 1) if size < 0 else size for size in shape)
        return self if shape == self.shape else self.f.reshape(self, shape)

    def transpose(self, *axes: int) -> Array:
        """The dimensions in another order."""
        return self.f.transpose(self, tuple(axis % self.ndim for axis in axes))

    def __getitem__(self, index: Index) -> Array:
        """Part of the array by numbers and slices, as NumPy has it."""
        return self.f.part(self, index if isinstance(index, tuple) else (index,))

    def conj(self) -> Array:
        """The complex conjugate: of a real array itself (`complex.Complex`)."""
        return self

    def broadcast_to(self, shape: Sequence[int]) -> Array:
        """The elements repeated along dimensions of size 1, and along new ones in front."""
        return self if tuple(shape) == self.shape else self.f.broadcast_to(self, tuple(shape))


Operand: TypeAlias = "Array | float | int | NDArray[Any]"
"""The other side of an operator. Numbers and NumPy arrays are exact before they are rounded to the arithmetic."""

Outputs: TypeAlias = "Mapping[str, Array | Sequence[Array]]"
"""A formula's results, by the names of the output parameters."""

A = TypeVar("A", bound=Array)


def axes_of(axis: Axes | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in ascending order; all of them for None."""
    if axis is None:
        return tuple(range(rank))
    places = (axis,) if isinstance(axis, int) else axis
    for place in places:
        if not -max(rank, 1) <= place < max(rank, 1):
            raise IndexError(f"axis {place} of an array of rank {rank}; expected {-rank} to {rank - 1}")
    return tuple(sorted(place % rank for place in places)) if rank else ()


def taken(values: NDArray[Any], cells: Cells, fill: float) -> NDArray[Any]:
    """Elements by their cells in the row-major order, `fill` for those outside. IndexError beyond the last."""
    if (last := int(np.maximum.reduce(cells, axis=None, initial=-1))) >= values.size:
        raise IndexError(f"cell {last} of an array of {values.size} elements")
    outside = -int(np.minimum.reduce(cells, axis=None, initial=0))
    if outside > values.size:
        cells, outside = np.maximum(cells, -1), 1
    # Negative places count from the end.
    padded = np.full(values.size + outside, fill, values.dtype)
    padded[: values.size] = values.reshape(-1)
    return padded.take(cells)


class Backend(ABC, Generic[A]):
    """The primitives. A backend is made for one evaluation of one formula.

    Arithmetic broadcasts as NumPy does. `cells` are places in the row-major order of an array. What only says how an
    implementation may compute changes no value, unless a backend has it otherwise.
    """

    __slots__ = ()

    @abstractmethod
    def leaf(self, name: str, values: NDArray[Any]) -> A:
        """A floating input tensor (float64, widened exactly)."""

    @abstractmethod
    def lift(self, value: Operand) -> A:
        """A number or NumPy array as an operand; the backend's own arrays as they are."""

    @abstractmethod
    def add(self, left: A, right: A) -> A:
        """A sum; sums of sums count as one sum in any order."""

    @abstractmethod
    def sub(self, left: A, right: A) -> A:
        """A difference, which is a sum."""

    @abstractmethod
    def mul(self, left: A, right: A) -> A:
        """A product."""

    @abstractmethod
    def div(self, left: A, right: A) -> A:
        """A quotient, or a product with a rounded reciprocal."""

    @abstractmethod
    def sum(self, array: A, axes: tuple[int, ...], *, keepdims: bool) -> A:
        """A sum along axes in any order; 0 along an empty one."""

    @abstractmethod
    def max(self, array: A, axes: tuple[int, ...], *, keepdims: bool) -> A:
        """The largest along axes that are not empty."""

    @abstractmethod
    def einsum(self, subscripts: str, left: A, right: A) -> A:
        """A sum of products of two arrays in any order, `ij,jk->ik`: no repeated letter in an operand."""

    @abstractmethod
    def moved(self, array: A, move: Callable[[NDArray[Any]], NDArray[Any]]) -> A:
        """Elements of an array in other places; `move` finds them in any array of its shape."""

    def reshape(self, array: A, shape: tuple[int, ...]) -> A:
        """The same elements in another shape."""
        return self.moved(array, lambda values: values.reshape(shape))

    def transpose(self, array: A, axes: tuple[int, ...]) -> A:
        """The dimensions in another order."""
        return self.moved(array, lambda values: values.transpose(axes))

    def broadcast_to(self, array: A, shape: tuple[int, ...]) -> A:
        """The elements repeated."""
        return self.moved(array, lambda values: np.broadcast_to(values, shape))

    def part(self, array: A, index: tuple[int | slice, ...]) -> A:
        """Part of an array by numbers and slices."""
        return self.moved(array, lambda values: np.asarray(values[index]))

    @abstractmethod
    def joined(self, arrays: Sequence[A], axis: int) -> A:
        """Arrays one after the other along an axis that is counted from the front."""

    @abstractmethod
    def take(self, array: A, cells: Cells, fill: float = 0.0) -> A:
        """Elements by their cells, in the shape of `cells`; outside `fill`, where 0 is no term of a later sum."""

    @abstractmethod
    def scatter_add(self, array: A, cells: Cells, shape: tuple[int, ...]) -> A:
        """An array of `shape` with every element added to its cell, in any order; those outside are left out.

        `cells` broadcasts to the array's shape.
        """

    @abstractmethod
    def gt(self, left: A, right: A) -> A:
        """Where the left side is greater: a condition for `where`."""

    @abstractmethod
    def where(self, condition: A | NDArray[np.bool_], left: Operand, right: Operand) -> A:
        """The left side where the condition (one of `gt`, or known exactly) holds, else the right one."""

    @abstractmethod
    def function(self, name: str, array: A) -> A:
        """An elementary function of `functions.FUNCTIONS`."""

    @abstractmethod
    def binade(self, array: A, *, of: float = 1.0) -> A:
        """The greatest power of two that is, times `of`, not above |a|; nothing is known where a may be 0.

        Implementations read it off the exponent. `of` is from 1 to below 2.
        """

    @abstractmethod
    def either(self, first: A, second: A) -> A:
        """One of two quantities of one shape between which the document does not decide."""

    def narrowed(self, array: A, dtype: str, *, normal: bool = True) -> A:
        """An intermediate that may be rounded to the format of a dtype, or not: the document does not say.

        `normal`: whether so may numbers of its normal range, which else are what a result passes through.
        """
        return array

    def store(self, array: A) -> A:
        """An intermediate that is rounded to the format of the output."""
        return array

    def as_written(self, array: A) -> A:
        """A quantity that every implementation computes as such: no reordering reaches through it."""
        return array

    def grouped(self, array: A) -> A:
        """A quantity that every implementation has before it goes on: its terms and factors meet no others."""
        return array

    def difference(self, left: A, right: A) -> A:
        """A difference that every implementation computes at once: of inputs it errs by one rounding of itself."""
        return self.as_written(self.sub(left, right))

    def evaluated(self, array: A) -> A:
        """A quantity that every implementation has as one number before it goes on, such as the state of a recurrence.

        What is behind it may be reordered, and so may what follows: its one error goes through that.
        """
        return array

    def released(self, array: A) -> A:
        """The array, computed now, without what it was computed from: that of large blocks would fill the memory."""
        return array

    def undecided(self, array: A, *, where: NDArray[np.bool_] | bool) -> A:
        """The array, with elements about which the document decides nothing."""
        return array

    def concat(self, arrays: Sequence[A], axis: int = 0) -> A:
        """Arrays one after the other along an axis; at least one."""
        return arrays[0] if len(arrays) == 1 else self.joined(arrays, axis % arrays[0].ndim)

    def stack(self, arrays: Sequence[A], axis: int = 0) -> A:
        """Arrays of one shape one after the other along a new axis; at least one."""
        shape = arrays[0].shape
        place = axis % (len(shape) + 1)
        return self.concat([self.reshape(array, (*shape[:place], 1, *shape[place:])) for array in arrays], place)

    def exp(self, array: A) -> A:
        """e^x."""
        return self.function("exp", array)

    def log(self, array: A) -> A:
        """The natural logarithm."""
        return self.function("log", array)

    def tanh(self, array: A) -> A:
        """The hyperbolic tangent."""
        return self.function("tanh", array)

    def erf(self, array: A) -> A:
        """The error function."""
        return self.function("erf", array)

    def erfc(self, array: A) -> A:
        """1 - erf."""
        return self.function("erfc", array)

    def sqrt(self, array: A) -> A:
        """The square root."""
        return self.function("sqrt", array)

    def sigmoid(self, array: A) -> A:
        """1 / (1 + e^-x)."""
        return self.function("sigmoid", array)

    def softplus(self, array: A) -> A:
        """log(1 + e^x)."""
        return self.function("softplus", array)

    def reduce_to(self, array: A, shape: Sequence[int]) -> A:
        """The sum over all dimensions along which `shape` was broadcast to the array's: the gradient of that."""
        wanted, found = tuple(shape), array.shape
        if wanted == found:
            return array
        lead = len(found) - len(wanted)
        axes = tuple(range(lead)) + tuple(
            lead + place for place, size in enumerate(wanted) if size == 1 and found[lead + place] != 1
        )
        total = self.sum(array, axes, keepdims=False) if axes else array
        return total if total.shape == wanted else self.reshape(total, wanted)


F: TypeAlias = Backend[Any]
"""The first parameter of every formula."""

Formula: TypeAlias = "Callable[..., Outputs]"
