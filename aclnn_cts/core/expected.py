"""What an oracle says of one output: the value in float64 and what errors may have gone into a correct result.

An oracle follows errors through a formula, in the arithmetic that the question names (`Arithmetic`): the error of exp
depends on the size of its argument's error, and not on a number of roundings alone. `judgement.bound` adds what the
compute model says of the last rounding.

The classes are msgspec structs for the reason that cases are (`core.case`): `msgspec.structs.replace` changes a field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Argument, real_view, tensor_of
from aclnn_cts.core.rounding import BINARY_FORMATS, BinaryFormat
from aclnn_cts.core.target import Target


class FunctionAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """How far an implementation's elementary function may be from the exact one: the sum of the three.

    - `ulps`: units in the last place of the result, in the format of intermediates (each at most 2 u of the result);
    - `absolute`: near zeros of the function, where no relative error is promised;
    - `relative`: of the result, for coarse hardware functions.
    """

    ulps: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0


class Arithmetic(msgspec.Struct, frozen=True, kw_only=True):
    """One output's arithmetic: the format of intermediates, how they are rounded, and how good functions are."""

    accumulation: BinaryFormat = BINARY_FORMATS["FLOAT"]
    truncates: bool = False
    """Whether intermediates may be truncated, which doubles the unit roundoff."""
    flushes: bool = True
    """Whether operands and intermediates below the smallest normal number may become 0."""
    output: BinaryFormat = BINARY_FORMATS["FLOAT"]
    """The format that `store` rounds to."""
    functions: tuple[tuple[str, FunctionAccuracy], ...] = ()
    """By name, in alphabetical order."""

    @property
    def roundoff(self) -> float:
        """Unit roundoff of intermediates."""
        return self.accumulation.unit_roundoff * (2.0 if self.truncates else 1.0)

    @property
    def floor(self) -> float:
        """The error of one underflow: the smallest normal number where intermediates may be flushed, else the least."""
        form = self.accumulation
        return form.smallest_normal if self.flushes else form.smallest_subnormal

    def function(self, name: str) -> FunctionAccuracy:
        """The error of a function; KeyError where nothing is stated of it."""
        for known, error in self.functions:
            if known == name:
                return error
        raise KeyError(f"{name}: no accuracy is stated for this function; state one in specs/precision.yaml")


T = TypeVar("T")

Float64: TypeAlias = NDArray[np.float64]


class ExpectedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One output. All arrays have the output's logical shape or broadcast to it.

    - `value`: float64; may hold inf and nan where *every* permitted order of evaluation gives them.
    - `error`: the largest absolute error before the last rounding, all roundings and underflows in it, in `arithmetic`.
    - `exact`: True where every permitted order of evaluation gives `value` itself before the last rounding.
    - `arithmetic`: what `error` holds for; in a coarser one it grows in proportion to the unit roundoff.
    - `partial`: the largest absolute value that any intermediate can take (a sum of magnitudes), its errors included;
      where it exceeds the largest finite number of the accumulation format, finite within the bound, inf and nan are
      all open. Beside a value of inf it speaks of the finite terms, which may overflow to the other infinity first; inf
      tells nothing. None: nothing overflows.
    - `open`: True where the document leaves the element open (nothing is judged there).
    - `functions`: the elementary functions whose stated accuracy is part of `error`.
    - `summands`, `step`, `largest`: how many numbers are added to each element, a power of two of which all of them are
      multiples (or None), and a bound of all sums: what is exact in `arithmetic` is not where digits are too few.
    """

    value: Float64
    error: Float64 | float = 0.0
    exact: NDArray[np.bool_] | bool = False
    arithmetic: Arithmetic | None = None
    partial: Float64 | None = None
    open: NDArray[np.bool_] | None = None
    functions: tuple[str, ...] = ()
    summands: Float64 | float = 1.0
    step: float | None = None
    largest: float = math.inf


Expected: TypeAlias = Mapping[str, ExpectedOutput]
"""By output parameter."""


class OracleInput(msgspec.Struct, frozen=True, kw_only=True):
    """What an oracle is asked: the exact values of one call.

    `tensors` holds every input tensor in its logical shape: float64 for floating dtypes (widened exactly), int64 for
    integers, BOOL and UINT8 as they are stored. Of a complex tensor, input or output, a last dimension holds re and im.
    `arguments` holds all arguments as the case does (descriptors, attributes, arrays).
    """

    tensors: Mapping[str, NDArray[Any]]
    arguments: Mapping[str, Argument]
    target: Target = Target()
    lattices: Mapping[str, float] = MappingProxyType({})
    """For each floating input whose elements are all integer multiples of a power of two that matters (exact data),
    that power. Missing: not known."""
    arithmetics: Mapping[str, Arithmetic] = MappingProxyType({})
    """The arithmetic of each output. Missing: FLOAT, as `specs/precision.yaml` has it."""
    radii: Mapping[str, Float64] = MappingProxyType({})
    """For each floating input that a mode may round: how far what is used may be from what stands in `tensors`."""
    updated: frozenset[str] = frozenset()
    """The inputs that are outputs too: `tensors` has what they hold before the call."""

    def integer(self, name: str) -> int:
        """An integer or bool attribute."""
        return self._argument(name, int, "an integer")

    def number(self, name: str) -> float:
        """A double attribute."""
        return self._argument(name, float, "a double")

    def integers(self, name: str) -> tuple[int, ...]:
        """An aclIntArray."""
        return self._argument(name, tuple, "an int array")

    def _argument(self, name: str, kind: type[T], what: str) -> T:
        value = self.arguments[name]
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r}, not {what}")
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor argument, output or input; that of the real view of a complex one.

        `name[2]` is one of a list.
        """
        value = tensor_of(self.arguments, name)
        if value is None:
            raise TypeError(f"{name} is {self.arguments.get(name)!r}, not a tensor")
        return real_view(value).shape


class Condensed(msgspec.Struct, frozen=True, kw_only=True):
    """A call of which most rows of an output are 0, as a smaller call that has the other rows alone."""

    question: OracleInput
    """The smaller call, its outputs' descriptors included."""
    rows: Mapping[str, NDArray[np.int64]]
    """Of each output, the rows that the smaller call has, in their order. All others are 0."""


Oracle: TypeAlias = Callable[[OracleInput], Expected]
"""An operator's mathematics: what its formula says of a call."""


Condense: TypeAlias = Callable[[OracleInput, Mapping[str, NDArray[np.int64]]], Condensed | None]
"""An oracle file's `condensed(call, more)`: the smaller call, with the rows that are not 0 and `more` rows by output.

None where the call has no such rows.
"""


class Block(NamedTuple):
    """What an oracle says of consecutive elements of all outputs of a large call, flat."""

    place: slice
    outputs: Expected
    careful: Callable[[], Expected] | None = None
    """All that conforms, of a block whose `outputs` are narrower than that.

    It is asked where an element is at fault, inf, nan or open.
    """


BlockOracle: TypeAlias = Callable[[OracleInput], Iterator[Block | None]]
"""What an oracle says of a large call, one block after another, where slices of the inputs know nothing of each other.

A block has the values that the oracle says of its elements as a whole, with no larger bounds. The oracle is given the
tensors as they are stored, and widens a block at a time (`core.rounding.as_operand`). None: the call must be looked at
as a whole, which it may say in the middle as well.
"""
