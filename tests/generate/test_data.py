"""Data whatever their recipe: facts, explicit values, streams, checksums, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.dtypes import DTYPES
from aclnn_cts.core.errors import UsageError
from aclnn_cts.generate.layouts import to_storage
from aclnn_cts.generate.recipes import CHUNK, RECIPES, array, case_arrays, check_data, lattice
from tests.generate.made_data import HELD, checksum, few, make, needed, seeds, wide


@pytest.mark.parametrize("recipe", sorted(RECIPES))
@few
@given(seed=seeds, dtype=st.sampled_from(HELD))
def test_facts_hold_of_the_elements(recipe: str, seed: int, dtype: str) -> None:
    tensor = Tensor(shape=(3, 5), dtype=dtype, data=Data(recipe=recipe, seed=seed, **needed(recipe)))
    values = array(tensor, arrays={"x": np.ones((3, 5, 2))}, name="t")
    if DTYPES[dtype].kind == "float":
        values = wide(values)
        step = lattice(tensor)
        assert step is None or (values / step == np.rint(values / step)).all()


def test_facts_of_explicit_values() -> None:
    def tensor(dtype: str, *values: float | str) -> Tensor:
        return Tensor(shape=(len(values),), dtype=dtype, data=Data(values=values))

    assert lattice(tensor("FLOAT", 3, -0.5, 0)) == 0.5
    assert lattice(tensor("FLOAT", 4, 12)) == 4.0
    assert lattice(tensor("BF16", 257)) == 256.0
    assert lattice(tensor("FLOAT", 0)) == 1.0
    assert lattice(tensor("FLOAT", 1, "inf")) is None
    assert lattice(tensor("INT32", 4)) == 1.0


def test_facts_of_recipes_that_overflow() -> None:
    for data in [Data(recipe="integers", low=0, high=1, exponent=16), Data(recipe="constant", mean=1e6)]:
        tensor = Tensor(shape=(40,), dtype="FLOAT16", data=data)
        assert lattice(tensor) is None
        assert np.isinf(array(tensor, arrays={}, name="x")).any()


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
    (Data(recipe="argmax", of="x"), r"data\.kernel: missing"),
    (Data(recipe="argmax", of="x", kernel=(2**63,)), r"data\.kernel: .*; expected at most 8 integers of 64 bits"),
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
