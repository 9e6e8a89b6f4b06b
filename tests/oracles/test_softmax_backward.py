from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.oracles import registry
from tests.oracles.support import (
    ORDERS,
    Array,
    assert_conforms,
    assert_within,
    differences,
    few,
    floats,
    make_call,
    many,
    rounding,
    sum_float32,
    wild,
)

INF, NAN = np.inf, np.nan


ORACLE = registry.load("softmax_backward")


def out(y: Array, g: Array, dim: int = -1) -> ExpectedOutput:
    return ORACLE(make_call({"output": y, "gradOutput": g}, {"dim": dim}, out=np.shape(g)))["out"]


def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return np.asarray(e / e.sum(axis=dim, keepdims=True))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_is_the_derivative_of_softmax(dim: int) -> None:
    generator = np.random.default_rng(1)
    x, g = generator.normal(size=(3, 4, 2)), generator.normal(size=(3, 4, 2))
    gradient = differences(lambda at: float((softmax(at, dim) * g).sum()), x)
    assert np.allclose(out(softmax(x, dim), g, dim).value, gradient, atol=1e-6)


def test_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    generator = np.random.default_rng(3)
    y, g = generator.normal(size=(3, 4, 5)), generator.normal(size=(3, 4, 5))
    for dim in (0, -2, 2):
        kernel = torch.ops.aten._softmax_backward_data(torch.tensor(g), torch.tensor(y), dim, torch.float64)
        assert np.allclose(out(y, g, dim).value, kernel.numpy(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dim", [0, -1])
def test_rank_zero_is_a_slice_of_one_element(dim: int) -> None:
    result = out(np.array(0.5), np.array(3.0), dim)
    assert result.value.shape == ()
    assert result.value == 0.5 * 3 - 0.5 * 0.5 * 3
    assert np.asarray(result.error).shape == ()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("dim", [0, -1])
def test_empty_tensors(shape: tuple[int, ...], dim: int) -> None:
    assert out(np.zeros(shape), np.zeros(shape), dim).value.shape == shape


def test_an_infinite_gradient_makes_the_others_infinite() -> None:
    # s = inf, so that y (g - s) = -inf where g is finite, and nan where g is inf.
    result = out(np.array([0.5, 0.25, 0.25]), np.array([1.0, INF, 2.0]))
    assert result.value[[0, 2]].tolist() == [-INF, -INF]
    assert np.isnan(result.value[1])
    assert result.open is not None
    assert not result.open.any()


def test_what_depends_on_the_form_is_open() -> None:
    # y g - y s = inf - inf, y (g - s) = inf * (1 - inf).
    result = out(np.array([INF, 0.5]), np.array([1.0, 2.0]))
    assert result.open is not None
    assert result.open.tolist() == [True, False]
    assert result.value[1] == -INF


def test_infinity_times_a_subnormal_number_is_open() -> None:
    result = out(np.array([2.0**-140, 0.5]), np.array([1.0, INF]))
    assert result.open is not None
    assert result.open.tolist() == [True, False]


@few
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 5), length=st.integers(1, 40), order=st.sampled_from(ORDERS))
def test_float32_in_any_order_and_form_stays_within_the_bound(seed: int, rows: int, length: int, order: str) -> None:
    generator = np.random.default_rng(seed)
    y, g = floats(generator, (rows, length)), floats(generator, (rows, length))
    y32, g32 = y.astype(np.float32), g.astype(np.float32)
    s = sum_float32(y32 * g32, order, generator)[:, None]
    result = out(y, g)
    assert_within(result, y32 * g32 - y32 * s)
    assert_within(result, y32 * (g32 - s))


@many
@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.05]), order=st.sampled_from(ORDERS), flush=st.booleans()
)
def test_wild_data_in_float32_conforms(seed: int, share: float, order: str, *, flush: bool) -> None:
    fl = rounding(flush=flush)
    generator = np.random.default_rng(seed)
    y, g = wild(generator, (4, 7), share=share), wild(generator, (4, 7), share=share)
    result = out(y, g)
    with np.errstate(all="ignore"):
        y32, g32 = fl(y.astype(np.float32)), fl(g.astype(np.float32))
        product = fl(y32 * g32)
        s = sum_float32(product, order, generator, flush=flush)[:, None]
        forms = (fl(product - fl(y32 * s)), fl(y32 * fl(g32 - s)))
    for got in forms:
        assert_conforms(result, got, flush=flush)


def test_a_dropped_or_doubled_term_exceeds_the_bound() -> None:
    generator = np.random.default_rng(6)
    y, g = softmax(generator.normal(size=(1, 31)), -1), generator.normal(size=(1, 31))
    result = out(y, g)
    for sign in (-1, 1):
        wrong = result.value - sign * y * y[:, 7:8] * g[:, 7:8]
        assert (np.abs(wrong - result.value) > np.asarray(result.error)).all()
