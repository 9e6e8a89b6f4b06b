from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.expected import Expected
from aclnn_cts.oracles.rms_norm_grad import expected
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


def gradients(dy: Array, x: Array, rstd: Array, gamma: Array, *, lattices: dict[str, float] | None = None) -> Expected:
    return expected(make_call({"dy": dy, "x": x, "rstd": rstd, "gamma": gamma}, lattices=lattices))


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


@pytest.mark.parametrize("shapes", SHAPES)
def test_agrees_with_fractions_for_any_rstd(shapes: tuple[tuple[int, ...], ...]) -> None:
    generator = np.random.default_rng(2)
    dy, x, rstd, gamma = (integers(generator, array.shape, size=5) for array in draw(generator, shapes))
    result = gradients(dy, x, rstd, gamma)
    rows, width = rstd.size, gamma.size
    dx, dgamma = result["dxOut"], result["dgammaOut"]
    assert (dx.value.shape, dgamma.value.shape) == (x.shape, gamma.shape)
    of_g, of_mean = (term.magnitude.reshape(rows, width) for term in dx.terms)
    for row in range(rows):
        r = Fraction(rstd.reshape(-1)[row])
        xhat = [Fraction(value) * r for value in x.reshape(rows, width)[row]]
        g = [Fraction(a) * Fraction(b) for a, b in zip(dy.reshape(rows, width)[row], gamma.reshape(-1), strict=True)]
        mean = sum(a * b for a, b in zip(g, xhat, strict=True)) / width
        mass = sum(abs(a * b) for a, b in zip(g, xhat, strict=True)) / width
        exact = [float((a - b * mean) * r) for a, b in zip(g, xhat, strict=True)]
        assert np.allclose(dx.value.reshape(rows, width)[row], exact, rtol=1e-14, atol=1e-12)
        assert np.allclose(of_g[row], [float(abs(a * r)) for a in g], rtol=1e-14)
        assert np.allclose(of_mean[row], [float(abs(b * r) * mass) for b in xhat], rtol=1e-14)
    products = (dy * x).reshape(rows, width) * rstd.reshape(-1, 1)
    assert dgamma.value.reshape(-1).tolist() == products.sum(axis=0).tolist()
    assert dgamma.terms[0].magnitude.reshape(-1).tolist() == np.abs(products).sum(axis=0).tolist()
    power_of_two = width & (width - 1) == 0
    assert [term.count for term in dx.terms] == [3, width + (6 if power_of_two else 8)]
    assert dgamma.terms[0].count == rows + 1


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
        assert not bound(result["dgammaOut"]).any() or not rstd.size


def test_a_nan_takes_its_row_of_dx_and_its_column_of_dgamma() -> None:
    dy, x, rstd, gamma = draw(np.random.default_rng(5), SHAPES[0])
    x[1, 2] = NAN
    result = gradients(dy, x, rstd, gamma)
    dx, dgamma = result["dxOut"], result["dgammaOut"]
    assert np.isnan(dx.value).tolist() == [[False] * 5, [True] * 5, [False] * 5]
    assert np.isnan(dgamma.value).tolist() == [False, False, True, False, False]
    for output in (dx, dgamma):
        assert output.open is not None
        assert not output.open.any()
        assert output.partial is not None
        assert np.isfinite(output.partial).all()
        assert all(np.isfinite(term.magnitude).all() for term in output.terms)


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


def test_a_product_that_underflows_before_it_meets_infinity_is_open() -> None:
    result = gradients(np.full((1, 1), 2.0**-80), np.full((1, 1), 2.0**-80), np.array([INF]), np.ones(1))
    assert result["dgammaOut"].open is not None
    assert result["dgammaOut"].open.tolist() == [True]


def test_the_partial_value_covers_every_intermediate() -> None:
    generator = np.random.default_rng(6)
    dy, x, gamma = floats(generator, (4, 9)), floats(generator, (4, 9)), floats(generator, (9,))
    rstd = np.abs(floats(generator, (4,)))
    result = gradients(dy, x, rstd, gamma)
    r = rstd[:, None]
    g, xhat = np.abs(dy * gamma), np.abs(x * r)
    mass = (g * xhat).sum(axis=1, keepdims=True)
    mean = mass / 9
    mass_of_x = (g * np.abs(x)).sum(axis=1, keepdims=True)
    cubes = mass_of_x, r**3, r**3 * np.abs(x), r**3 * mass_of_x
    partial = result["dxOut"].partial
    assert partial is not None
    for intermediate in (g, xhat, g * xhat, mass, mean, mean * r, xhat * mean + g, (xhat * mean + g) * r, *cubes):
        assert (partial * (1 + 1e-14) >= intermediate).all()
    partial = result["dgammaOut"].partial
    assert partial is not None
    assert (partial * (1 + 1e-14) >= np.maximum((np.abs(dy) * xhat).sum(axis=0), xhat)).all()


def test_lattice_is_that_of_the_products_and_dx_needs_a_width_that_divides_exactly() -> None:
    arrays = draw(np.random.default_rng(7), SHAPES[0])
    lattices = {"dy": 0.5, "x": 0.25, "rstd": 2.0}
    result = gradients(*arrays, lattices=lattices)
    assert (result["dxOut"].lattice, result["dgammaOut"].lattice) == (None, 0.25)
    steps = dict.fromkeys(("dy", "x", "gamma", "rstd"), 1.0)
    for width, r, lattice in ((4, 2.0, 0.125), (8, 3.0, 0.0625), (6, 2.0, None), (4, 0.5, None)):
        ones = np.ones((3, width))
        assert gradients(ones, ones, np.full(3, r), ones[0], lattices=steps)["dxOut"].lattice == lattice
    assert gradients(*arrays, lattices={"dy": 0.5, "x": 0.25, "gamma": 1.0})["dgammaOut"].lattice is None


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


@few
@given(seed=st.integers(0, 2**32), order=st.sampled_from(ORDERS), power=st.integers(-3, 3))
def test_exact_data_give_exact_weights_in_any_order(seed: int, order: str, power: int) -> None:
    generator = np.random.default_rng(seed)
    dy, x = integers(generator, (7, 5)) * 2.0**power, integers(generator, (7, 5)) / 4
    rstd = np.abs(integers(generator, (7,)))
    result = gradients(dy, x, rstd, np.ones(5), lattices={"dy": 2.0**power, "x": 0.25, "rstd": 1.0})["dgammaOut"]
    assert_lattice_fits(result)
    terms = dy.astype(np.float32) * (x * rstd[:, None]).astype(np.float32)
    assert sum_float32(terms.T, order, generator).tolist() == result.value.tolist()


@few
@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(ORDERS),
    width=st.sampled_from([1, 2, 4, 8, 32]),
    powers=st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3)),
)
def test_exact_data_give_exact_gradients_in_every_form(
    seed: int, order: str, width: int, powers: tuple[int, int, int]
) -> None:
    generator = np.random.default_rng(seed)
    steps = dict(zip(("dy", "x", "gamma"), (2.0**power for power in powers), strict=True))
    shapes = {"dy": (5, width), "x": (5, width), "gamma": (width,)}
    dy, x, gamma = (integers(generator, shapes[name]) * step for name, step in steps.items())
    rstd = generator.integers(1, 5, 5).astype(np.float64)
    result = gradients(dy, x, rstd, gamma, lattices={**steps, "rstd": 1.0})["dxOut"]
    assert result.lattice is not None
    assert result.partial is not None
    fits = (result.partial / result.lattice <= 2.0**24) | np.zeros(x.shape, np.bool_)
    dy32, x32, gamma32, r = (array.astype(np.float32) for array in (dy, x, gamma, rstd[:, None]))

    def mean(terms: Array) -> Array:
        return np.asarray(sum_float32(terms, order, generator)[:, None] / np.float32(width))

    g, xhat = dy32 * gamma32, x32 * r
    m, cube, half = mean(g * xhat), r * r * r, np.float32(0.5)
    forms = (
        (g - xhat * m) * r,
        g * r - xhat * (m * r),
        g * r - cube * x32 * mean(g * x32),
        g * r - cube * (x32 * mean(g * x32)),
        g * r - half * cube * mean(g * x32) * (x32 + x32),
    )
    for form in forms:
        assert np.array_equal(np.where(fits, form, 0), np.where(fits, result.value, 0))


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
        assert (np.abs(dropped) > bound(result["dxOut"])).mean() > 0.9
    assert (np.abs(dy * xhat) > bound(result["dgammaOut"])).all()
