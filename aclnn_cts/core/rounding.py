"""Binary floating-point formats as facts, and float64 arrays rounded to them, a block at a time.

Everything here works on float64 values, so that a value of any format is exact and arithmetic on it is the caller's
own. No rounding goes through a format in between (float64 to BF16 by way of float32 rounds twice and can end one unit
off), and none depends on what a NumPy build or a processor does with half precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core import hifloat8
from aclnn_cts.core.dtypes import DTYPES, INTEGERS, numpy_dtype

_EXPONENT_FIELD = np.int64(0x7FF0000000000000)
"""The bits of a float64 that hold its exponent: what is left of a normal number is its binade's power of two."""

_SIGN = np.int64(-(1 << 63))


@dataclass(frozen=True, slots=True)
class BinaryFormat:
    """A binary floating-point format with gradual underflow (IEEE 754-2019, section 3.3).

    All figures are exact float64 numbers. `significand` counts the leading bit: 24 for FLOAT.
    """

    name: str
    significand: int
    """The least that a number has, where that is not the same for all (`mantissas`)."""
    min_exponent: int
    """Exponent of the smallest normal number."""
    max_exponent: int
    """Exponent of the largest finite number."""
    unit_roundoff: float
    """Half the distance from 1 to the next number: the largest relative error of rounding to nearest."""
    largest: float
    smallest_normal: float
    smallest_subnormal: float
    infinite: bool = True
    """Whether it has infinities. Rounding gives one all the same beyond the largest number: what becomes of it when it
    is stored, nan or that number, is for the document to say."""
    signed: bool = True
    """Whether it has zeros and negative numbers."""
    mantissas: tuple[tuple[int, int], ...] = ()
    """Of a format of tapered precision, up to which magnitude of the exponent a number has how many bits beside the
    leading one: few where the magnitude is large. Of two neighbours the one farther from 0 never has the finer spacing.
    """
    ties_open: bool = False
    """Whether no document says which neighbour is taken where two are equally near, and whether what lies beyond the
    largest finite number becomes that or an infinity. Rounding here takes the even one and infinity."""
    lacks_largest: bool = False
    """Whether the largest number is there below 0 alone, as of signed integers."""

    @property
    def longest(self) -> int:
        """Most bits that a significand has."""
        return 1 + max(bits for _, bits in self.mantissas) if self.mantissas else self.significand


@functools.cache
def binary_format(
    name: str,
    *,
    significand: int,
    min_exponent: int,
    max_exponent: int,
    largest: float | None = None,
    infinite: bool = True,
    signed: bool = True,
) -> BinaryFormat:
    """The format with these sizes; float64 must hold it (at most 53 bits, exponents from -1022 to 1023).

    The largest number has all bits of the significand set where `largest` does not say another.
    """
    return BinaryFormat(
        name=name,
        significand=significand,
        min_exponent=min_exponent,
        max_exponent=max_exponent,
        unit_roundoff=math.ldexp(1.0, -significand),
        largest=largest or math.ldexp(2.0 - math.ldexp(1.0, 1 - significand), max_exponent),
        smallest_normal=math.ldexp(1.0, min_exponent),
        smallest_subnormal=math.ldexp(1.0, min_exponent - significand + 1),
        infinite=infinite,
        signed=signed,
    )


def _integers(name: str) -> BinaryFormat:
    """Integers as the subnormal numbers of a format whose last place is 1.

    Of a signed dtype it has a number too many, the opposite of the least: nothing that comes back can be it. From 2^53
    on float64 has no room for every integer: numbers that it rounds alike are taken for equal.
    """
    row = DTYPES[name]
    bits, signed = 8 * row.size, row.kind == "signed"
    held = min(bits, 53)
    made = binary_format(
        name,
        significand=held,
        min_exponent=held - 1,
        max_exponent=held - 1,
        largest=2.0 ** (bits - 1) if signed else 2.0**bits - 1.0,
        infinite=False,
        signed=signed,
    )
    # Of integers that float64 does not hold, halves are not seen: they are moved, not rounded.
    return replace(made, ties_open=bits <= held, lacks_largest=signed and bits <= held)


BINARY_FORMATS: MappingProxyType[str, BinaryFormat] = MappingProxyType(
    {
        "FLOAT": binary_format("FLOAT", significand=24, min_exponent=-126, max_exponent=127),
        "FLOAT16": binary_format("FLOAT16", significand=11, min_exponent=-14, max_exponent=15),
        "BF16": binary_format("BF16", significand=8, min_exponent=-126, max_exponent=127),
        "DOUBLE": binary_format("DOUBLE", significand=53, min_exponent=-1022, max_exponent=1023),
        "FLOAT8_E5M2": binary_format("FLOAT8_E5M2", significand=3, min_exponent=-14, max_exponent=15),
        "FLOAT8_E4M3FN": binary_format(
            "FLOAT8_E4M3FN", significand=4, min_exponent=-6, max_exponent=8, largest=448.0, infinite=False
        ),
        "FLOAT8_E8M0": binary_format(
            "FLOAT8_E8M0", significand=1, min_exponent=-127, max_exponent=127, infinite=False, signed=False
        ),
        # Its denormal numbers are powers of two: in a table of significands they are normal ones of one bit.
        "HIFLOAT8": replace(
            binary_format("HIFLOAT8", significand=1, min_exponent=-22, max_exponent=15, largest=2.0**15),
            mantissas=hifloat8.MANTISSAS,
            ties_open=True,
        ),
        "HFLOAT32": binary_format("HFLOAT32", significand=12, min_exponent=-126, max_exponent=127),
    }
    | {name: _integers(name) for name in sorted(INTEGERS)}
)
"""By aclDataType name, and HFLOAT32: the format of a matrix unit's operands, which no tensor has. Published programs
give HFLOAT32 eleven stored significand bits on Ascend 910B and ten on others; `specs/precision.yaml` says which one a
bound may count on. The FLOAT8 formats are those of the OCP 8-bit Floating Point and Microscaling specifications."""


def covers(wide: BinaryFormat, narrow: BinaryFormat) -> bool:
    """Whether every number of `narrow` is one of `wide`, so that rounding it there changes nothing."""
    return wide == narrow or (
        wide.significand >= narrow.longest
        and wide.max_exponent >= narrow.max_exponent
        and wide.smallest_subnormal <= narrow.smallest_subnormal
    )


def _binade(values: NDArray[np.float64], form: BinaryFormat) -> NDArray[np.float64]:
    """The power of two below each magnitude, within the format's normal range; a new array."""
    bits = np.asarray(values.view(np.int64) & _EXPONENT_FIELD)
    # Positive numbers are in the order of their bits, which NumPy compares several times as fast.
    np.clip(bits, *_normal_range(form), out=bits)
    return bits.view(np.float64)


def _last_place(values: NDArray[np.float64], form: BinaryFormat, scale: float) -> NDArray[np.float64]:
    """The weight of the last bit in the binade of each value, times `scale`; a new array."""
    weight = _binade(values, form)
    if form.mantissas:
        exponents = (weight.view(np.int64) >> 52) - 1023
        weight *= _shares(form)[exponents - form.min_exponent]
    weight *= math.ldexp(scale, 1 - form.significand)
    return weight


@functools.cache
def _shares(form: BinaryFormat) -> NDArray[np.float64]:
    """What the last bit weighs beside that of the shortest significand, for each exponent from the least on."""
    exponents = range(form.min_exponent, form.max_exponent + 1)
    lengths = [next(1 + bits for most, bits in form.mantissas if abs(each) <= most) for each in exponents]
    return np.array([math.ldexp(1.0, form.significand - length) for length in lengths])


@functools.cache
def _normal_range(form: BinaryFormat) -> tuple[np.int64, np.int64]:
    """The powers of two at both ends, as bits."""
    least, most = np.array([form.smallest_normal, math.ldexp(1.0, form.max_exponent)]).view(np.int64)
    return least, most


def round_to(values: NDArray[np.float64], form: BinaryFormat) -> NDArray[np.float64]:
    """Round to nearest, ties to even (IEEE 754-2019, section 4.3.1), and return the result as float64.

    Subnormals round to the format's own spacing, magnitudes from half a unit above the largest finite number on
    become inf, nan and the sign of zero are kept. A new array of the same shape; 0-d arrays stay arrays.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return rounded(values, form)


def rounded(values: NDArray[np.float64], form: BinaryFormat) -> NDArray[np.float64]:
    """What `round_to` gives, where the caller sees to NumPy's warnings."""
    values = np.asarray(values, dtype=np.float64)
    if form.name == "DOUBLE":
        return np.array(values)
    if form.name in INTEGERS:
        whole: NDArray[np.float64] = np.rint(values)
        return np.where(np.abs(whole) > form.largest, np.copysign(np.inf, whole), whole)
    if is_large(values.size) and values.flags.c_contiguous:
        result: NDArray[np.float64] = np.empty(values.shape)
        _round_into(result, values, form)
        return result
    return _rounded(values, form)


def _round_into(result: NDArray[Any], values: NDArray[np.float64], form: BinaryFormat) -> None:
    """Rounded values of a large array into one of the same shape, in a dtype that holds them."""
    source, target = values.reshape(-1), result.reshape(-1)
    for place in blocks(values.size):
        if result.dtype == np.float64:
            _rounded(source[place], form, out=target[place])
        else:
            target[place] = _rounded(source[place], form)


def _rounded(
    values: NDArray[np.float64], form: BinaryFormat, *, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    if form.significand == 24:
        single = values.astype(np.float32)
        if out is None:
            return single.astype(np.float64)
        out[...] = single
        return out
    # Adding a number whose last bit weighs one unit of the format lets the float64 addition do the rounding; half
    # as much again keeps the sum in one binade for either sign, and is even, so that ties fall as they should.
    lever = _last_place(values, form, math.ldexp(1.5, 52))
    result: NDArray[np.float64] = np.asarray(np.add(values, lever, out=out))
    result -= lever
    # What is left of a number is 0 or has its sign.
    signs = lever.view(np.int64)
    np.bitwise_and(values.view(np.int64), _SIGN, out=signs)
    np.bitwise_or(result.view(np.int64), signs, out=result.view(np.int64))
    magnitude = np.abs(result, out=lever)
    if not np.maximum.reduce(magnitude, axis=None, initial=0.0) <= form.largest:  # nan is in no order
        np.copyto(result, np.copysign(np.inf, values), where=magnitude > form.largest)
    return result


def toward_zero(values: NDArray[np.float64], form: BinaryFormat) -> NDArray[np.float64]:
    """The format's number of the largest magnitude that is not above that of the value."""
    nearest = rounded(values, form)
    over = (np.abs(nearest) > np.abs(values)) & np.isfinite(values)
    if not over.any():
        return nearest
    below = np.where(np.isinf(nearest), form.largest, np.abs(nearest) - spacing(values, form))
    return np.where(over, np.copysign(below, values), nearest)


def spacing(values: NDArray[np.float64], form: BinaryFormat, *, scale: float = 1.0) -> NDArray[np.float64]:
    """The distance between neighbouring numbers of the format in the binade of each value (its ULP), times `scale`.

    The subnormal spacing below the smallest normal number, zero included; that of the last binade for anything
    larger than the largest finite number, inf and nan included.
    """
    return _last_place(np.asarray(values, dtype=np.float64), form, scale)


def nearest(both: NDArray[np.float64], form: BinaryFormat) -> NDArray[np.float64]:
    """The least and the greatest number that rounding to nearest may give, from the least and the greatest value.

    These are the two along the first dimension. Where the format leaves ties open, a tie may go to either neighbour,
    and what overflows to the largest finite number too. The caller sees to NumPy's warnings.
    """
    if not form.ties_open:
        return rounded(both, form)
    # The next float64 lies on the other side of a tie. That of another value does not, but on a tie at most.
    away = np.array([-np.inf, np.inf]).reshape(2, *(1,) * (both.ndim - 1))
    found = rounded(np.nextafter(both, away), form)
    finite = np.isfinite(both)
    np.minimum(found[0], form.largest, out=found[0, ...], where=finite[0, ...])
    np.maximum(found[1], -form.largest, out=found[1, ...], where=finite[1, ...])
    return found


def to_dtype(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """Round float64 to nearest even into the NumPy dtype of an aclDataType (`numpy_dtype`).

    Of a format without infinities, what lies beyond its largest number becomes nan; of FLOAT8_E8M0, so do negative
    numbers, and what rounds to 0 becomes its smallest number. An integer beyond the range becomes its end. Raises
    KeyError where the judge has no format for `dtype`.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return stored(values, dtype)


def stored(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """What `to_dtype` gives, where the caller sees to NumPy's warnings."""
    form = BINARY_FORMATS[dtype]
    if dtype in INTEGERS:
        ends, integers = np.iinfo(numpy_dtype(dtype)), np.rint(np.asarray(values, np.float64))
        # float64 may have no such number as the greatest integer, but the next one above it.
        most = float(ends.max)
        inside = np.clip(integers, ends.min, most if int(most) == ends.max else np.nextafter(most, 0.0))
        return np.where(integers >= most, ends.max, np.nan_to_num(inside).astype(numpy_dtype(dtype)))
    if form.significand == 53:
        return np.array(values, dtype=np.float64)
    if dtype == "FLOAT":
        return np.asarray(values, dtype=np.float64).astype(np.float32)
    if dtype == "HIFLOAT8":
        return hifloat8.encode(rounded(values, form))
    if form.infinite and is_large(values.size) and values.flags.c_contiguous and values.dtype == np.float64:
        whole: NDArray[Any] = np.empty(values.shape, numpy_dtype(dtype))
        _round_into(whole, values, form)
        return whole
    result = rounded(values, form)
    if not form.infinite:
        result[np.isinf(result)] = np.nan
    if not form.signed:
        result[result < 0.0] = np.nan
        np.maximum(result, form.smallest_normal, out=result)
    return result.astype(numpy_dtype(dtype))


def numeric(array: NDArray[Any]) -> NDArray[Any]:
    """An array that NumPy casts to other dtypes: of HIFLOAT8, whose bytes mean nothing to it, the values in float64."""
    return hifloat8.decode(array) if array.dtype == hifloat8.STORAGE else array


def widen(array: NDArray[Any]) -> NDArray[np.float64]:
    """The same values as float64; exact for every floating dtype. Do no arithmetic on half precision before this."""
    with np.errstate(invalid="ignore"):  # a fill pattern may be a signalling nan
        return numeric(array).astype(np.float64)


def as_operand(array: NDArray[Any]) -> NDArray[Any]:
    """The same values as oracles take them: floating dtypes in float64, integers in int64, bools and UINT8 as they are.

    Masks are of these two, and a formula has UINT8 in int64 where it does not say that it holds flags.
    """
    kind = numeric(array).dtype.kind
    if kind not in "biu":
        return widen(array)
    return array if array.dtype in (np.bool_, np.uint8) else array.astype(np.int64)


BLOCK = 1 << 15
"""Elements of a block."""
_KEPT = 31 << 20
"""Bytes; glibc adapts to what is freed up to 32 MiB (`mallopt(3)`, `M_MMAP_THRESHOLD`)."""


def is_large(count: int) -> bool:
    """Whether so many elements are more than one block."""
    return count > BLOCK


def keep_freed_memory() -> None:
    """Make the C library keep the memory of large arrays for the next ones.

    glibc gives it back to the system, and fetches it again, until a larger array was freed: that took two thirds of the
    time of a comparison in blocks.
    """
    np.empty(_KEPT, np.uint8)


def blocks(count: int, *, each: int = 1, most: int | None = None) -> Iterator[slice]:
    """Consecutive slices of `count` places, of `each` elements a place: as many as a block holds, and at least one.

    `most`: elements of a block, in the place of `BLOCK`.
    """
    step = max((BLOCK if most is None else most) // max(each, 1), 1)
    if is_large(count * max(each, 1)):
        keep_freed_memory()
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
