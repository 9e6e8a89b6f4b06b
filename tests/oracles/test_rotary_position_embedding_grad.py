"""Each mode as its formula is written, and what is open without x."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry

Numbers = NDArray[np.float64]


def numbers(*shape: int, seed: int) -> Numbers:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


DY, X = numbers(2, 3, 4, 8, seed=0), numbers(2, 3, 4, 8, seed=1)
COS, SIN = numbers(1, 3, 1, 8, seed=2), numbers(1, 3, 1, 8, seed=3)


def expected(mode: int, x: Numbers | None, sums: tuple[int, ...] = COS.shape) -> dict[str, ExpectedOutput]:
    tensors = {"dy": DY, "cos": COS, "sin": SIN} | ({} if x is None else {"xOptional": x})
    outputs = {"dxOut": DY.shape, "dcosOut": sums, "dsinOut": sums}
    shapes = {name: value.shape for name, value in tensors.items()} | outputs
    arguments = {name: Tensor(shape, "FLOAT") for name, shape in shapes.items()}
    call = OracleInput(tensors=tensors, arguments={"xOptional": None, "mode": mode, **arguments})
    return dict(registry.load("rotary_position_embedding_grad")(call))


def interleaved(first: Numbers, second: Numbers) -> Numbers:
    return np.stack((first, second), -1).reshape(*first.shape[:-1], -1)


def rotated(mode: int) -> tuple[Numbers, Numbers, Numbers]:
    """dx, and what dy is multiplied by for dcos and dsin."""
    if mode == 2:
        dy, cos, sin, x = (np.split(array, 4, -1) for array in (DY, COS, SIN, X))
        parts = [cos[k] * dy[k] + (sin[k + 1] * dy[k + 1] if k % 2 == 0 else -sin[k - 1] * dy[k - 1]) for k in range(4)]
        return np.concatenate(parts, -1), X, np.concatenate((-x[1], x[0], -x[3], x[2]), -1)
    if mode == 1:
        (dy1, dy2), (cos1, cos2), (sin1, sin2) = ((array[..., ::2], array[..., 1::2]) for array in (DY, COS, SIN))
    else:
        (dy1, dy2), (cos1, cos2), (sin1, sin2) = (np.split(array, 2, -1) for array in (DY, COS, SIN))
    first, second = cos1 * dy1 + sin2 * dy2, cos2 * dy2 - sin1 * dy1
    x1, x2 = np.split(X, 2, -1) if mode == 0 else (X[..., ::2], X[..., 1::2])
    dx = np.concatenate((first, second), -1) if mode == 0 else interleaved(first, second)
    if mode == 1:
        return dx, X, interleaved(-x2, x1)
    return dx, X if mode == 0 else np.concatenate((x1, x2), -1), np.concatenate((-x2, x1), -1)


@pytest.mark.parametrize("mode", range(4))
def test_every_mode_is_as_it_is_written(mode: int) -> None:
    found = expected(mode, X)
    dx, straight, turned = rotated(mode)
    wanted = {"dxOut": dx} | {
        name: (DY * factor).sum((0, 2), keepdims=True) for name, factor in (("dcosOut", straight), ("dsinOut", turned))
    }
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(np.broadcast_to(np.asarray(found[name].value), value.shape), value)
        assert found[name].open is None or not np.any(found[name].open)


@pytest.mark.parametrize("mode", range(4))
def test_without_x_dx_is_the_same_and_the_sums_are_open(mode: int) -> None:
    found = expected(mode, None)
    np.testing.assert_array_equal(np.asarray(found["dxOut"].value), rotated(mode)[0])
    for name in ("dcosOut", "dsinOut"):
        left_open = found[name].open
        assert left_open is not None
        assert np.broadcast_to(left_open, COS.shape).all()
    empty = expected(mode, None, (1, 1, 1, 0))
    assert {np.asarray(empty[name].value).size for name in ("dcosOut", "dsinOut")} == {0}
