from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn_cts.core.case import Argument
from aclnn_cts.core.expected import ExpectedOutput
from aclnn_cts.oracles import registry
from aclnn_cts.oracles._nearest import edges_exact, edges_forward, edges_range
from tests.oracles.support import (
    ORDERS,
    Array,
    assert_conforms,
    assert_within,
    differences,
    few,
    floats,
    integers,
    make_call,
    many,
    sum_float32,
    wild,
)

INF, NAN = np.inf, np.nan
F = np.float32

# (gl, ol) and what each element of out receives, by hand.
RANGES = [
    ((5, 7), [(0, 1), (1, 1), (1, 2), (2, 3), (3, 4), (4, 4), (4, 5)]),
    ((7, 4), [(0, 2), (2, 3), (3, 5), (5, 7)]),
    ((8, 2), [(0, 4), (4, 8)]),
    ((3, 3), [(0, 1), (1, 2), (2, 3)]),
    ((1, 4), [(0, 0), (0, 0), (0, 1), (1, 1)]),
    ((6, 1), [(0, 6)]),
]


ORACLE = registry.load("upsample_nearest_exact1d_backward")


def out(grad: Array, width: int, *, scale: float = 0.0) -> ExpectedOutput:
    shape = (*grad.shape[:-1], width)
    attributes: dict[str, Argument] = {
        "outputSizeOptional": (grad.shape[-1],),
        "inputSize": shape,
        "scalesOptional": scale,
    }
    return ORACLE(make_call({"gradOutput": grad}, attributes, out=shape))["out"]


def sources(length: int, width: int) -> list[int]:
    """The exact rational map, element by element."""
    return [math.floor((j + Fraction(1, 2)) * width / length) for j in range(length)]


def unsettled(output: ExpectedOutput) -> list[int]:
    return [] if output.open is None else np.flatnonzero(output.open.reshape(-1)).tolist()


@pytest.mark.parametrize(("length", "width"), [(5, 7), (7, 4), (11, 3)])
def test_is_the_derivative_of_the_forward_operator(length: int, width: int) -> None:
    generator = np.random.default_rng(1)
    x, grad = generator.normal(size=(2, 3, width)), generator.normal(size=(2, 3, length))
    gradient = differences(lambda at: float((at[..., sources(length, width)] * grad).sum()), x)
    assert np.allclose(out(grad, width).value, gradient, atol=1e-8)


@pytest.mark.parametrize(("length", "width"), [(13, 5), (5, 13), (57, 14), (41, 2), (31, 31)])
def test_agrees_with_plain_loops(length: int, width: int) -> None:
    grad = integers(np.random.default_rng(2), (2, 3, length))
    value = np.zeros((2, 3, width))
    for j, i in enumerate(sources(length, width)):
        value[..., i] += grad[..., j]
    assert out(grad, width).value.tolist() == value.tolist()


def test_maps_agree_with_plain_arithmetic() -> None:
    for length, width in itertools.chain(itertools.product(range(1, 24), repeat=2), [(57, 14), (41, 2), (119, 94)]):
        by_element = sources(length, width)
        assert edges_exact(length, width).tolist() == [sum(i < e for i in by_element) for e in range(width + 1)]
        scale = F(length) / F(width)
        by_range = [math.ceil(F(F(i) * scale) - F(0.5)) for i in range(width + 1)]
        assert edges_range(scale, length, width).tolist() == [min(max(e, 0), length) for e in by_range]
        scale = F(width) / F(length)
        forward = [min(math.floor(F(F(j + 0.5) * scale)), width - 1) for j in range(length)]
        assert edges_forward(scale, length, width).tolist() == [sum(i < e for i in forward) for e in range(width + 1)]


def test_every_settled_element_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    generator = np.random.default_rng(3)
    disputed = 0
    for length, width in [(5, 7), (41, 2), (57, 14), (14, 57), (119, 94), (96, 31), (31, 96), (64, 16)]:
        grad = integers(generator, (1, 2, length))
        kernel = torch.ops.aten._upsample_nearest_exact1d_backward(
            torch.tensor(grad, dtype=torch.float32), [length], [1, 2, width], None
        )
        result = out(grad, width)
        differs = result.value != kernel.numpy()
        if result.open is not None:
            disputed += int(differs.sum())
            differs &= ~result.open
        assert not differs.any(), (length, width)
    assert disputed, "no pair of sizes put the maps against each other"


@pytest.mark.parametrize(("length", "width"), [(57, 14), (41, 2)])
def test_elements_on_which_the_maps_differ_are_open(length: int, width: int) -> None:
    result = out(np.ones((1, 1, length)), width)
    every = [
        edges_exact(length, width),
        edges_range(F(length) / F(width), length, width),
        edges_forward(F(width) / F(length), length, width),
    ]
    ranges = [list(itertools.pairwise(edges.tolist())) for edges in every]
    differ = [i for i in range(width) if len({ranges[m][i] for m in range(3)}) > 1]
    assert differ
    assert unsettled(result) == differ


def test_a_scale_that_says_what_the_sizes_say_opens_nothing() -> None:
    for length, width in [(8, 2), (7, 4), (5, 7), (10, 3), (3, 3)]:
        grad = np.ones((1, 1, length))
        assert unsettled(out(grad, width, scale=length / width)) == unsettled(out(grad, width))


@pytest.mark.parametrize(
    ("length", "width", "scale", "open_elements"),
    [
        (10, 3, 3.0, [1, 2]),  # [0, 3) [3, 6) [6, 9) against the sizes' [0, 3) [3, 7) [7, 10)
        (7, 3, 2.0, [1, 2]),  # [0, 2) [2, 4) [4, 6) against [0, 2) [2, 5) [5, 7)
        (8, 2, 1.0, [0, 1]),  # [0, 1) [1, 2) against [0, 4) [4, 8)
        (2, 4, 8.0, [0, 1, 3]),  # [0, 2) and nothing against nothing, [0, 1), nothing, [1, 2)
        (4, 4, math.inf, [0, 1, 2, 3]),
        (4, 4, 1e300, [0, 1, 2, 3]),
        (4, 4, 1e-300, [0, 1, 2, 3]),
        (4, 4, 5e-324, [0, 1, 2, 3]),
    ],
)
def test_a_scale_that_disagrees_with_the_sizes_opens_what_it_moves(
    length: int, width: int, scale: float, open_elements: list[int]
) -> None:
    result = out(np.ones((1, 1, length)), width, scale=scale)
    assert unsettled(result) == open_elements
    assert result.value.tolist() == out(np.ones((1, 1, length)), width).value.tolist()


@given(length=st.integers(1, 2**24), width=st.integers(1, 2**24))
def test_the_exact_factor_is_the_ratio_of_the_lengths_in_float_too(length: int, width: int) -> None:
    """Rounding a quotient of 24 bits by way of 53 gives what rounding it once gives (Figueroa, 1995: 2 * 24 + 2)."""
    assert F(length / width) == F(length) / F(width)


@few
@given(data=st.data(), length=st.integers(1, 300), width=st.integers(1, 300))
def test_whoever_does_not_read_the_scale_conforms(data: st.DataObject, length: int, width: int) -> None:
    """What the maps of the sizes alone give differs from the value on open elements only, whatever the scale is."""
    scales = [length / width, (2 * length + 1) / (2 * width), width / length, 1.0, 2.5]
    result = out(np.ones((1, 1, length)), width, scale=data.draw(st.sampled_from(scales)))
    settled = np.ones(width, np.bool_) if result.open is None else ~result.open[0, 0]
    for edges in (
        edges_range(F(length) / F(width), length, width),
        edges_forward(F(width) / F(length), length, width),
    ):
        assert (np.diff(edges)[settled] == result.value[0, 0][settled]).all()


@pytest.mark.parametrize("scale", [0.0, NAN, -1.0])
def test_a_scale_that_is_none_leaves_the_sizes(scale: float) -> None:
    assert out(np.ones((1, 1, 10)), 3, scale=scale).open is None


@pytest.mark.parametrize("shape", [(0, 2, 5), (2, 0, 5), (1, 1, 0)])
@pytest.mark.parametrize("width", [0, 3])
def test_empty_tensors(shape: tuple[int, ...], width: int) -> None:
    result = out(np.zeros(shape), width)
    assert result.value.shape == (*shape[:-1], width)
    assert not result.value.any()


def test_special_values_go_to_their_element_alone() -> None:
    grad = np.array([[[INF, 1, NAN, 1, INF, -INF, 2, 3]]])
    result = out(grad, 4)
    assert np.array_equal(result.value, [[[INF, NAN, NAN, 5]]], equal_nan=True)
    assert not np.any(result.open)


@few
@given(seed=st.integers(0, 2**32), length=st.integers(1, 60), width=st.integers(1, 20), order=st.sampled_from(ORDERS))
def test_float32_in_any_order_stays_within_the_bound(seed: int, length: int, width: int, order: str) -> None:
    generator = np.random.default_rng(seed)
    grad = floats(generator, (1, 2, length))
    edges = edges_exact(length, width)
    terms = grad.astype(np.float32)
    parts = [sum_float32(terms[..., low:high], order, generator) for low, high in itertools.pairwise(edges)]
    assert_within(out(grad, width), np.stack(parts, axis=-1))


@many
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.05]), order=st.sampled_from(ORDERS))
def test_wild_data_in_float32_conforms(seed: int, share: float, order: str) -> None:
    generator = np.random.default_rng(seed)
    grad = wild(generator, (2, 2, 23), share=share)
    with np.errstate(all="ignore"):
        parts = [
            sum_float32(grad.astype(np.float32)[..., low:high], order, generator)
            for low, high in itertools.pairwise(edges_exact(23, 6))
        ]
    assert_conforms(out(grad, 6), np.stack(parts, axis=-1))


def test_a_dropped_term_exceeds_the_bound() -> None:
    grad = np.random.default_rng(4).normal(size=(1, 1, 40))
    limit = np.asarray(out(grad, 7).error).reshape(-1)
    for j, i in enumerate(sources(40, 7)):
        assert abs(grad[0, 0, j]) > limit[i]
