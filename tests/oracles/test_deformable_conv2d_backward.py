"""One tap that is sampled between four elements: the weights of its gradients, and which slopes are open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import Expected, Float64, OracleInput
from aclnn_cts.oracles import registry

X = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0], [64.0, 128.0, 256.0]])
REACHED = ("gradInput", "gradOffset")


def expected(x: float, y: float, mask: float, values: Float64 = X) -> Expected:
    """Of a gradient of 5 and a weight of 3, of what lies at x and y; the forward pass is said to have sampled 7."""
    one = (1, 1, 1, 1)
    tensors = {
        "input": values.reshape(1, 1, 3, 3),
        "gradOutput": np.full(one, 5.0),
        "offsetOut": np.full(one, 7.0),
        "weight": np.full(one, 3.0),
        "offset": np.array([x, y, mask]).reshape(1, 3, 1, 1),
    }
    outputs = {"gradInput": "input", "gradWeight": "weight", "gradOffset": "offset"}
    arguments: dict[str, Argument] = {name: Tensor(tensors[like].shape, "FLOAT") for name, like in outputs.items()}
    arguments |= {name: Tensor(array.shape, "FLOAT") for name, array in tensors.items()}
    arguments |= {"gradBias": Tensor((1,), "FLOAT"), "kernelSize": (1, 1), "stride": one}
    arguments |= {"padding": (0, -2, 0, -2), "dilation": one, "groups": 1, "deformableGroups": 1}
    return registry.load("deformable_conv2d_backward")(OracleInput(tensors=tensors, arguments=arguments))


def test_a_position_between_elements_reaches_four_of_them() -> None:
    found = values(expected(0.25, 1.5, 2.0))
    weights = np.multiply.outer([0.0, 0.5, 0.5], [0.75, 0.25, 0.0])
    assert np.array_equal(found["gradInput"][0, 0], 30.0 * weights)
    assert found["gradWeight"].item() == 35.0
    assert found["gradBias"].item() == 5.0
    slopes = 0.5 * (16.0 - 8.0 + 128.0 - 64.0), 0.75 * (64.0 - 8.0) + 0.25 * (128.0 - 16.0)
    assert found["gradOffset"].reshape(-1).tolist() == [30.0 * slopes[0], 30.0 * slopes[1], 15.0 * (X * weights).sum()]


def test_zeros_lie_outside() -> None:
    found = values(expected(-0.75, 2.5, 1.0))
    assert found["gradInput"].reshape(-1).tolist() == [0, 0, 0, 0, 0, 0, 15.0 * 0.125, 0, 0]
    assert found["gradOffset"].reshape(-1).tolist() == [15.0 * 0.5 * 64.0, -15.0 * 0.25 * 64.0, 15.0 * 0.125 * 64.0]
    for far in (-1.5, 3.5, 1e30):
        assert not any(array.any() for name, array in values(expected(0.5, far, 1.0)).items() if name in REACHED)


@pytest.mark.parametrize(
    ("x", "y", "open_ones"),
    [
        (0.5, 1.0, [False, True, False]),
        (2.0, 0.5, [True, False, False]),
        (1.0 - 2.0**-30, 0.5, [True, False, False]),
        (-(2.0**-130), 3.0, [True, True, False]),
        (-2.0, 4.0, [False, False, False]),
    ],
)
def test_slopes_are_open_where_rounding_finds_an_integer(x: float, y: float, open_ones: list[bool]) -> None:
    assert unknown(expected(x, y, 1.0), "gradOffset").tolist() == open_ones


def test_what_rounding_may_reach_counts_where_it_is_infinite() -> None:
    """The column behind the next integer has a weight of 0: times infinity it may give nan."""
    infinite = np.where(X == 16.0, np.inf, X)
    assert unknown(expected(0.5 - 2.0**-30, 0.5, 1.0, infinite), "gradOffset").all()
    assert unknown(expected(-(2.0**-30), 0.5, 1.0, infinite), "gradOffset").all()
    assert not unknown(expected(-0.5, 0.5, 1.0, infinite), "gradOffset").any()


def values(found: Expected) -> Mapping[str, Float64]:
    return {name: np.asarray(output.value) for name, output in found.items()}


def unknown(found: Expected, name: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    output = found[name]
    shape = np.shape(output.value)
    return np.broadcast_to(False if output.open is None else output.open, shape).reshape(-1)
