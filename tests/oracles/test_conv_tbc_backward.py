from __future__ import annotations

from collections.abc import Mapping

import msgspec
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
    rounding,
    sum_float32,
    wild,
)

INF, NAN = np.inf, np.nan

# (T, L, pad): without padding, with, one-sided windows, pad > L - 1, T = 1.
GEOMETRIES = [(5, 1, 0), (6, 3, 0), (5, 3, 1), (4, 4, 2), (2, 2, 4), (1, 1, 3), (4, 3, 6), (1, 5, 2), (3, 7, 3)]


ORACLE = registry.load("conv_tbc_backward")


def shapes(time: int, length: int, pad: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return (time + 2 * pad + 1 - length, 2, 3), (time, 2, 4), (length, 4, 3)


def gradients(grad: Array, x: Array, weight: Array, pad: int, *, radii: Mapping[str, Array] | None = None) -> Expected:
    inputs = {"self": grad, "input": x, "weight": weight, "bias": np.full(grad.shape[-1], NAN)}
    shapes = {"gradInput": x.shape, "gradWeight": weight.shape, "gradBias": (grad.shape[-1],)}
    call = make_call(inputs, {"pad": pad, "cubeMathType": 0}, **shapes)
    return ORACLE(msgspec.structs.replace(call, radii=radii or {}))


def forward(x: Array, weight: Array, bias: Array, pad: int) -> Array:
    padded = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    steps = padded.shape[0] + 1 - weight.shape[0]
    rows = [sum(padded[t + k] @ weight[k] for k in range(weight.shape[0])) + bias for t in range(steps)]
    return np.array(rows)


def plain(
    grad: Array, x: Array, weight: Array, pad: int, name: str, *, padding: bool = False
) -> dict[tuple[int, ...], list[float]]:
    """The terms of each element, one after the other; with `padding`, also those in which one factor is padding."""
    if padding and name == "gradInput":
        # Every tap of every time meets a step: a gradient, or 0 beyond its ends.
        steps = weight.shape[0] - 1
        grad, pad = np.pad(grad, ((steps, steps), (0, 0), (0, 0))), pad + steps
    elif padding:
        x, pad = np.pad(x, ((pad, pad), (0, 0), (0, 0))), 0
    terms: dict[tuple[int, ...], list[float]] = {}
    for (k, i, o), factor in np.ndenumerate(weight):
        for u, b in np.ndindex(*grad.shape[:2]):
            t = u + k - pad
            if not 0 <= t < x.shape[0]:
                continue
            with np.errstate(all="ignore"):
                if name == "gradInput":
                    terms.setdefault((t, b, i), []).append(grad[u, b, o] * factor)
                else:
                    terms.setdefault((k, i, o), []).append(x[t, b, i] * grad[u, b, o])
    return terms


@pytest.mark.parametrize(("time", "length", "pad"), GEOMETRIES)
def test_is_the_derivative_of_the_forward_operator(time: int, length: int, pad: int) -> None:
    generator = np.random.default_rng(1)
    of_grad, of_x, of_weight = shapes(time, length, pad)
    grad, x, weight = (generator.normal(size=shape) for shape in (of_grad, of_x, of_weight))
    bias = generator.normal(size=3)
    result = gradients(grad, x, weight, pad)

    def loss(x: Array, weight: Array, bias: Array) -> float:
        return float((forward(x, weight, bias, pad) * grad).sum())

    for name, at, function in (
        ("gradInput", x, lambda at: loss(at, weight, bias)),
        ("gradWeight", weight, lambda at: loss(x, at, bias)),
        ("gradBias", bias, lambda at: loss(x, weight, at)),
    ):
        assert np.allclose(result[name].value, differences(function, at), rtol=1e-8, atol=1e-8), name


def test_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    generator = np.random.default_rng(3)
    for geometry in GEOMETRIES:
        grad, x, weight = (generator.normal(size=shape) for shape in shapes(*geometry))
        arrays = [torch.tensor(array) for array in (grad, x, weight, np.zeros(3))]
        kernel = torch.ops.aten.conv_tbc_backward(*arrays, geometry[2])
        for output, tensor in zip(gradients(grad, x, weight, geometry[2]).values(), kernel, strict=True):
            assert np.allclose(output.value, tensor.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("time", "batch", "channels", "out_channels", "length", "pad"),
    [
        (0, 2, 4, 3, 3, 2),
        (5, 2, 0, 3, 3, 0),
        (4, 2, 4, 3, 0, 1),
        (4, 0, 4, 3, 2, 0),
        (4, 2, 4, 0, 2, 0),
        (2, 1, 2, 3, 3, 0),
    ],
)
def test_empty_tensors(time: int, batch: int, channels: int, out_channels: int, length: int, pad: int) -> None:
    out_time = time + 2 * pad + 1 - length
    grad = np.ones((out_time, batch, out_channels))
    result = gradients(grad, np.ones((time, batch, channels)), np.ones((length, channels, out_channels)), pad)
    assert result["gradInput"].value.shape == (time, batch, channels)
    assert result["gradWeight"].value.shape == (length, channels, out_channels)
    assert not result["gradInput"].value.any()
    assert not result["gradWeight"].value.any()
    assert (result["gradBias"].value == out_time * batch).all()


def test_a_special_value_under_padding_alone_reaches_the_bias_alone() -> None:
    grad = np.ones((9, 1, 1))
    grad[0] = INF
    result = gradients(grad, np.ones((2, 1, 1)), np.ones((2, 1, 1)), 4)
    assert result["gradInput"].value.tolist() == [[[2.0]], [[2.0]]]
    assert result["gradWeight"].value.tolist() == [[[2.0]], [[2.0]]]
    assert result["gradBias"].value.tolist() == [INF]


def test_infinity_times_an_operand_that_a_mode_flushes_is_open() -> None:
    weight = np.array([1.0, 2.0**-20]).reshape(1, 2, 1)
    radii = {"weight": np.where(weight < 1.0, weight, 0.0)}
    result = gradients(np.full((1, 1, 1), INF), np.ones((1, 1, 2)), weight, 0, radii=radii)
    assert result["gradInput"].open is not None
    assert result["gradInput"].open.reshape(-1).tolist() == [False, True]


def round_bits(array: Array, bits: int) -> Array:
    """To nearest even with so many bits of significand."""
    fraction, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits))


@few
@given(
    seed=st.integers(0, 2**32),
    geometry=st.sampled_from(GEOMETRIES),
    order=st.sampled_from(ORDERS),
)
def test_float32_in_any_order_stays_within_the_bound(seed: int, geometry: tuple[int, int, int], order: str) -> None:
    generator = np.random.default_rng(seed)
    grad, x, weight = (floats(generator, shape) for shape in shapes(*geometry))
    grad32, x32, weight32 = (array.astype(np.float32) for array in (grad, x, weight))
    result = gradients(grad, x, weight, geometry[2])
    for name in ("gradInput", "gradWeight"):
        got = np.zeros(result[name].value.shape, np.float32)
        for index, terms in plain(grad32, x32, weight32, geometry[2], name).items():
            got[index] = sum_float32(np.array(terms, np.float32), order, generator)
        assert_within(result[name], got)
    terms_of_bias = grad.astype(np.float32).reshape(-1, 3).T
    assert_within(result["gradBias"], sum_float32(terms_of_bias, order, generator))


@few
@given(
    seed=st.integers(0, 2**32),
    geometry=st.sampled_from(GEOMETRIES),
    share=st.sampled_from([0.0, 0.05]),
    order=st.sampled_from(ORDERS),
    flush=st.booleans(),
)
def test_wild_data_in_float32_conforms(
    seed: int, geometry: tuple[int, int, int], share: float, order: str, *, flush: bool
) -> None:
    fl = rounding(flush=flush)
    generator = np.random.default_rng(seed)
    grad, x, weight = (wild(generator, shape, share=share) for shape in shapes(*geometry))
    result = gradients(grad, x, weight, geometry[2])
    with np.errstate(all="ignore"):
        grad32, x32, weight32 = (fl(array.astype(np.float32)) for array in (grad, x, weight))
        for name in ("gradInput", "gradWeight"):
            got = np.zeros(result[name].value.shape, np.float32)
            for index, terms in plain(grad32, x32, weight32, geometry[2], name).items():
                got[index] = sum_float32(fl(np.array(terms, np.float32)), order, generator, flush=flush)
            assert_conforms(result[name], got, flush=flush)
        of_bias = sum_float32(grad32.reshape(-1, 3).T, order, generator, flush=flush)
        assert_conforms(result["gradBias"], of_bias, flush=flush)


def test_a_dropped_term_and_coarser_operands_exceed_the_bound() -> None:
    generator = np.random.default_rng(5)
    grad, x, weight = (generator.normal(size=shape) for shape in shapes(5, 3, 1))
    result = gradients(grad, x, weight, 1)
    for name in ("gradInput", "gradWeight"):
        output = result[name]
        limit = np.asarray(output.error)
        for index, terms in plain(grad, x, weight, 1, name).items():
            assert abs(terms[0]) > limit[index]
        coarse = gradients(round_bits(grad, 11), round_bits(x, 11), round_bits(weight, 11), 1)[name].value
        assert (np.abs(coarse - output.value) > limit).any()
    assert (np.abs(grad.reshape(-1, 3)) > result["gradBias"].error).all()
