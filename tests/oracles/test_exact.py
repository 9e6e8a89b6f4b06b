"""Sums of products in rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.oracles._exact import sum_of_products

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FINITE, FINITE, FINITE), max_size=8))
def test_sums_are_those_of_fractions(rows: list[tuple[float, float, float]]) -> None:
    expected = sum((Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in rows), Fraction(0))
    columns: tuple[tuple[float, ...], ...] = tuple(zip(*rows, strict=True)) or ((), (), ())
    assert sum_of_products(*columns) == expected


def test_one_column_is_summed_as_it_is() -> None:
    assert sum_of_products([2.0**-1074, 1.0, -1.0, 2.0**1000, -(2.0**1000)]) == Fraction(1, 2**1074)
    assert sum_of_products([]) == 0


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises((OverflowError, ValueError)):
        sum_of_products([1.0, value])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        sum_of_products([1.0, 2.0], [1.0])
