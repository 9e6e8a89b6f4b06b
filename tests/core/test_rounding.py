"""Rounding against exact rational arithmetic, which shares nothing with it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from aclnn_cts.core.dtypes import INTEGERS, numpy_dtype
from aclnn_cts.core.rounding import (
    BINARY_FORMATS,
    BinaryFormat,
    binary_format,
    covers,
    round_to,
    spacing,
    to_dtype,
    widen,
)

HALVES = ("FLOAT16", "BF16")


def exact_round(value: float, form: BinaryFormat) -> float:
    """Nearest even by integers and fractions alone."""
    if not math.isfinite(value) or value == 0.0:
        return value
    magnitude = Fraction(abs(value))
    exponent = form.min_exponent
    while exponent < form.max_exponent and magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - form.significand + 1)
    units = round(magnitude / unit)  # Python rounds a Fraction's half to even
    rounded = units * unit
    if rounded > Fraction(form.largest):
        return math.copysign(math.inf, value)
    return math.copysign(float(rounded), value)


def exact_round_fast(values: np.ndarray, form: BinaryFormat) -> np.ndarray:
    return np.array([exact_round_near(float(value), form) for value in values])


def exact_round_near(value: float, form: BinaryFormat) -> float:
    """`exact_round` with the exponent from frexp, for long lists; `test_references_agree` ties the two together."""
    if not math.isfinite(value) or value == 0.0:
        return value
    exponent = min(max(math.frexp(value)[1] - 1, form.min_exponent), form.max_exponent)
    numerator, denominator = abs(value).as_integer_ratio()
    shift = exponent - form.significand + 1
    if shift >= 0:
        denominator <<= shift
    else:
        numerator <<= -shift
    units, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and units & 1):
        units += 1
    if units.bit_length() > form.significand and exponent == form.max_exponent:
        return math.copysign(math.inf, value)
    return math.copysign(math.ldexp(units, shift), value)


def all_patterns(dtype: str) -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).view(numpy_dtype(dtype))


def assert_same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    nans = np.isnan(expected)
    assert np.array_equal(np.isnan(got), nans)
    wrong = np.flatnonzero((got.view(np.int64) != expected.view(np.int64)) & ~nans)
    assert wrong.size == 0, [(got[i], expected[i]) for i in wrong[:5]]


def test_references_agree() -> None:
    random = np.random.default_rng(1)
    values = np.ldexp(random.uniform(-2, 2, 400), random.integers(-30, 20, 400))
    for name in ("FLOAT16", "BF16", "HFLOAT32"):
        form = BINARY_FORMATS[name]
        assert [exact_round(float(v), form) for v in values] == [exact_round_near(float(v), form) for v in values]


@pytest.mark.parametrize("dtype", HALVES)
def test_every_half_value_is_a_fixed_point(dtype: str) -> None:
    patterns = all_patterns(dtype)
    values = widen(patterns)
    assert_same_bits(round_to(values, BINARY_FORMATS[dtype]), values)
    again = to_dtype(values, dtype)
    finite = ~np.isnan(values)
    assert again.dtype == numpy_dtype(dtype)
    assert np.array_equal(again.view(np.uint16)[finite], patterns.view(np.uint16)[finite])
    assert np.isnan(widen(again[~finite])).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_midpoints_and_their_neighbours(dtype: str) -> None:
    form = BINARY_FORMATS[dtype]
    values = np.sort(widen(all_patterns(dtype)[:32768]))
    values = values[np.isfinite(values)]
    beyond = np.ldexp(1.0, form.max_exponent + 1)
    upper = np.append(values[1:], beyond)
    middle = (values + upper) / 2
    assert all(
        Fraction(float(m)) * 2 == Fraction(float(a)) + Fraction(float(b))
        for m, a, b in zip(middle[::97], values[::97], upper[::97], strict=True)
    )
    probes = np.concatenate(
        [middle, np.nextafter(middle, 0.0), np.nextafter(middle, np.inf), np.nextafter(values, np.inf)]
    )
    probes = np.concatenate([probes, -probes])
    expected = exact_round_fast(probes, form)
    assert_same_bits(round_to(probes, form), expected)
    assert_same_bits(widen(to_dtype(probes, dtype)), expected)


def test_bf16_is_not_rounded_by_way_of_float() -> None:
    # 1 + 2^-8 is halfway between two BF16 numbers; the 2^-40 above it decides, and FLOAT has no room for it.
    value = np.array([1 + 2.0**-8 + 2.0**-40])
    assert widen(to_dtype(value, "BF16"))[0] == 1 + 2.0**-7
    assert round_to(round_to(value, BINARY_FORMATS["FLOAT"]), BINARY_FORMATS["BF16"])[0] == 1.0


@pytest.mark.parametrize("significand", [12, 11])
def test_hfloat32_over_boundary_patterns(significand: int) -> None:
    form = binary_format("HFLOAT32", significand=significand, min_exponent=-126, max_exponent=127)
    dropped = 24 - significand
    heads = np.array([0, 1, 2, 3, (1 << (significand - 1)) - 1, 1 << (significand - 2)], dtype=np.uint32) << np.uint32(
        dropped
    )
    half = 1 << (dropped - 1)
    tails = np.array([0, 1, half - 1, half, half + 1, (1 << dropped) - 1], dtype=np.uint32)
    exponents = np.array([0, 1, 2, 126, 127, 128, 253, 254, 255], dtype=np.uint32) << np.uint32(23)
    bits = (exponents[:, None, None] | heads[None, :, None] | tails[None, None, :]).ravel()
    bits = np.concatenate([bits, bits | np.uint32(0x80000000)])
    values = widen(bits.view(np.float32))
    rounded = round_to(values, form)
    assert_same_bits(rounded, exact_round_fast(values, form))
    assert np.isinf(rounded[np.isfinite(values)]).any(), "rounding the largest numbers carries into inf"
    kept = rounded.astype(np.float32).view(np.uint32)[np.isfinite(rounded)]
    assert not np.any(kept & np.uint32((1 << dropped) - 1))


def test_float_against_fractions() -> None:
    form = BINARY_FORMATS["FLOAT"]
    random = np.random.default_rng(3)
    singles = random.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    singles = np.concatenate(
        [singles, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, form.largest, form.smallest_normal], np.float32)]
    )
    with np.errstate(over="ignore", invalid="ignore"):
        upper = np.nextafter(singles, np.float32(np.inf))
    values = np.concatenate([widen(singles), (widen(singles) + widen(upper)) / 2])
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    assert_same_bits(round_to(values, form), exact_round_fast(values, form))
    assert_same_bits(widen(to_dtype(values, "FLOAT")), exact_round_fast(values, form))


@pytest.mark.parametrize("name", ["FLOAT", "FLOAT16", "BF16", "HFLOAT32"])
def test_extremes(name: str) -> None:
    form = BINARY_FORMATS[name]
    tie = form.largest + np.ldexp(1.0, form.max_exponent - form.significand)
    values = np.array([1e308, -1e308, 5e-324, -5e-324, tie, np.nextafter(tie, 0), form.smallest_subnormal / 2, -0.0])
    expected = [np.inf, -np.inf, 0.0, -0.0, np.inf, form.largest, 0.0, -0.0]
    assert_same_bits(round_to(values, form), np.array(expected))


def test_double_is_itself_and_scalars_stay_arrays() -> None:
    values = np.array([1 / 3, -0.0, np.inf, 5e-324])
    assert_same_bits(round_to(values, BINARY_FORMATS["DOUBLE"]), values)
    assert to_dtype(values, "DOUBLE").dtype == np.float64
    for name, form in BINARY_FORMATS.items():
        assert round_to(np.array(1.0), form).shape == (), name
    with pytest.raises(KeyError):
        to_dtype(values, "BOOL")


@pytest.mark.parametrize("name", sorted(INTEGERS))
def test_an_integer_format_rounds_to_integers_within_its_range(name: str) -> None:
    form, ends = BINARY_FORMATS[name], np.iinfo(numpy_dtype(name))
    least, most = max(ends.min, -(2**53)), min(ends.max, 2**53)
    values = np.array([least, least + 1, most - 1, most, 0.5, 1.5, 2.0], np.float64)
    assert round_to(values, form).tolist() == [least, least + 1, most - 1, most, 0, 2, 2]
    assert to_dtype(values, name).tolist() == [least, least + 1, most - 1, most, 0, 2, 2]
    assert spacing(np.array([0.0, 1.0, 100.0]), form).tolist() == [1.0, 1.0, 1.0]
    assert round_to(np.array([2.0**70, -(2.0**70)]), form).tolist() == [np.inf, -np.inf]
    assert to_dtype(np.array([2.0**70, -(2.0**70)]), name).tolist() == [ends.max, ends.min]


@pytest.mark.parametrize("name", sorted(BINARY_FORMATS.keys() - INTEGERS))
def test_figures_of_each_format(name: str) -> None:
    form = BINARY_FORMATS[name]
    assert form.unit_roundoff == 2.0**-form.significand
    assert form.smallest_subnormal == form.smallest_normal * 2.0 ** (1 - form.significand)
    if name in ("FLOAT", "FLOAT16", "DOUBLE"):
        info = np.finfo(numpy_dtype(name))
        assert (form.largest, form.smallest_normal) == (float(info.max), float(info.tiny))
    if form.mantissas:
        return  # `test_hifloat8` has the spacing between all of its numbers
    ulps = spacing(np.array([1.0, 1.5, 2.0, 0.0, form.smallest_normal, np.inf]), form)
    unit = 2.0 ** (1 - form.significand)
    assert ulps.tolist() == [
        unit,
        unit,
        2 * unit,
        form.smallest_subnormal,
        form.smallest_subnormal,
        form.largest - np.nextafter(form.largest, 0)
        if name == "DOUBLE"
        else 2.0 ** (form.max_exponent - form.significand + 1),
    ]


def test_which_format_covers_which() -> None:
    form = BINARY_FORMATS
    assert covers(form["FLOAT"], form["BF16"])
    assert covers(form["FLOAT"], form["FLOAT16"])
    assert covers(form["FLOAT"], form["HFLOAT32"])
    assert not covers(form["FLOAT16"], form["BF16"]), "more digits, less range"
    assert not covers(form["BF16"], form["FLOAT16"])
    assert covers(form["FLOAT16"], form["FLOAT16"])
