from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.oracles.softmax_backward import expected
from tests.oracles.support import (
    ORDERS,
    Array,
    assert_conforms,
    assert_lattice_fits,
    assert_within,
    bound,
    differences,
    few,
    floats,
    integers,
    make_call,
    many,
    rounding,
    sum_float32,
    wild,
)

INF, NAN = np.inf, np.nan


def out(y: Array, g: Array, dim: int = -1, *, lattices: dict[str, float] | None = None) -> ExpectedOutput:
    return expected(make_call({"output": y, "gradOutput": g}, {"dim": dim}, lattices=lattices))["out"]


def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return np.asarray(e / e.sum(axis=dim, keepdims=True))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_is_the_derivative_of_softmax(dim: int) -> None:
    generator = np.random.default_rng(1)
    x, g = generator.normal(size=(3, 4, 2)), generator.normal(size=(3, 4, 2))
    gradient = differences(lambda at: float((softmax(at, dim) * g).sum()), x)
    assert np.allclose(out(softmax(x, dim), g, dim).value, gradient, atol=1e-6)


def test_agrees_with_fractions_along_the_middle_axis() -> None:
    generator = np.random.default_rng(2)
    y, g = integers(generator, (2, 5, 3)) / 8, integers(generator, (2, 5, 3)) / 4
    result = out(y, g, 1)
    for a, i, b in np.ndindex(2, 5, 3):
        terms = [Fraction(y[a, j, b]) * Fraction(g[a, j, b]) for j in range(5)]
        exact = terms[i] - Fraction(y[a, i, b]) * sum(terms)
        magnitude = sum(abs(term) for term in terms)
        assert result.value[a, i, b] == exact
        assert result.terms[0].magnitude[a, i, b] == abs(terms[i])
        assert result.terms[1].magnitude[a, i, b] == abs(Fraction(y[a, i, b])) * magnitude
    assert (result.terms[0].count, result.terms[1].count) == (2, 5 + 2)


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
    assert bound(result).shape == ()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("dim", [0, -1])
def test_empty_tensors(shape: tuple[int, ...], dim: int) -> None:
    assert out(np.zeros(shape), np.zeros(shape), dim).value.shape == shape


def test_special_values_stay_in_their_slice() -> None:
    y, g = np.full((3, 4), 0.25), np.ones((3, 4))
    g[1, 2] = NAN
    result = out(y, g)
    assert np.isnan(result.value[1]).all()
    assert np.isfinite(result.value[[0, 2]]).all()
    assert result.open is None or not result.open.any()
    assert result.partial is not None
    assert np.isfinite(result.partial).all()
    assert all(np.isfinite(term.magnitude).all() for term in result.terms)


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


def test_the_partial_value_covers_every_intermediate() -> None:
    generator = np.random.default_rng(4)
    y, g = floats(generator, (4, 9)), floats(generator, (4, 9))
    product = np.abs(y * g)
    mass = product.sum(axis=-1, keepdims=True)
    partial = out(y, g).partial
    assert partial is not None
    for intermediate in (product, mass, np.abs(g) + mass, np.abs(y) * mass + product):
        assert (partial >= intermediate * (1 - 1e-15)).all()


@pytest.mark.parametrize(("a", "b", "lattice"), [(1.0, 1.0, 1.0), (0.25, 0.5, 2.0**-5), (4.0, 2.0, 8.0)])
def test_lattice_holds_every_term(a: float, b: float, lattice: float) -> None:
    generator = np.random.default_rng(5)
    y, g = integers(generator, (6,)) * a, integers(generator, (6,)) * b
    result = out(y, g, lattices={"output": a, "gradOutput": b})
    assert result.lattice == lattice
    for term in (y * g, y * (y * g).sum(), y * (g - (y * g).sum())):
        assert (term / lattice == np.rint(term / lattice)).all()
    assert out(y, g, lattices={"output": a}).lattice is None


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


@few
@given(seed=st.integers(0, 2**32), order=st.sampled_from(ORDERS), a=st.integers(-3, 2), b=st.integers(-3, 2))
def test_exact_data_give_exact_results_in_any_order_and_form(seed: int, order: str, a: int, b: int) -> None:
    generator = np.random.default_rng(seed)
    y, g = integers(generator, (3, 9)) * 2.0**a, integers(generator, (3, 9)) * 2.0**b
    result = out(y, g, lattices={"output": 2.0**a, "gradOutput": 2.0**b})
    assert_lattice_fits(result)
    y32, g32 = y.astype(np.float32), g.astype(np.float32)
    s = sum_float32(y32 * g32, order, generator)[:, None]
    for got in (y32 * g32 - y32 * s, y32 * (g32 - s)):
        assert got.tolist() == result.value.tolist()


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
        assert (np.abs(wrong - result.value) > bound(result)).all()
