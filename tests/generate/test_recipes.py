"""What each recipe guarantees of its elements, whatever the words."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import DTYPES, numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.buffers import check_view
from aclnn_cts.generate.layouts import FLOAT_LAYOUTS, to_storage
from aclnn_cts.generate.recipes import RECIPES, array, case_arrays, lattice
from aclnn_cts.generate.recipes_exact import index_bounds
from aclnn_cts.speclang.kinds_data import INDEX_RECIPES, SEGMENTS
from tests.generate.made_data import FLOATS, few, make, needed, seeds, shapes, wide

NORMAL_REACH = 2.0 * 65535.0 / math.sqrt(4.0 * (2.0**32 - 1.0) / 12.0)
"""Standard deviations beyond which `normal` has no value: about 3.46."""


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_fills_every_dtype_and_rank(recipe: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for dtype, shape in itertools.product(DTYPES, [(), (1,), (0,), (3, 0, 2), (2, 3)]):
        tensor = Tensor(shape=shape, dtype=dtype, data=Data(recipe=recipe, seed=3, **needed(recipe)))
        made = array(tensor, arrays={"x": x}, name="t")
        assert made.shape == shape, dtype
        assert made.flags.c_contiguous, dtype
        assert made.flags.writeable, dtype
        if DTYPES[dtype].kind != "other":
            assert made.dtype == numpy_dtype(dtype)
        else:
            assert not made.any(), dtype
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
    step = lattice(tensor)
    assert step == 2.0**exponent
    assert (values / step == np.rint(values / step)).all()
    ends = wide(to_storage(np.array([low * step, (low + span) * step]), dtype))
    assert ends[0] <= values.min()
    assert values.max() <= ends[1]


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
@pytest.mark.parametrize("recipe", sorted(INDEX_RECIPES))
def test_index_data_stay_inside(recipe: str, dtype: str, seed: int, low: int, span: int) -> None:
    data = Data(recipe=recipe, seed=seed, low=low, high=low + span, **needed(recipe))
    tensor = Tensor(shape=(3, 41), dtype=dtype, data=data)
    values = wide(array(tensor, arrays={"x": np.arange(3 * 42.0).reshape(3, 42)}, name="indices"))
    bounds = index_bounds(tensor, data)
    assert bounds[0] <= values.min()
    assert values.max() <= bounds[1]
    if span > 0 and bounds[1] < low + span:
        assert bounds[0] >= min(low, bounds[1])
    assert (values == np.rint(values)).all()


def test_index_data_in_a_narrow_format_never_round_out_of_range() -> None:
    for high in range(250, 300):
        assert wide(make((500,), "BF16", "indices", high=high)).max() < high


@few
@given(
    seed=seeds,
    shape=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    total=st.integers(0, 2**30),
    least=st.integers(0, 3),
    data=st.data(),
)
@pytest.mark.parametrize("recipe", SEGMENTS)
def test_segments_add_up(
    recipe: str, seed: int, shape: tuple[int, ...], total: int, least: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1)) if shape else 0
    made = make(shape, "INT64", recipe, seed=seed, low=least, high=total, axis=axis)
    lines = np.moveaxis(made, axis, -1).reshape(-1, shape[axis]) if shape else made.reshape(1, 1)
    for line in lines.tolist():
        if recipe == "offsets":
            assert line[0] == 0
            assert len(line) == 1 or line[-1] == total
        elif recipe == "ends":
            assert line[-1] == total
        steps = np.diff(line).tolist() if recipe == "offsets" else line
        steps = np.diff([0, *line]).tolist() if recipe == "ends" else steps
        segments = len(steps) + (recipe == "partial_lengths")
        assert min(steps, default=total) >= min(least, total // max(segments, 1))
        assert sum(steps) <= total if recipe in ("partial_lengths", "offsets") else sum(steps) == total


def test_segments_are_of_many_lengths_and_some_are_empty() -> None:
    for recipe in ("lengths", "partial_lengths"):
        found = make((200, 10), "INT32", recipe, high=1000, seed=2)
        assert 0.2 < (found == 0).mean() < 0.35
        assert len(np.unique(found)) > 100
        # No place along the axis is favoured.
        assert (np.abs(found.mean(axis=0) - found.mean()) < 40).all()
    assert make((4,), "INT8", "ends", high=1000).tolist()[-1] == 127
    assert make((3,), "INT32", "ends", high=-4).tolist() == [0, 0, 0]


@few
@given(seed=seeds, shape=shapes, low=st.integers(-300, 300), data=st.data())
def test_a_permutation_holds_each_number_once(seed: int, shape: tuple[int, ...], low: int, data: st.DataObject) -> None:
    whole = make(shape, "INT32", "permutation", seed=seed, low=low)
    assert sorted(whole.reshape(-1).tolist()) == list(range(low, low + whole.size))
    if shape:
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        lines = np.moveaxis(make(shape, "INT32", "permutation", seed=seed, low=low, axis=axis), axis, -1)
        assert (np.sort(lines, axis=-1) == np.arange(low, low + shape[axis])).all()
    assert (make((200,), "INT8", "permutation", seed=seed) <= 127).all()


@few
@given(seed=seeds, rows=st.integers(1, 6), length=st.integers(1, 9), high=st.integers(0, 12))
def test_seen_indices_name_each_key_once_and_none_behind_the_row(seed: int, rows: int, length: int, high: int) -> None:
    found = make((2, rows, 1, length), "INT32", "seen_indices", seed=seed, high=high, axis=1)
    for batch in found:
        for place, line in enumerate(batch[:, 0]):
            keys = max(high - rows + 1 + place, 0)
            several = min(keys, length)
            assert len(set(line[:several].tolist())) == several
            assert all(0 <= number < keys for number in line[:several])
            assert (line[several:] == -1).all()
    whole = make((rows, length), "INT64", "seen_indices", seed=seed, high=high)
    assert all(sorted(line[line >= 0]) == list(range(high)) for line in whole) or high > length


def test_seen_indices_select_every_key_as_often() -> None:
    found = make((4000, 3), "INT32", "seen_indices", high=6, seed=5)
    shares = np.bincount(found.reshape(-1), minlength=6) / found.size
    assert (shares > 0.05).all()
    assert len(np.unique(found[:, 0])) > 1


@few
@given(seed=seeds, shape=shapes, low=st.integers(-300, 300), more=st.integers(0, 50), data=st.data())
def test_distinct_indices_come_once_in_a_line(
    seed: int, shape: tuple[int, ...], low: int, more: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1)) if shape else 0
    length = shape[axis] if shape else 1
    made = make(shape, "INT32", "distinct_indices", seed=seed, low=low, high=low + length + more, axis=axis)
    lines = np.moveaxis(made, axis, -1).reshape(-1, length) if shape else made.reshape(1, 1)
    assert low <= lines.min() <= lines.max() < low + length + more
    assert all(len(set(line)) == length for line in lines.tolist())


def test_distinct_indices_favour_no_place_and_no_value() -> None:
    made = make((4000, 3), "INT32", "distinct_indices", high=6)
    assert (np.abs(made.mean(axis=0) - 2.5) < 0.1).all()
    assert np.unique(made).tolist() == list(range(6))
    # Of as many numbers as places every order comes.
    assert len(np.unique(make((400, 3), "INT32", "distinct_indices", high=3), axis=0)) == 6


def test_bits_are_ones_as_often_as_asked() -> None:
    for dtype, width in (("UINT8", 8), ("INT32", 32), ("UINT64", 64), ("BOOL", 1), ("FLOAT", 1)):
        for mean in (0.0, 0.25, 0.5, 0.9, 1.0):
            made = make((2000,), dtype, "bits", mean=mean)
            ones = np.unpackbits(made.view(np.uint8)) if width > 1 else made
            assert abs(ones.mean() - mean) < 0.05
            assert mean not in (0.0, 1.0) or ones.mean() == mean
    # Whichever bit is looked at, it is as often 1.
    places = np.unpackbits(make((4000, 1), "UINT8", "bits", mean=0.75), axis=1).mean(axis=0)
    assert (np.abs(places - 0.75) < 0.05).all()


def test_few_indices_are_few_and_ramp_counts() -> None:
    values = make((1000,), "INT32", "few_indices", high=10**6, seed=1)
    counts = np.sort(np.unique(values, return_counts=True)[1])[::-1]
    assert len(counts) == 4
    assert 400 < counts[0] < 600
    assert make((7,), "INT32", "ramp", low=2, high=5).tolist() == [2, 3, 4, 2, 3, 4, 2]
    assert make((2, 2), "INT32", "ramp").tolist() == [[0, 1], [2, 3]]


def test_multiplicity_of_index_data() -> None:
    equal = make((3000,), "INT64", "equal_indices", low=5, high=10**6, seed=1)
    assert len(np.unique(equal)) == 1
    counts = np.sort(np.unique(make((3000,), "INT32", "hot_indices", high=10**6, seed=1), return_counts=True)[1])
    assert counts[-1] > 2500
    assert len(counts) > 300
    assert np.unique(make((3000,), "INT32", "end_indices", high=100, seed=1)).tolist() == [0, 1, 98, 99]
    assert np.unique(make((300,), "INT32", "zipf_indices", low=7, high=8)).tolist() == [7]
    assert np.unique(make((300,), "INT32", "zipf_indices", high=5)).tolist() == [0, 1, 2, 3, 4]
    zipf = make((30_000,), "INT64", "zipf_indices", low=5, high=50_005, seed=1)
    assert np.bincount(zipf)[5:8].tolist() == pytest.approx([30_000 / 16, 30_000 / 32, 30_000 / 32], rel=0.2)
    assert zipf.max() > 40_000
    assert np.unique(zipf).size > 9_000
    ends = np.unique(make((3000,), "INT32", "end_indices", high=2**25, seed=1))
    assert ends.tolist() == [0, 1, 2**16 - 1, 2**16, 2**24, 2**24 + 1, 2**25 - 2, 2**25 - 1]
    assert make((300,), "INT8", "end_indices", high=2**25, seed=1).max() == 127


@pytest.mark.parametrize("dtype", FLOATS)
def test_dominated_has_its_mass_in_one_term_a_line(dtype: str) -> None:
    values = wide(make((40, 64), dtype, "dominated"))
    assert (np.sort(np.abs(values), axis=1)[:, -2] < 0.02).all()
    assert (values.max(axis=1) == 1024.0).all()


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


@few
@given(seed=seeds, shape=shapes, axis=st.integers(-4, 3))
def test_repeated_has_one_number_in_each_line(seed: int, shape: tuple[int, ...], axis: int) -> None:
    values = make(shape, "DOUBLE", "repeated", seed=seed, axis=axis, low=2, high=5)
    used = axis if -len(shape) <= axis < len(shape) else -1
    lines = np.moveaxis(values, used, -1).reshape(-1, shape[used]) if shape else values.reshape(1, 1)
    assert (lines == lines[:, :1]).all()
    assert len(set(lines[:, 0].tolist())) == len(lines)
    assert values.min() >= 2
    assert values.max() <= 5


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


@few
@given(seed=seeds, shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), data=st.data())
def test_mean_and_invstd_belong_to_one_place_along_an_axis(seed: int, shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = Tensor(shape=tuple(shape), dtype="FLOAT16", data=Data(recipe="normal", seed=seed, mean=3.0))
    of_x = {
        name: Tensor(
            shape=(shape[axis],),
            dtype="DOUBLE",
            data=Data(recipe=name, of="x", axis=axis, epsilon=0.25 if name == "invstd" else None),
        )
        for name in ("mean", "invstd")
    }
    made = case_arrays(Case(operator="aclnnBatchNormBackward", arguments={**of_x, "x": x}), [*of_x, "x"])
    lines = np.moveaxis(made["x"], axis, 0).reshape(shape[axis], -1)
    for line, mean, invstd in zip(lines.tolist(), made["mean"], made["invstd"], strict=True):
        exact = sum(map(Fraction, line)) / len(line)
        variance = sum((Fraction(value) - exact) ** 2 for value in line) / len(line)
        assert math.isclose(mean, exact, rel_tol=1e-13, abs_tol=1e-13)
        assert math.isclose(invstd, 1 / math.sqrt(variance + Fraction(1, 4)), rel_tol=1e-12)


@few
@given(data=st.data(), recipe=st.sampled_from(["normal", "integers", "special"]))
def test_argmax_is_the_first_largest_element_of_each_window(data: st.DataObject, recipe: str) -> None:
    kernel, dilation, stride = (
        data.draw(st.tuples(*[st.integers(1, most)] * 2), label=name)
        for name, most in (("kernel", 3), ("dilation", 2), ("stride", 3))
    )
    padding = tuple(data.draw(st.integers(0, size // 2), label="padding") for size in kernel)
    size = tuple(
        data.draw(st.integers(max(1, (k - 1) * d + 1 - 2 * p), 9))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    count = tuple(
        (n + 2 * p - (k - 1) * d - 1) // s + 1
        for n, p, k, d, s in zip(size, padding, kernel, dilation, stride, strict=True)
    )
    x = Tensor(shape=(2, *size), dtype="FLOAT", data=Data(recipe=recipe, seed=data.draw(seeds)))
    windows = Data(
        recipe="argmax",
        of="x",
        axis=-2,
        high=size[0] * size[1],
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
    )
    y = Tensor(shape=(2, *count), dtype="INT32", data=windows)
    made = case_arrays(Case(operator="aclnnMaxPool", arguments={"y": y, "x": x}), ["y", "x"])
    for place in np.ndindex(y.shape):
        rows, columns = (
            [i for i in range(o * s - p, o * s - p + k * d, d) if 0 <= i < n]
            for o, s, p, k, d, n in zip(place[1:], stride, padding, kernel, dilation, size, strict=True)
        )
        inside = [row * size[1] + column for row in rows for column in columns]
        # NumPy's maximum is a nan where there is one, and its first place counts among equal elements.
        taken = made["x"][place[0]].reshape(-1)[inside]
        assert made["y"][place] == (inside[int(np.argmax(taken))] if inside else 0)


def test_argmax_takes_windows_in_front_of_channels() -> None:
    values = np.random.default_rng(0).integers(-9, 9, (2, 5, 4, 3))
    window = Data(recipe="argmax", of="x", kernel=(3, 2), stride=(2, 1), padding=(1,), dilation=(1,), high=20)

    def positions(x: np.ndarray[Any, Any], shape: tuple[int, ...], axis: int) -> np.ndarray[Any, Any]:
        data = msgspec.structs.replace(window, axis=axis)
        tensors = {
            "x": Tensor(shape=x.shape, dtype="FLOAT", data=Data(values=tuple(map(int, x.reshape(-1))))),
            "y": Tensor(shape=shape, dtype="INT32", data=data),
        }
        return case_arrays(Case(operator="a", arguments=tensors), ["x", "y"])["y"]

    first = positions(values.transpose(0, 3, 1, 2), (2, 3, 3, 5), -2)
    assert np.array_equal(positions(values, (2, 3, 5, 3), -3), first.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("sizes", [(5, 7), (1, 6), (4, 1)])
@pytest.mark.parametrize("counts", [(2, 3), (1, 1), (7, 4)])
def test_a_kernel_of_0_makes_windows_adaptive(sizes: tuple[int, ...], counts: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(-3, 3, (2, *sizes)).astype(np.float64)
    values[1, 0, 0] = np.nan
    numbers = tuple("nan" if math.isnan(value) else int(value) for value in values.reshape(-1))
    data = Data(recipe="argmax", of="x", axis=-2, kernel=(0, 0), high=sizes[0] * sizes[1])
    tensors = {
        "x": Tensor(shape=values.shape, dtype="FLOAT", data=Data(values=numbers)),
        "y": Tensor(shape=(2, *counts), dtype="INT64", data=data),
    }
    made = case_arrays(Case(operator="a", arguments=tensors), ["x", "y"])["y"]
    for place in np.ndindex(2, *counts):
        low, high = (
            [edge(Fraction((place[axis + 1] + more) * sizes[axis], counts[axis])) for axis in range(2)]
            for more, edge in ((0, math.floor), (1, math.ceil))
        )
        row, column = np.unravel_index(
            np.argmax(values[place[0], low[0] : high[0], low[1] : high[1]]), (high[0] - low[0], high[1] - low[1])
        )
        assert made[place] == (low[0] + row) * sizes[1] + low[1] + column


@pytest.mark.parametrize("x", [None, Tensor(shape=(5,), dtype="FLOAT", data=Data(recipe="normal"))])
def test_argmax_of_what_has_no_such_windows_is_an_index(x: Tensor | None) -> None:
    data = Data(recipe="argmax", of="x", axis=-2, kernel=(2,), high=7)
    case = Case(operator="a", arguments={"x": x, "y": Tensor(shape=(50, 4), dtype="INT64", data=data)})
    values = case_arrays(case, ["x", "y"])["y"]
    assert (values.min(), values.max()) == (0, 6)


@pytest.mark.parametrize("x", [None, Tensor(shape=(2, 0), dtype="FLOAT"), Tensor(shape=(7,), dtype="FLOAT")])
def test_rstd_of_what_has_no_rows_is_positive(x: Tensor | None) -> None:
    data = Data(recipe="rstd", of="x")
    case = Case(operator="a", arguments={"x": x, "rstd": Tensor(shape=(2, 3), dtype="FLOAT", data=data)})
    values = case_arrays(case, ["x", "rstd"])["rstd"]
    assert 0.25 < values.min() <= values.max() < 4.0


@pytest.mark.parametrize("axis", [0, 2, -3])
def test_statistics_along_an_axis_that_does_not_fit_are_others(axis: int) -> None:
    x = Tensor(shape=(7, 6), dtype="FLOAT", data=Data(recipe="normal", mean=100.0))
    arguments = {
        name: Tensor(shape=(6,), dtype="FLOAT", data=Data(recipe=name, of="x", axis=axis))
        for name in ("mean", "invstd")
    }
    made = case_arrays(Case(operator="a", arguments={"x": x, **arguments}), ["x", "mean", "invstd"])
    assert np.abs(made["mean"]).max() <= NORMAL_REACH
    assert 0.25 < made["invstd"].min() <= made["invstd"].max() < 4.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_wide_spans_the_exponents(dtype: str) -> None:
    layout = FLOAT_LAYOUTS.get(dtype)
    assert layout is not None
    exponents = np.frexp(wide(make((20_000,), dtype, "wide")))[1] - 1
    assert exponents.min() <= 2 - layout.bias
    assert exponents.max() >= layout.bias - 1
    inside = np.frexp(wide(make((2000,), dtype, "wide", low=-2, high=3)))[1] - 1
    assert set(inside.tolist()) == set(range(-2, 4))


@pytest.mark.parametrize("dtype", FLOATS)
def test_subnormal_and_large_lie_at_the_ends(dtype: str) -> None:
    layout = FLOAT_LAYOUTS.get(dtype)
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
        layout = FLOAT_LAYOUTS.get(dtype)
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


def test_one_hot_holds_as_many_ones_as_high_says_around_the_end() -> None:
    assert make((3, 5, 7), "INT8", "one_hot", high=4).sum() == 4
    values = make((200, 5), "BOOL", "one_hot", axis=1, high=3).astype(int)
    assert (values.sum(axis=1) == 3).all()
    assert len(np.unique(values, axis=0)) == 5
    assert (make((3, 5), "BOOL", "one_hot", axis=1, high=6) == 1).all()
    assert not make((3, 5), "BOOL", "one_hot", axis=1, high=0).any()


def test_the_documentation_names_every_recipe_and_what_it_reads() -> None:
    text = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    listed = text.split("## The recipes")[1].split("Explicit `values`")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in listed.splitlines() if line.startswith("| `")]
    documented = {
        name.strip("`"): set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", reads))) for name, reads, *_ in rows
    }
    assert documented == {name: set(recipe.reads) for name, recipe in RECIPES.items()}


def test_an_empty_tensor_of_impossible_sizes_is_refused() -> None:
    tensor = Tensor(shape=(0, 2**62, 2**62), dtype="FLOAT", data=Data(recipe="zeros"))
    with pytest.raises(UsageError, match=r"arguments\.x\.tensor\.shape: .*expected sizes that an empty array can have"):
        array(tensor, name="x", arrays={})
    assert check_view(tensor) is not None


@few
@given(
    seed=seeds, rows=st.integers(1, 9), count=st.integers(1, 40), dtype=st.sampled_from(["FLOAT16", "FLOAT", "INT32"])
)
def test_boxes_are_an_index_and_ascending_pairs(seed: int, rows: int, count: int, dtype: str) -> None:
    made = make((rows, 5), dtype, "boxes", seed=seed, high=count)
    assert ((made[:, 0] >= 0) & (made[:, 0] < count)).all()
    assert (made[:, 1::2] < made[:, 2::2]).all()
    assert made.min() >= 0


@few
@given(
    seed=seeds, rows=st.integers(1, 40), count=st.integers(1, 40), height=st.integers(0, 9), width=st.integers(0, 9),
    dtype=st.sampled_from(["FLOAT16", "FLOAT", "INT32"]),
)  # fmt: skip
def test_regions_are_an_index_and_corners_within_a_map(
    seed: int, rows: int, count: int, height: int, width: int, dtype: str
) -> None:
    made = make((rows, 5), dtype, "regions", seed=seed, high=count, kernel=(height, width)).astype(float)
    index, x1, y1, x2, y2 = made.T
    assert ((index >= 0) & (index < count)).all()
    assert ((x1 >= 0) & (x1 <= x2) & (x2 <= width)).all()
    assert ((y1 >= 0) & (y1 <= y2) & (y2 <= height)).all()


def test_some_regions_are_whole_maps_and_others_lie_between_elements() -> None:
    made = make((400, 5), "FLOAT", "regions", seed=1, high=3, kernel=(4, 6))
    assert 20 < (made[:, 1:] == [0, 0, 6, 4]).all(axis=1).sum() < 100
    assert (made % 1 != 0).any(axis=0).all()
