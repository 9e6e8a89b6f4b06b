"""Points in the middle of maps of one element are known, and what has a factor 0; nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry

Numbers = NDArray[Any]


def expected(**changed: Numbers) -> Mapping[str, ExpectedOutput]:
    """Of one batch, two queries, one head, two levels of one element and one point; the third key is in no level."""
    tensors = {
        "value": np.arange(1.0, 25.0).reshape(1, 3, 1, 8),
        "spatialShape": np.array([[1, 1], [1, 1]], np.int64),
        "levelStartIndex": np.array([0, 1], np.int64),
        "location": np.full((1, 2, 1, 2, 1, 2), 0.5),
        "attnWeight": np.array([2.0, 3, 4, 5]).reshape(1, 2, 1, 2, 1),
        "gradOutput": np.stack([np.ones(8), np.arange(8.0)])[None],
        **changed,
    }
    arguments = {name: Tensor(array.shape, dtype_of(array)) for name, array in tensors.items()}
    outputs = {"gradValue": "value", "gradLocation": "location", "gradAttnWeight": "attnWeight"}
    of_outputs = {name: arguments[like] for name, like in outputs.items()}
    call = OracleInput(tensors=tensors, arguments={**arguments, **of_outputs})
    return registry.load("multi_scale_deformable_attention_grad")(call)


def dtype_of(array: Numbers) -> str:
    return "INT64" if array.dtype == np.int64 else "FLOAT"


def opened(found: Mapping[str, ExpectedOutput], name: str) -> list[bool]:
    known, shape = found[name].open, np.shape(found[name].value)
    elements: list[bool] = np.broadcast_to(np.zeros(()) > 0 if known is None else known, shape).reshape(-1).tolist()
    return elements


def test_a_level_of_one_element_gets_the_weighted_gradients_of_its_points() -> None:
    found = expected()
    value = np.asarray(found["gradValue"].value)[0, :, 0]
    assert value.tolist() == [(2 + 4 * np.arange(8.0)).tolist(), (3 + 5 * np.arange(8.0)).tolist(), [0] * 8]
    weights = np.asarray(found["gradAttnWeight"].value).reshape(-1)
    places = np.arange(8.0)
    first, second = places + 1, places + 9
    assert weights.tolist() == [first.sum(), second.sum(), (first * places).sum(), (second * places).sum()]
    assert not any(opened(found, "gradValue"))
    assert not any(opened(found, "gradAttnWeight"))
    assert all(opened(found, "gradLocation"))


def test_a_point_beside_the_middle_leaves_its_level_open() -> None:
    """The first point of the first query, in level 0."""
    location = np.full((1, 2, 1, 2, 1, 2), 0.5)
    location[0, 0, 0, 0, 0] = [0.5, 0.25]
    found = expected(location=location)
    assert opened(found, "gradValue") == [True] * 8 + [False] * 16
    assert opened(found, "gradAttnWeight") == [True, False, False, False]


def test_a_larger_map_leaves_its_keys_open() -> None:
    found = expected(spatialShape=np.array([[1, 1], [1, 2]], np.int64))
    assert opened(found, "gradValue") == [False] * 8 + [True] * 16
    assert opened(found, "gradAttnWeight") == [False, True, False, True]


def test_what_has_a_factor_0_is_0() -> None:
    """The weights of the first query are 0, and the gradients of the second; no point lies in the middle."""
    found = expected(
        location=np.full((1, 2, 1, 2, 1, 2), 0.3),
        attnWeight=np.array([0.0, 0, 4, 5]).reshape(1, 2, 1, 2, 1),
        gradOutput=np.stack([np.ones(8), np.zeros(8)])[None],
    )
    assert not any(opened(found, "gradValue"))
    assert not np.asarray(found["gradValue"].value).any()
    assert not any(opened(found, "gradLocation"))
    assert opened(found, "gradAttnWeight") == [True, True, False, False]


def test_a_factor_0_says_nothing_of_products_that_overflow() -> None:
    large = np.full((1, 2, 8), 3e38)
    found = expected(attnWeight=np.zeros((1, 2, 1, 2, 1)), gradOutput=large, location=np.full((1, 2, 1, 2, 1, 2), 0.3))
    assert all(opened(found, "gradLocation"))
    found = expected(attnWeight=np.zeros((1, 2, 1, 2, 1)), gradOutput=np.full((1, 2, 8), np.inf))
    assert all(opened(found, "gradLocation"))
    assert all(opened(found, "gradValue"))
