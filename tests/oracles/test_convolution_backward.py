"""The gradients of convolutions against plain loops, and what lies in the padding where gradients are infinite."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.case import BoolArray, Tensor
from aclnn_cts.core.expected import Expected, OracleInput
from aclnn_cts.oracles import registry

CALLS: dict[str, dict[str, Any]] = {
    "line": {"input": (2, 3, 7), "weight": (4, 3, 3), "stride": (2,), "padding": (1,), "dilation": (2,)},
    "plane": {"input": (1, 2, 5, 4), "weight": (4, 1, 3, 2), "stride": (2, 1), "dilation": (1, 2), "groups": 2},
    "four paddings": {"input": (1, 2, 4, 5), "weight": (3, 2, 3, 3), "padding": (2, 0, 1, 3)},
    "volume": {"input": (1, 2, 3, 4, 2), "weight": (2, 2, 2, 3, 1), "padding": (1, 0, 1), "stride": (1, 3, 2)},
    "transposed": {"input": (1, 4, 3, 2), "weight": (4, 2, 3, 2), "stride": (3, 2), "padding": (1, 0), "groups": 2,
                   "transposed": True, "outputPadding": (2, 1)},
    "transposed volume": {"input": (1, 2, 2, 1, 2), "weight": (2, 3, 1, 2, 2), "dilation": (1, 2, 1),
                          "transposed": True},
}  # fmt: skip


def arguments(call: dict[str, Any]) -> dict[str, Any]:
    """All of them, with the shape of gradOutput."""
    rank = len(call["weight"]) - 2
    ones, zeros = (1,) * rank, (0,) * rank
    whole: dict[str, Any] = {
        "stride": ones,
        "padding": zeros,
        "dilation": ones,
        "outputPadding": zeros,
        "groups": 1,
        "transposed": False,
    }
    whole |= call
    pads = whole["padding"]
    pairs = [tuple(pads[2 * axis : 2 * axis + 2]) if len(pads) > rank else (pads[axis],) * 2 for axis in range(rank)]
    sizes = []
    for axis, (size, kernel) in enumerate(zip(whole["input"][2:], whole["weight"][2:], strict=True)):
        stride, span = whole["stride"][axis], (kernel - 1) * whole["dilation"][axis] + 1
        wide = (size - 1) * stride - sum(pairs[axis]) + span + whole["outputPadding"][axis]
        sizes.append(wide if whole["transposed"] else (size + sum(pairs[axis]) - span) // stride + 1)
    channels = whole["groups"] * whole["weight"][1] if whole["transposed"] else whole["weight"][0]
    return {**whole, "gradOutput": (whole["input"][0], channels, *sizes), "before": [pair[0] for pair in pairs]}


def judged(whole: dict[str, Any], tensors: dict[str, Any]) -> Expected:
    shapes = {"gradInput": whole["input"], "gradWeight": whole["weight"], "gradBias": (whole["gradOutput"][1],)}
    given: dict[str, Any] = {name: Tensor(shape, "FLOAT") for name, shape in shapes.items()}
    given |= {name: Tensor(array.shape, "FLOAT") for name, array in tensors.items()}
    names = ("stride", "padding", "dilation", "outputPadding", "groups", "transposed")
    given |= {name: whole[name] for name in names}
    given |= {"biasSizes": shapes["gradBias"], "outputMask": BoolArray((True, True, True)), "cubeMathType": 0}
    return registry.load("convolution_backward")(OracleInput(tensors=tensors, arguments=given))


@pytest.mark.parametrize("name", CALLS)
def test_the_gradients_are_those_of_plain_loops(name: str) -> None:
    whole = arguments(CALLS[name])
    random = np.random.default_rng(0)
    tensors = {key: random.integers(-4, 5, whole[key]).astype(float) for key in ("gradOutput", "input", "weight")}
    g, x, w = tensors.values()
    of_input, of_weight = np.zeros(x.shape), np.zeros(w.shape)
    wide, narrow = (g, x) if whole["transposed"] else (x, g)
    group = narrow.shape[1] // whole["groups"]
    for o, c, *k in itertools.product(*map(range, w.shape)):
        plane = o // group * w.shape[1] + c
        for n, *u in itertools.product(range(x.shape[0]), *map(range, narrow.shape[2:])):
            places = zip(u, whole["stride"], whole["before"], k, whole["dilation"], wide.shape[2:], strict=True)
            v = [a * s - p + b * d if 0 <= a * s - p + b * d < size else None for a, s, p, b, d, size in places]
            if None in v:
                continue
            tap, there, here = (o, c, *k), (n, plane, *v), (n, o, *u)
            of_weight[tap] += wide[there] * narrow[here]
            if whole["transposed"]:
                of_input[here] += g[there] * w[tap]
            else:
                of_input[there] += g[here] * w[tap]
    found = judged(whole, tensors)
    assert np.array_equal(found["gradInput"].value, of_input)
    assert np.array_equal(found["gradWeight"].value, of_weight)
    assert np.array_equal(found["gradBias"].value, g.sum((0, *range(2, g.ndim))))


def test_zeros_of_the_padding_may_meet_an_infinite_gradient() -> None:
    whole = arguments({"input": (1, 1, 2), "weight": (1, 1, 2), "padding": (1,)})
    tensors = {
        "gradOutput": np.array([[[np.inf, 1.0, 1.0]]]),
        "input": np.ones((1, 1, 2)),
        "weight": np.ones((1, 1, 2)),
    }
    of_weight = judged(whole, tensors)["gradWeight"]
    assert of_weight.open is not None
    assert of_weight.open.reshape(-1).tolist() == [True, False]
    assert of_weight.value.reshape(-1)[1] == np.inf
