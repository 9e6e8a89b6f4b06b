"""8-bit floats: their values bit by bit, rounding to them, data in them, and outputs held to their spacing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.dtypes import DTYPES, FLOAT8, numpy_dtype
from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.rounding import BINARY_FORMATS, round_to, to_dtype, widen
from aclnn_cts.core.target import Target
from aclnn_cts.generate.recipes import RECIPES
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.repro.cpp import elements
from tests.generate.made_data import make, needed, wide
from tests.support.compared import compare

FIXTURES = Path(__file__).parents[1] / "fixtures" / "float8"
NAN, INF = math.nan, math.inf


def _value(dtype: str, bits: int) -> float:
    """An element by the text of the OCP specifications; `test_hifloat8` has the text of the other format."""
    if dtype == "HIFLOAT8":
        return float(widen(np.array([bits], np.uint8).view(numpy_dtype(dtype)))[0])
    if dtype == "FLOAT8_E8M0":
        return NAN if bits == 255 else 2.0 ** (bits - 127)
    exponent_bits, mantissa_bits, bias = (5, 2, 15) if dtype == "FLOAT8_E5M2" else (4, 3, 7)
    sign = -1.0 if bits >> 7 else 1.0
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    if dtype == "FLOAT8_E5M2" and exponent == 31:
        return NAN if mantissa else sign * INF
    if dtype == "FLOAT8_E4M3FN" and bits & 127 == 127:
        return NAN
    if not exponent:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa * 2.0**-mantissa_bits) * 2.0 ** (exponent - bias)


def _table(dtype: str) -> NDArray[np.float64]:
    return np.array([_value(dtype, bits) for bits in range(256)])


@pytest.mark.parametrize("dtype", sorted(FLOAT8))
def test_every_element_is_what_the_specification_says(dtype: str) -> None:
    stored = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    assert np.array_equal(widen(stored), _table(dtype), equal_nan=True)
    form, values = BINARY_FORMATS[dtype], _table(dtype)
    values = values[np.isfinite(values)]
    assert values.max() == form.largest
    assert np.abs(values[values != 0]).min() == form.smallest_subnormal
    assert np.array_equal(round_to(values, form), values)
    assert np.array_equal(widen(to_dtype(values, dtype)), values)


@pytest.mark.parametrize("dtype", sorted(FLOAT8))
def test_rounding_takes_the_nearest_element(dtype: str) -> None:
    table = np.unique(_table(dtype)[np.isfinite(_table(dtype))])
    values = np.random.default_rng(3).uniform(1.0, 2.0, 4000) * 2.0 ** np.random.default_rng(4).integers(-9, 7, 4000)
    got = widen(to_dtype(values, dtype))
    near = np.abs(values[:, np.newaxis] - table).min(axis=1)
    assert np.array_equal(np.abs(values - got), near)
    middles = (table[1:] + table[:-1]) / 2
    middles = middles[middles > BINARY_FORMATS[dtype].smallest_subnormal]
    even = to_dtype(middles, dtype).view(np.uint8) & 1
    # Of a tie the even significand; where there is one bit alone, the larger of two powers of two is its even multiple.
    assert (even == 0).all() or dtype in ("FLOAT8_E8M0", "HIFLOAT8")
    if dtype == "FLOAT8_E8M0":
        assert np.array_equal(widen(to_dtype(middles, dtype)), table[table > 2.0**-127][-len(middles) :])


def test_what_a_format_lacks_is_nan_or_its_smallest_number() -> None:
    with np.errstate(all="ignore"):
        assert widen(to_dtype(np.array([448.0, 464.0, -464.0]), "FLOAT8_E4M3FN")).tolist() == [448.0, 448.0, -448.0]
        assert np.isnan(widen(to_dtype(np.array([464.1, -500.0, INF, NAN]), "FLOAT8_E4M3FN"))).all()
        assert widen(to_dtype(np.array([0.0, 2.0**-140]), "FLOAT8_E8M0")).tolist() == [2.0**-127] * 2
        assert np.isnan(widen(to_dtype(np.array([-1.0, INF, NAN, 1.6 * 2.0**127]), "FLOAT8_E8M0"))).all()
        assert widen(to_dtype(np.array([61439.0, 61440.0]), "FLOAT8_E5M2")).tolist() == [57344.0, INF]


@pytest.mark.parametrize("dtype", sorted(FLOAT8))
@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if not needed(name)])
def test_recipes_make_finite_data_but_where_they_say_so(dtype: str, recipe: str) -> None:
    values = wide(make((40, 7), dtype, recipe))
    # FLOAT8_E8M0 is converted, and has nan for the infinity that FLOAT has.
    is_low = (recipe, dtype) == ("patterns", "FLOAT8_E8M0")
    is_special = (
        recipe == "special"
        or (recipe == "patterns" and not is_low)
        or (recipe == "infinite" and dtype != "FLOAT8_E4M3FN")
    )
    assert np.isfinite(values).all() is np.bool_(not is_special)
    # A band without ends masks nothing; the first patterns of FLOAT are all below the least number of FLOAT8_E8M0.
    # Without keys nothing is seen.
    if recipe not in ("zeros", "constant", "equal_indices", "band", "seen_indices") and not is_low:
        assert len(np.unique(values)) > 1


@pytest.mark.parametrize("dtype", ["FLOAT8_E5M2", "FLOAT8_E4M3FN", "HIFLOAT8"])
def test_hostile_data_reach_the_ends(dtype: str) -> None:
    form = BINARY_FORMATS[dtype]
    large = np.abs(wide(make((2000,), dtype, "large")))
    assert large.max() == form.largest
    assert large.min() >= form.largest / 4
    small = np.abs(wide(make((2000,), dtype, "subnormal")))
    assert small.min() == form.smallest_subnormal
    normal = 2.0**-15 if dtype == "HIFLOAT8" else form.smallest_normal
    assert normal / 2 <= small.max() < normal
    special = wide(make((2000,), dtype, "special"))
    assert np.isnan(special).any()
    assert np.isinf(special).any() == form.infinite
    assert wide(make((9,), dtype, "constant", mean=1e6)).max() == (448.0 if not form.infinite else INF)
    assert len(np.unique(wide(make((2000,), "FLOAT8_E8M0", "wide")))) > 240


@pytest.mark.parametrize(
    ("dtype", "exact", "got", "kind"),
    [
        ("FLOAT8_E4M3FN", 1.3, 1.25, ""),
        ("FLOAT8_E4M3FN", 1.3, 1.375, Fault.VALUE),
        ("FLOAT8_E4M3FN", 1.3, NAN, Fault.SPECIAL),
        ("FLOAT8_E4M3FN", 2.0**-9, 2.0**-9, ""),
        ("FLOAT8_E4M3FN", 440.0, 448.0, ""),
        ("FLOAT8_E4M3FN", 440.0, NAN, Fault.SPECIAL),
        ("FLOAT8_E4M3FN", 1000.0, NAN, "open"),
        ("FLOAT8_E4M3FN", 1000.0, 448.0, "open"),
        ("FLOAT8_E5M2", 1.3, 1.25, ""),
        ("FLOAT8_E5M2", 1.3, 1.5, Fault.VALUE),
        ("FLOAT8_E5M2", 1e6, INF, ""),
        ("FLOAT8_E5M2", 1e6, 57344.0, Fault.VALUE),
        ("FLOAT8_E8M0", 1.3, 1.0, ""),
        ("FLOAT8_E8M0", 1.3, 2.0, Fault.VALUE),
        ("FLOAT8_E8M0", 0.0, 1.0, "open"),
        ("FLOAT8_E8M0", -1.0, NAN, "open"),
        ("FLOAT8_E8M0", 2.0**-120, 2.0**-120, ""),
    ],
)
def test_outputs_are_held_to_the_spacing_of_the_format(dtype: str, exact: float, got: float, kind: str) -> None:
    model = load_precision().model(
        operator="aclnnScaledCastGrad", output="gradX", dtype=dtype, target=Target(product="ascend-950")
    )
    found = compare("gradX", to_dtype(np.array([got]), dtype), ExpectedOutput(value=np.array([exact])), model)
    assert (found.deviation.open == 1) is (kind == "open")
    # A fault that another model would explain is called one of the model.
    assert bool(found.kind) is (kind not in ("", "open")), found
    if kind == Fault.SPECIAL:
        assert found.kind == Fault.SPECIAL


def test_reproducers_hold_their_bits() -> None:
    stored = np.array([0x3F, 0x80, 0xFF], np.uint8)
    for dtype in FLOAT8:
        assert DTYPES[dtype].size == 1
        assert elements(stored.view(numpy_dtype(dtype)), dtype) == ("uint8_t", ["0x3f", "0x80", "0xff"])
