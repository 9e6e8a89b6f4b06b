from __future__ import annotations

import numpy as np

from aclnn_cts.oracles._special_values import finite_part, flushing_product, holds_subnormal, settle

INF, NAN = np.inf, np.nan


def test_forms_that_agree_are_required() -> None:
    x = np.array([1.0, INF, -INF, NAN])
    value, unsettled = settle(lambda a: a * 2, lambda a: a + a, operands=(x,))
    assert np.array_equal(value, [2.0, INF, -INF, NAN], equal_nan=True)
    assert not unsettled.any()


def test_forms_that_differ_are_open() -> None:
    x = np.array([1.0, INF, 3.0])
    y = np.array([1.0, 1.0, 0.0])
    _, unsettled = settle(lambda a, b: a * b - a, lambda a, b: a * (b - 1), operands=(x, y))
    assert unsettled.tolist() == [False, False, False]
    _, unsettled = settle(lambda a, b: a - b, lambda a, b: b - a, operands=(x, y))
    assert unsettled.tolist() == [False, True, False]


def test_an_operand_that_may_be_flushed_is_open_against_infinity_alone() -> None:
    tiny = 2.0**-130
    _, unsettled = settle(lambda a, b: a * b, operands=(np.array([INF, 2.0]), np.array([tiny, tiny])))
    assert unsettled.tolist() == [True, False]


def test_products_are_flushed_in_float32_alone() -> None:
    x = np.array([2.0**-70, 2.0**-60])
    assert flushing_product(x, x).tolist() == [2.0**-140, 2.0**-120]
    assert flushing_product(x.astype(np.float32), x.astype(np.float32)).tolist() == [0.0, 2.0**-120]


def test_subnormal_numbers_are_found_among_zeros_and_special_values() -> None:
    ordinary = np.array([0.0, 2.0**-126, 1.0, INF, NAN])
    assert not holds_subnormal(ordinary, np.zeros(3), np.zeros((0, 2)))
    assert holds_subnormal(ordinary, np.array([[0.0, np.nextafter(2.0**-126, 0)]]))
    assert holds_subnormal(np.array([2.0**-149, 1.0])[::-1])


def test_finite_part() -> None:
    assert finite_part(np.array([1.0, INF, -INF, NAN, -0.5])).tolist() == [1.0, 0.0, 0.0, 0.0, -0.5]
