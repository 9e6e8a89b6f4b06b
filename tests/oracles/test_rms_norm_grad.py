from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.expected import Expected
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
EPSILON = 2.0**-20

# (shape of x, shape of rstd, shape of gamma): the documented shapes, one axis, and those that allow a lost or extra 1.
SHAPES = [
    ((3, 5), (3,), (5,)),
    ((2, 3, 4), (2,), (3, 4)),
    ((2, 3, 4), (2, 3), (4,)),
    ((2, 1, 16), (2,), (16,)),
    ((2, 3, 4), (2, 3, 1), (4,)),
    ((6,), (1,), (6,)),
]


ORACLE = registry.load("rms_norm_grad")


def gradients(dy: Array, x: Array, rstd: Array, gamma: Array) -> Expected:
    inputs = {"dy": dy, "x": x, "rstd": rstd, "gamma": gamma}
    return ORACLE(make_call(inputs, dxOut=np.shape(x), dgammaOut=np.shape(gamma)))


def draw(generator: np.random.Generator, shapes: tuple[tuple[int, ...], ...]) -> tuple[Array, Array, Array, Array]:
    shape, of_rstd, of_gamma = shapes
    return (
        generator.normal(size=shape),
        generator.normal(size=shape),
        generator.uniform(0.5, 2, size=of_rstd),
        generator.normal(size=of_gamma),
    )


def rstd_of(x: Array, gamma: Array) -> Array:
    rows = x.reshape(-1, gamma.size)
    return np.asarray(1 / np.sqrt((rows * rows).mean(axis=1) + EPSILON))


def forward(x: Array, gamma: Array) -> Array:
    rows = x.reshape(-1, gamma.size)
    return np.asarray((rows * rstd_of(x, gamma)[:, None] * gamma.reshape(-1)).reshape(x.shape))


@pytest.mark.parametrize("shapes", SHAPES)
def test_is_the_derivative_where_rstd_belongs_to_x(shapes: tuple[tuple[int, ...], ...]) -> None:
    dy, x, rstd, gamma = draw(np.random.default_rng(1), shapes)
    rstd = rstd_of(x, gamma).reshape(rstd.shape)
    result = gradients(dy, x, rstd, gamma)
    of_x = differences(lambda at: float((forward(at, gamma) * dy).sum()), x)
    of_gamma = differences(lambda at: float((forward(x, at) * dy).sum()), gamma)
    assert np.allclose(result["dxOut"].value, of_x, rtol=1e-4, atol=1e-4)
    assert np.allclose(result["dgammaOut"].value, of_gamma, atol=1e-8)


def test_agrees_with_torch_autograd_where_rstd_belongs_to_x() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dy, x, _, gamma = draw(np.random.default_rng(3), SHAPES[1])
    leaf, weight = torch.tensor(x, requires_grad=True), torch.tensor(gamma, requires_grad=True)
    torch.nn.functional.rms_norm(leaf, gamma.shape, weight, EPSILON).backward(torch.tensor(dy))
    result = gradients(dy, x, rstd_of(x, gamma), gamma)
    assert np.allclose(result["dxOut"].value, leaf.grad.numpy(), rtol=1e-12, atol=1e-12)
    assert np.allclose(result["dgammaOut"].value, weight.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shapes", [((0, 5), (0,), (5,)), ((3, 0), (3,), (0,)), ((0, 0), (0,), (0,)), ((2, 0, 4), (2,), (0, 4))]
)
def test_empty_tensors(shapes: tuple[tuple[int, ...], ...]) -> None:
    dy, x, rstd, gamma = draw(np.random.default_rng(4), shapes)
    for r in (rstd, np.full(rstd.shape, INF)):
        result = gradients(dy, x, r, gamma)
        assert result["dxOut"].value.shape == x.shape
        assert result["dgammaOut"].value.shape == gamma.shape
        assert not result["dgammaOut"].value.any()


def test_infinite_gradients() -> None:
    one, x, rstd = np.ones(2), np.array([[1.0, 2.0]]), np.ones(1)
    result = gradients(np.array([[INF, 1.0]]), x, rstd, one)
    # m = inf, so that dx[1] = 1 - inf; dx[0] = inf - inf.
    assert np.array_equal(result["dxOut"].value, [[NAN, -INF]], equal_nan=True)
    assert result["dgammaOut"].value.tolist() == [INF, 2.0]
    assert result["dxOut"].open is not None
    assert not result["dxOut"].open.any()


def test_what_depends_on_the_form_is_open() -> None:
    # r = inf: (g - xhat m) r = (1 - inf) inf, while g r - xhat m r = inf - inf.
    result = gradients(np.ones((1, 1)), np.ones((1, 1)), np.array([INF]), np.ones(1))
    assert result["dxOut"].open is not None
    assert result["dxOut"].open.tolist() == [[True]]
    assert result["dgammaOut"].value.tolist() == [INF]


@few
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 12),
    width=st.integers(1, 33),
    order=st.sampled_from(ORDERS),
    reciprocal=st.booleans(),
)
def test_float32_in_any_order_and_form_stays_within_the_bound(
    seed: int, rows: int, width: int, order: str, *, reciprocal: bool
) -> None:
    generator = np.random.default_rng(seed)
    dy, x, gamma = (floats(generator, shape) for shape in ((rows, width), (rows, width), (width,)))
    rstd = np.abs(floats(generator, (rows,)))
    result = gradients(dy, x, rstd, gamma)
    dy32, x32, gamma32, r = (array.astype(np.float32) for array in (dy, x, gamma, rstd[:, None]))
    d = np.float32(width)

    def mean(terms: Array) -> Array:
        total = sum_float32(terms, order, generator)[:, None]
        return np.asarray(total * (np.float32(1) / d) if reciprocal else total / d)

    g, xhat = dy32 * gamma32, x32 * r
    m = mean(g * xhat)
    assert_within(result["dxOut"], (g - xhat * m) * r)
    assert_within(result["dxOut"], g * r - xhat * (m * r))
    assert_within(result["dxOut"], g * r - (r * r * r) * x32 * mean(g * x32))
    assert_within(result["dgammaOut"], sum_float32((dy32 * xhat).T, order, generator))


def cubed(
    fl: Callable[[Array], Array],
    g: Array,
    x: Array,
    r: Array,
    order: str,
    generator: np.random.Generator,
    *,
    flush: bool,
) -> tuple[Array, ...]:
    """r^3 x mean(g x) in the orders of the published golden programs and of autograd."""
    d = np.float32(x.shape[1])
    total = sum_float32(fl(g * x), order, generator, flush=flush)[:, None]
    cube = fl(fl(r * r) * r)
    mean = fl(total / d)
    half = fl(fl(total * fl(cube * np.float32(0.5))) / d)
    return fl(fl(cube * x) * mean), fl(fl(cube * mean) * x), fl(np.float32(2) * fl(half * x))


@many
@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.02]), order=st.sampled_from(ORDERS), flush=st.booleans()
)
def test_wild_data_in_float32_conforms(seed: int, share: float, order: str, *, flush: bool) -> None:
    fl = rounding(flush=flush)
    generator = np.random.default_rng(seed)
    dy, x, gamma = (wild(generator, shape, share=share) for shape in ((4, 6), (4, 6), (6,)))
    rstd = np.abs(wild(generator, (4,), share=share))
    result = gradients(dy, x, rstd, gamma)
    with np.errstate(all="ignore"):
        dy32, x32, gamma32, r = (fl(array.astype(np.float32)) for array in (dy, x, gamma, rstd[:, None]))
        g, xhat = fl(dy32 * gamma32), fl(x32 * r)
        m = fl(sum_float32(fl(g * xhat), order, generator, flush=flush)[:, None] / np.float32(6))
        forms = (
            fl(fl(g - fl(xhat * m)) * r),
            fl(fl(g * r) - fl(fl(xhat * m) * r)),
            fl(fl(g * r) - fl(xhat * fl(m * r))),
            *(fl(fl(g * r) - term) for term in cubed(fl, g, x32, r, order, generator, flush=flush)),
        )
        weight = sum_float32(fl(dy32 * xhat).T, order, generator, flush=flush)
    for got in forms:
        assert_conforms(result["dxOut"], got, flush=flush)
    assert_conforms(result["dgammaOut"], weight, flush=flush)


def test_a_dropped_term_exceeds_the_bound() -> None:
    dy, x, rstd, gamma = draw(np.random.default_rng(8), ((3, 31), (3,), (31,)))
    result = gradients(dy, x, rstd, gamma)
    r = rstd[:, None]
    xhat = x * r
    for j in range(31):
        dropped = xhat * r * (dy * gamma * xhat)[:, j : j + 1] / 31
        assert (np.abs(dropped) > result["dxOut"].error).mean() > 0.9
    assert (np.abs(dy * xhat) > result["dgammaOut"].error).all()
