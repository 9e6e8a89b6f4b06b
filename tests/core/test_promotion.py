"""Promotion and conversion of dtypes, against what the common pages say."""

import itertools

import numpy as np
import pytest

from aclnn_cts.core.dtypes import DTYPES, can_convert, promoted_by_scalar, promoted_dtype, promoted_inputs

ALONE = ("UINT16", "UINT32", "UINT64")


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("FLOAT16", "BF16"), "FLOAT"),
        (("FLOAT", "DOUBLE"), "DOUBLE"),
        (("INT64", "FLOAT16"), "FLOAT16"),
        (("INT8", "UINT8"), "INT16"),
        (("BOOL", "UINT8"), "UINT8"),
        (("FLOAT16", "COMPLEX32"), "COMPLEX32"),
        (("FLOAT", "COMPLEX32"), "COMPLEX64"),
        (("DOUBLE", "COMPLEX64"), "COMPLEX128"),
        (("FLOAT16", "BF16", "DOUBLE"), "DOUBLE"),
        (("INT4",), None),
        (("HIFLOAT8", "HIFLOAT8"), "HIFLOAT8"),
        (("FLOAT8_E4M3FN", "FLOAT"), None),
        (("UINT32", "FLOAT"), None),
        (("FLOAT", "UINT64", "FLOAT"), None),
    ],
)
def test_tensors_promote_as_the_page_says(dtypes: tuple[str, ...], expected: str | None) -> None:
    assert promoted_dtype(dtypes) == expected


def test_two_tensors_promote_in_either_order_and_wide_unsigned_integers_alone() -> None:
    for one, two in itertools.product(DTYPES, repeat=2):
        assert promoted_dtype([one, two]) == promoted_dtype([two, one])
        if one in ALONE:
            assert promoted_dtype([one, two]) == (one if one == two else None)


@pytest.mark.parametrize(
    ("tensor", "scalar", "expected"),
    [
        ("FLOAT16", "DOUBLE", "FLOAT16"),
        ("INT32", "FLOAT16", "FLOAT"),
        ("UINT8", "INT64", "UINT8"),
        ("BOOL", "INT16", "INT16"),
        ("UINT16", "FLOAT", None),
        ("FLOAT16", "COMPLEX64", "COMPLEX32"),
        ("COMPLEX32", "DOUBLE", "COMPLEX128"),
    ],
)
def test_a_scalar_counts_less_than_a_tensor_of_its_kind(tensor: str, scalar: str, expected: str | None) -> None:
    assert promoted_by_scalar(tensor, scalar) == expected


def test_conversions_never_lead_to_a_lower_kind() -> None:
    assert can_convert("INT64", "FLOAT16")
    assert can_convert("DOUBLE", "BF16")
    assert can_convert("BOOL", "COMPLEX64")
    assert can_convert("COMPLEX128", "COMPLEX64")
    assert can_convert("BOOL", "BOOL")
    assert not can_convert("FLOAT", "INT32")
    assert not can_convert("COMPLEX64", "FLOAT")
    assert not can_convert("UINT8", "BOOL")
    assert not can_convert("FLOAT", "STRING")


def test_integers_are_rounded_to_the_promoted_dtype_and_nothing_else_changes() -> None:
    many = np.array([2**24 + 1], np.int64)
    real = np.array([0.1])
    found = promoted_inputs({"x": many, "y": real, "z": many}, ["x", "y"], "FLOAT")
    assert found["x"].dtype == np.float64
    assert found["x"].tolist() == [2.0**24]
    assert found["y"] is real
    assert found["z"] is many
    assert promoted_inputs({"x": many}, ["x"], "INT64")["x"] is many
