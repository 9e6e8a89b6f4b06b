"""What each recipe promises of its elements, whatever the words."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, FLOATING, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.facts import finite, lattice, value_range
from aclnn_cts.generate.layouts import float_layout, to_storage
from aclnn_cts.generate.recipes import CHUNK, RECIPES, array, case_arrays, check_data, checksum
from aclnn_cts.generate.recipes_real import NORMAL_REACH

FLOATS = sorted(FLOATING)
HELD = [name for name, dtype in DTYPES.items() if dtype.kind != "other"]
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**64 - 1)
shapes = st.lists(st.integers(1, 7), max_size=4).map(tuple)


def make(shape: tuple[int, ...], dtype: str, recipe: str, **parameters: float) -> NDArray[Any]:
    data = msgspec.convert(parameters | {"recipe": recipe}, Data)
    tensor = Tensor(shape=shape, dtype=dtype, data=data)
    return array(tensor, arrays={}, name="x")


def wide(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_fills_every_dtype_and_rank(recipe: str, dtype: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    of = "x" if recipe == "rstd" else None
    for shape in [(), (1,), (0,), (3, 0, 2), (2, 3)]:
        tensor = Tensor(shape=shape, dtype=dtype, data=Data(recipe=recipe, of=of, seed=3))
        made = array(tensor, arrays={"x": x}, name="t")
        assert made.shape == shape
        assert made.flags.c_contiguous
        assert made.flags.writeable
        if DTYPES[dtype].kind != "other":
            assert made.dtype == numpy_dtype(dtype)
        else:
            assert not made.any()
            assert made.itemsize == max(DTYPES[dtype].size, 1)


@few
@given(seed=seeds, shape=shapes, low=st.integers(-5000, 5000), span=st.integers(0, 5000), exponent=st.integers(-9, 3))
@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_lie_on_their_lattice(
    dtype: str, seed: int, shape: tuple[int, ...], low: int, span: int, exponent: int
) -> None:
    data = Data(recipe="integers", seed=seed, low=low, high=low + span, exponent=exponent)
    tensor = Tensor(shape=shape, dtype=dtype, data=data)
    values = wide(array(tensor, arrays={}, name="x"))
    step, bounds = lattice(tensor), value_range(tensor)
    assert step == 2.0**exponent
    assert bounds is not None
    assert (values / step == np.rint(values / step)).all()
    assert bounds[0] <= values.min()
    assert values.max() <= bounds[1]


def test_integers_reach_both_ends_and_nothing_beyond() -> None:
    assert set(make((400,), "FLOAT16", "integers", low=-3, high=2).tolist()) == {-3, -2, -1, 0, 1, 2}
    assert set(make((400,), "BOOL", "integers").tolist()) == {False, True}
    assert set(make((400,), "UINT8", "integers").tolist()) == set(range(9))
    assert set(make((800,), "FLOAT", "integers").tolist()) == set(range(-8, 9))


@pytest.mark.parametrize(("dtype", "low", "high"), [("INT64", -(2**63), 2**63 - 1), ("UINT64", 0, 2**64 - 1)])
def test_integers_span_the_widest_dtypes(dtype: str, low: int, high: int) -> None:
    values = make((1000,), dtype, "integers", low=low, high=high).tolist()
    middle = (low + high) // 2
    assert low <= min(values) < middle - (high - low) // 4
    assert high >= max(values) > middle + (high - low) // 4


@few
@given(seed=seeds, low=st.integers(-3, 300), span=st.integers(-2, 400))
@pytest.mark.parametrize("dtype", ["INT64", "INT8", "UINT8", "BOOL", "FLOAT16", "BF16", "DOUBLE"])
@pytest.mark.parametrize("recipe", ["indices", "few_indices", "ramp"])
def test_index_data_stay_inside(recipe: str, dtype: str, seed: int, low: int, span: int) -> None:
    tensor = Tensor(shape=(3, 41), dtype=dtype, data=Data(recipe=recipe, seed=seed, low=low, high=low + span))
    values = wide(array(tensor, arrays={}, name="indices"))
    bounds = value_range(tensor)
    assert bounds is not None
    assert bounds[0] <= values.min()
    assert values.max() <= bounds[1]
    if span > 0 and bounds[1] < low + span:
        assert bounds[0] >= min(low, bounds[1])
    assert (values == np.rint(values)).all()


def test_index_data_in_a_narrow_format_never_round_out_of_range() -> None:
    for high in range(250, 300):
        assert wide(make((500,), "BF16", "indices", high=high)).max() < high


def test_few_indices_are_few_and_ramp_counts() -> None:
    values = make((1000,), "INT32", "few_indices", high=10**6, seed=1)
    counts = np.sort(np.unique(values, return_counts=True)[1])[::-1]
    assert len(counts) == 4
    assert 400 < counts[0] < 600
    assert make((7,), "INT32", "ramp", low=2, high=5).tolist() == [2, 3, 4, 2, 3, 4, 2]
    assert make((2, 2), "INT32", "ramp").tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_is_a_bell(dtype: str) -> None:
    values = wide(make((20_000,), dtype, "normal", mean=1.0, std=2.0))
    assert abs(values.mean() - 1.0) < 0.06
    assert abs(values.std() - 2.0) < 0.06
    assert abs(((values - 1.0) ** 4).mean() / values.var() ** 2 - 2.7) < 0.15
    assert np.abs(values - 1.0).max() <= 2.0 * NORMAL_REACH * 1.01


@few
@given(seed=seeds, low=st.integers(-100, 100), span=st.integers(0, 100))
def test_uniform_stays_between_its_bounds(seed: int, low: int, span: int) -> None:
    for dtype in FLOATS:
        values = wide(make((50,), dtype, "uniform", low=low, high=low + span, seed=seed))
        assert low <= values.min()
        assert values.max() <= low + span


@pytest.mark.parametrize("dtype", FLOATS)
def test_positive_stays_inside_and_fills_its_interval(dtype: str) -> None:
    values = wide(make((5000,), dtype, "positive"))
    assert 0.25 < values.min() < 0.27
    assert 3.9 < values.max() < 4.0


@few
@given(seed=seeds, shape=shapes, axis=st.integers(-4, 3))
def test_softmax_sums_to_one(seed: int, shape: tuple[int, ...], axis: int) -> None:
    values = make(shape, "DOUBLE", "softmax", seed=seed, axis=axis)
    used = axis if -len(shape) <= axis < len(shape) else -1
    sums = values.sum(axis=used) if shape else values
    assert (values > 0).all()
    assert np.allclose(sums, 1.0, rtol=1e-14)


@few
@given(
    seed=seeds, outer=st.lists(st.integers(1, 5), max_size=2), inner=st.lists(st.integers(1, 9), min_size=1, max_size=2)
)
def test_rstd_belongs_to_x(seed: int, outer: list[int], inner: list[int]) -> None:
    x = Tensor(shape=(*outer, *inner), dtype="FLOAT16", data=Data(recipe="normal", seed=seed))
    rstd = Tensor(shape=tuple(outer), dtype="DOUBLE", data=Data(recipe="rstd", of="x", epsilon=0.25))
    made = case_arrays(Case(operator="aclnnRmsNormGrad", arguments={"rstd": rstd, "x": x}), ["rstd", "x"])
    assert list(made) == ["rstd", "x"]
    rows = made["x"].astype(np.float64).reshape(math.prod(outer), -1)
    for row, got in zip(rows.tolist(), made["rstd"].reshape(-1).tolist(), strict=True):
        mean = sum(Fraction(value) ** 2 for value in row) / len(row) + Fraction(1, 4)
        assert math.isclose(got, 1 / math.sqrt(mean), rel_tol=1e-14)


@pytest.mark.parametrize("x", [None, Tensor(shape=(2, 0), dtype="FLOAT"), Tensor(shape=(7,), dtype="FLOAT")])
def test_rstd_of_what_has_no_rows_is_positive(x: Tensor | None) -> None:
    data = Data(recipe="rstd", of="x")
    case = Case(operator="a", arguments={"x": x, "rstd": Tensor(shape=(2, 3), dtype="FLOAT", data=data)})
    values = case_arrays(case, ["x", "rstd"])["rstd"]
    assert 0.25 < values.min() <= values.max() < 4.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_wide_spans_the_exponents(dtype: str) -> None:
    layout = float_layout(dtype)
    assert layout is not None
    exponents = np.frexp(wide(make((20_000,), dtype, "wide")))[1] - 1
    assert exponents.min() <= 2 - layout.bias
    assert exponents.max() >= layout.bias - 1
    inside = np.frexp(wide(make((2000,), dtype, "wide", low=-2, high=3)))[1] - 1
    assert set(inside.tolist()) == set(range(-2, 4))


@pytest.mark.parametrize("dtype", FLOATS)
def test_subnormal_and_large_lie_at_the_ends(dtype: str) -> None:
    layout = float_layout(dtype)
    assert layout is not None
    below = np.abs(wide(make((5000,), dtype, "subnormal")))
    smallest_normal = 2.0 ** (1 - layout.bias)
    assert below.min() > 0
    assert smallest_normal * 0.9 < below.max() < smallest_normal
    above = np.abs(wide(make((5000,), dtype, "large")))
    assert layout.largest / 4.001 <= above.min()
    assert layout.largest * 0.98 <= above.max() <= layout.largest


@few
@given(seed=seeds, shape=shapes)
def test_special_holds_one_that_is_not_finite(seed: int, shape: tuple[int, ...]) -> None:
    for dtype in FLOATS:
        assert not np.isfinite(wide(make(shape, dtype, "special", seed=seed))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_holds_every_kind_among_numbers(dtype: str) -> None:
    values = wide(make((2000,), dtype, "special"))
    assert np.isnan(values).any()
    assert (values == math.inf).any()
    assert (values == -math.inf).any()
    assert (np.signbit(values) & (values == 0)).any()
    assert 0.75 < np.isfinite(values).mean() < 0.95


@few
@given(seed=seeds, shape=st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple), data=st.data())
def test_cancel_nearly_cancels(seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    for dtype in FLOATS:
        values = np.moveaxis(wide(make(shape, dtype, "cancel", seed=seed, axis=axis)), axis, -1)
        pairs = shape[axis] // 2 * 2
        sums = values[..., 0:pairs:2] + values[..., 1:pairs:2]
        layout = float_layout(dtype)
        assert layout is not None
        unit = 2.0 ** (np.frexp(values[..., 0:pairs:2])[1] - layout.precision)
        assert (np.abs(sums) <= 4 * unit).all()
        assert (np.abs(sums) >= unit).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_swamped_shows_in_which_order_a_sum_was_made(dtype: str) -> None:
    values = wide(make((2000,), dtype, "swamped"))
    large = np.abs(values) == 2.0**10
    assert 0.45 < large.mean() < 0.55
    assert 0.45 < (values[large] > 0).mean() < 0.55
    assert (np.abs(values[~large]) < 2.0**-6).all()
    # Groups that cancel: the same sum of four and its reverse, in FLOAT, differ by more than an output's rounding.
    lines = values.reshape(-1, 4).astype(np.float32)
    lines = lines[lines.astype(np.float64).sum(axis=1) < 2.0**-4]
    forward = ((lines[:, 0] + lines[:, 1]) + lines[:, 2]) + lines[:, 3]
    backward = ((lines[:, 3] + lines[:, 2]) + lines[:, 1]) + lines[:, 0]
    assert (to_storage(forward.astype(np.float64), dtype) != to_storage(backward.astype(np.float64), dtype)).any()


def test_one_hot_holds_one_one() -> None:
    assert make((3, 5, 7), "FLOAT", "one_hot").sum() == 1
    for axis in range(3):
        values = make((3, 5, 7), "BF16", "one_hot", axis=axis).astype(np.float64)
        assert (values.sum(axis=axis) == 1).all()
        assert set(np.unique(values)) == {0.0, 1.0}


@few
@given(seed=seeds, dtype=st.sampled_from(HELD), recipe=st.sampled_from(sorted(RECIPES)))
def test_facts_hold_of_the_elements(seed: int, dtype: str, recipe: str) -> None:
    of = "x" if recipe == "rstd" else None
    tensor = Tensor(shape=(3, 5), dtype=dtype, data=Data(recipe=recipe, seed=seed, of=of))
    values = array(tensor, arrays={"x": np.ones((3, 5, 2))}, name="t")
    if DTYPES[dtype].kind == "float":
        values = wide(values)
        assert finite(tensor) == bool(np.isfinite(values).all())
        step = lattice(tensor)
        assert step is None or (values / step == np.rint(values / step)).all()
    bounds = value_range(tensor)
    assert bounds is None or (bounds[0] <= values.real.min() and values.real.max() <= bounds[1])


def test_facts_of_explicit_values() -> None:
    def tensor(dtype: str, *values: float | str) -> Tensor:
        return Tensor(shape=(len(values),), dtype=dtype, data=Data(values=values))

    assert lattice(tensor("FLOAT", 3, -0.5, 0)) == 0.5
    assert lattice(tensor("FLOAT", 4, 12)) == 4.0
    assert lattice(tensor("BF16", 257)) == 256.0
    assert lattice(tensor("FLOAT", 0)) == 1.0
    assert lattice(tensor("FLOAT", 1, "inf")) is None
    assert lattice(tensor("INT32", 4)) == 1.0
    assert value_range(tensor("FLOAT", -1.5, 2.25)) == (-2, 3)
    assert value_range(tensor("UINT64", 2**64 - 1)) == (2**64 - 1, 2**64 - 1)
    assert value_range(tensor("FLOAT", "nan")) is None
    assert not finite(tensor("FLOAT16", 65520.0))
    assert finite(tensor("FLOAT16", 65519.0))
    assert finite(Tensor(shape=(2,), dtype="FLOAT"))


def test_facts_of_recipes_that_overflow() -> None:
    for data in [Data(recipe="integers", low=0, high=1, exponent=16), Data(recipe="constant", mean=1e6)]:
        tensor = Tensor(shape=(40,), dtype="FLOAT16", data=data)
        assert not finite(tensor)
        assert lattice(tensor) is None
        assert np.isinf(array(tensor, arrays={}, name="x")).any()
    assert not finite(Tensor(shape=(3,), dtype="FLOAT16", data=Data(recipe="normal", std=3e4)))


def test_bf16_rounds_where_two_steps_would_go_wrong() -> None:
    just_above_tie = 1.0 + 2.0**-8 + 2.0**-40
    assert float(to_storage(np.array([just_above_tie]), "BF16")[0]) == 1.0 + 2.0**-7
    assert float(np.float32(just_above_tie).astype(ml_dtypes.bfloat16)) == 1.0


def test_explicit_values_are_rounded_to_nearest_even() -> None:
    tensor = Tensor(shape=(2, 3), dtype="FLOAT16", data=Data(values=(2049, 2051, 0.1, "inf", "-inf", "nan")))
    values = array(tensor, arrays={}, name="x").astype(np.float64)
    assert values[0].tolist() == [2048.0, 2052.0, float(np.float16(0.1))]
    assert values[1, :2].tolist() == [math.inf, -math.inf]
    assert math.isnan(values[1, 2])
    integers = Tensor(shape=(2,), dtype="INT64", data=Data(values=(2**63 - 1, 2.5)))
    assert array(integers, arrays={}, name="x").tolist() == [2**63 - 1, 2]


def test_data_depend_on_seed_and_name_and_not_on_layout() -> None:
    data = Data(recipe="normal", seed=1)
    tensor = Tensor(shape=(3, 4), dtype="FLOAT", data=data)
    strided = Tensor(shape=(3, 4), dtype="FLOAT", data=data, strides=(1, 3), offset=5)
    first = array(tensor, arrays={}, name="x")
    assert (first == array(strided, arrays={}, name="x")).all()
    assert (first != array(tensor, arrays={}, name="dy")).any()
    assert (first != make((3, 4), "FLOAT", "normal", seed=2)).any()


def test_long_tensors_begin_like_the_stream_says() -> None:
    long = make((CHUNK + 10,), "FLOAT", "normal", seed=4)
    assert (long[:10] == make((10,), "FLOAT", "normal", seed=4)).all()
    assert len(np.unique(long[CHUNK:])) == 10


BAD_DATA = [
    (Data(recipe="norml"), r"arguments\.x\.tensor\.data\.recipe: 'norml'; expected one of .*; did you mean 'normal'"),
    (Data(recipe="normal", low=1), r"data\.low: 1; recipe 'normal' reads mean, std; leave it out"),
    (Data(recipe="zeros", axis=0), r"data\.axis: 0; recipe 'zeros' reads no parameter"),
    (Data(values=(1,), high=3), r"data\.high: 3; explicit values read no parameter"),
    (Data(recipe="rstd"), r"data\.of: missing"),
    (Data(recipe="integers", low=3, high=1), r"data\.low: 3; expected at most high, which is 1"),
    (Data(recipe="integers", exponent=5000), r"data\.exponent: 5000; expected"),
    (Data(recipe="indices", high=2**64), r"data\.high: 18446744073709551616; expected an integer of 64 bits"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DATA)
def test_bad_data_are_refused(data: Data, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_data(data, name="x")


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor(shape=(1,), dtype="FLOAT"), r"data: missing"),
        (
            Tensor(shape=(2,), dtype="INT8", data=Data(values=(1, 300))),
            r"values\[1\]: 300; .*INT8 holds \(-128 to 127\)",
        ),
        (Tensor(shape=(1,), dtype="INT8", data=Data(values=("nan",))), r"values\[0\]: 'nan'"),
        (Tensor(shape=(2,), dtype="INT8", data=Data(values=(1,))), r"values: 1 numbers; expected 2"),
        (Tensor(shape=(1,), dtype="FLOAT", data=Data(recipe="rstd", of="y")), r"data\.of: 'y'"),
        (Tensor(shape=(1,), dtype="FLOAT", data=Data(recipe="normal", seed=-1)), r"seed: -1; expected"),
    ],
)
def test_bad_tensors_are_refused(tensor: Tensor, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        array(tensor, arrays={}, name="x")


def test_circular_and_unknown_sources_are_refused() -> None:
    def rstd(of: str) -> Tensor:
        return Tensor(shape=(1,), dtype="FLOAT", data=Data(recipe="rstd", of=of))

    with pytest.raises(UsageError, match="computed from themselves"):
        case_arrays(Case(operator="a", arguments={"x": rstd("y"), "y": rstd("x")}), ["x"])
    with pytest.raises(UsageError, match="'z'; expected an argument of the case"):
        case_arrays(Case(operator="a", arguments={"x": rstd("z")}), ["x"])


def test_checksum_sees_bytes_names_dtypes_and_shapes() -> None:
    base = {"x": np.zeros((2, 3), np.float32)}
    others: list[dict[str, NDArray[Any]]] = [
        {"y": base["x"]},
        {"x": base["x"].reshape(3, 2)},
        {"x": base["x"].view(np.int32)},
        {"x": np.copysign(base["x"], -1)},
        {},
    ]
    assert len({checksum(arrays) for arrays in [base, *others]}) == 6
    assert checksum(base) == checksum({"x": np.asfortranarray(base["x"])})


def test_the_documentation_names_every_recipe_and_what_it_reads() -> None:
    text = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    listed = text.split("## The recipes")[1].split("Explicit `values`")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in listed.splitlines() if line.startswith("| `")]
    documented = {
        name.strip("`"): set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", reads))) for name, reads, *_ in rows
    }
    assert documented == {name: set(recipe.reads) for name, recipe in RECIPES.items()}
