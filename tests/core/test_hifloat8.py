"""HIFLOAT8: its codes against the published facts of the format, and rounding against the table of its numbers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.hifloat8 import decode, encode
from aclnn_cts.core.rounding import BINARY_FORMATS, covers, nearest, round_to, spacing, to_dtype, toward_zero, widen
from aclnn_cts.core.target import Target
from aclnn_cts.judgement.model import ComputeModel, load_precision
from tests.support.compared import compare
from tests.support.counted import counted

FORM = BINARY_FORMATS["HIFLOAT8"]
NAN, INF = math.nan, math.inf


def _by_text(bits: str) -> float:
    """A code, as eight digits, by the words of the paper."""
    sign, code = (-1.0 if bits[0] == "1" else 1.0), bits[1:]
    if code == "0000000":
        return NAN if sign < 0 else 0.0
    if code == "1101111":
        return sign * INF
    if code.startswith("0000"):
        return sign * 2.0 ** (int(code[4:], 2) - 23)
    dot = next(dot for dot in ("11", "10", "01", "001", "0001") if code.startswith(dot))
    field = code[len(dot) :][: {"11": 4, "10": 3, "01": 2, "001": 1, "0001": 0}[dot]]
    fraction = code[len(dot) + len(field) :]
    exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1) if field else 0
    return math.ldexp(sign * (1 + int(fraction, 2) / 2 ** len(fraction)), exponent)


CODES = np.arange(256, dtype=np.uint8).view(numpy_dtype("HIFLOAT8"))
TABLE = np.array([_by_text(f"{code:08b}") for code in range(256)])
NUMBERS = np.unique(TABLE[np.isfinite(TABLE)])


def test_every_code_is_what_the_paper_says() -> None:
    assert np.array_equal(widen(CODES), TABLE, equal_nan=True)
    assert encode(decode(CODES)).tobytes() == CODES.tobytes()
    assert to_dtype(TABLE, "HIFLOAT8").tobytes() == CODES.tobytes()
    assert np.array_equal(round_to(NUMBERS, FORM), NUMBERS)


def test_the_published_figures_of_the_format() -> None:
    finite = TABLE[np.isfinite(TABLE)]
    assert (len(finite), len(NUMBERS)) == (253, 253)
    assert np.flatnonzero(np.isnan(TABLE)).tolist() == [0x80]
    assert [np.flatnonzero(value == TABLE).tolist() for value in (INF, -INF, 0.0, 2.0**15)] == [
        [0x6F],
        [0xEF],
        [0x00],
        [0x6E],
    ]
    assert not np.signbit(TABLE[TABLE == 0]).any()
    binades = Counter(math.frexp(value)[1] - 1 for value in finite[finite > 0].tolist())
    assert sorted(binades) == list(range(-22, 16))
    mantissas = {exponent: math.log2(count) for exponent, count in binades.items() if exponent < 15}
    assert all(
        bits == (3 if abs(exponent) <= 3 else 2 if abs(exponent) <= 7 else 1 if abs(exponent) <= 15 else 0)
        for exponent, bits in mantissas.items()
    )
    assert binades[15] == 1  # the other code of that binade is infinity
    assert np.array_equal(TABLE[1:128], -TABLE[129:])
    for codes in np.split(np.arange(1, 128), 1 + np.flatnonzero(np.diff(np.frexp(TABLE[1:128])[1]))):
        assert (np.diff(TABLE[codes]) > 0).all()  # within one exponent codes are in the order of the numbers
    assert (FORM.largest, FORM.smallest_subnormal) == (NUMBERS.max(), NUMBERS[NUMBERS > 0].min())


def test_the_spacing_is_that_of_the_table_everywhere() -> None:
    positive = NUMBERS[NUMBERS >= 0]
    inside = (positive[1:] + positive[:-1]) / 2
    assert np.array_equal(spacing(inside, FORM), np.diff(positive))
    assert np.array_equal(toward_zero(inside, FORM), positive[:-1])
    assert (np.diff(spacing(positive, FORM)) >= 0).all()


@given(st.floats(-(2.0**16), 2.0**16) | st.floats(-(2.0**-14), 2.0**-14) | st.floats(-20, 20))
def test_rounding_takes_the_nearest_number_of_the_table(value: float) -> None:
    values = np.array([value])
    with np.errstate(all="ignore"):
        got = float(round_to(values, FORM)[0])
        least, most = nearest(np.stack((values, values)), FORM)[:, 0].tolist()
    if math.isinf(got):
        assert abs(value) > 1.25 * 2.0**15
        assert {abs(least), abs(most)} == {2.0**15, INF}
        return
    distances = [abs(Fraction(value) - Fraction(number)) for number in NUMBERS.tolist()]
    nearest_distance = min(distances)
    closest = {
        number for number, distance in zip(NUMBERS.tolist(), distances, strict=True) if distance == nearest_distance
    }
    assert got in closest
    assert {least, most} >= closest or math.isinf(max(abs(least), abs(most)))


def test_of_a_tie_both_neighbours_are_given_and_of_no_other_value() -> None:
    middles = (NUMBERS[1:] + NUMBERS[:-1]) / 2
    least, most = nearest(np.stack((middles, middles)), FORM)
    assert np.array_equal(least, NUMBERS[:-1])
    assert np.array_equal(most, NUMBERS[1:])
    beside = middles * (1 + 2.0**-40)
    least, most = nearest(np.stack((beside, beside)), FORM)
    assert np.array_equal(least, most)
    assert np.isin(least, NUMBERS).all()


def test_what_covers_it() -> None:
    forms = BINARY_FORMATS
    assert all(covers(forms[name], FORM) for name in ("DOUBLE", "FLOAT", "FLOAT16", "BF16", "HFLOAT32", "HIFLOAT8"))
    assert not any(covers(FORM, form) for name, form in forms.items() if name != "HIFLOAT8")
    assert not any(covers(forms[name], FORM) for name in ("FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0"))


@pytest.mark.parametrize("wrong", [float, np.float64, np.int64])
def test_codes_are_never_taken_for_numbers(wrong: type) -> None:
    with pytest.raises(ValueError, match=r"sequence|invalid literal"):
        CODES.astype(wrong)


def _model() -> ComputeModel:
    return load_precision().model(
        operator="aclnnHalvedGrad", output="gradX", dtype="HIFLOAT8", target=Target(product="ascend-950")
    )


@pytest.mark.parametrize(
    ("exact", "got", "conforms"),
    [
        (1.3, 1.25, True),
        (1.3, 1.375, False),
        (1.3125, 1.25, True),  # a tie
        (1.3125, 1.375, True),
        (1.3125, 1.5, False),
        (17.9, 16.0, True),
        (18.0, 20.0, True),
        (18.1, 16.0, False),
        (2.0**-20, 2.0**-20, True),
        (2.0**-20, 0.0, False),
        (1.5 * 2.0**-20, 2.0**-19, True),
        (1.5 * 2.0**-20, 2.0**-20, True),
        (2.0**-23, 0.0, True),
        (2.0**-23, 2.0**-22, True),
        (-(2.0**-24), 0.0, True),
        (-(2.0**-24), NAN, False),
        (1.2 * 2.0**15, 2.0**15, True),
        (1.2 * 2.0**15, INF, False),
        (1.25 * 2.0**15, INF, True),
        (1e6, INF, True),
        (1e6, 2.0**15, True),
        (1e6, 2.0**14, False),
        (1e6, -INF, False),
        (1e6, NAN, False),
        (-1e6, -(2.0**15), True),
        (NAN, NAN, True),
        (INF, INF, True),
        (INF, 2.0**15, False),
    ],
)
@pytest.mark.parametrize("is_exact", [True, False])
def test_outputs_are_held_to_the_neighbours_of_the_value(
    exact: float, got: float, conforms: bool, is_exact: bool
) -> None:
    value = np.array([exact, 1.0])
    # One rounding of FLOAT, which is far below the spacing.
    expected = ExpectedOutput(value=value) if is_exact else counted(value, 1)
    if not is_exact and not math.isfinite(exact):
        return
    found = compare("gradX", to_dtype(np.array([got, 1.0]), "HIFLOAT8"), expected, _model())
    assert (found.kind == "") is conforms, found
    assert found.deviation.open == 0
    if not conforms and not math.isfinite(got):
        assert found.kind == Fault.SPECIAL
