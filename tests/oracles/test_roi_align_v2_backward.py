"""Gradients of regions add up in maps of one element; of larger maps those of images without a gradient are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry

GRADIENTS = np.array([[[[1.0, 2.0]], [[0, 0]]], [[[4.0, 8.0]], [[16, 32]]]])
"""Of two boxes in two channels, one by two places."""


def expected(
    boxes: list[list[float]], *, images: int = 3, size: int = 1, ratio: int = 2, scale: float = 0.5
) -> ExpectedOutput:
    tensors = {"gradOutput": GRADIENTS, "boxes": np.array(boxes)}
    shape = (images, 2, size, size)
    arguments = {name: Tensor(value.shape, "FLOAT") for name, value in tensors.items()}
    call = OracleInput(
        tensors=tensors,
        arguments={
            **arguments, "inputShape": shape, "pooledHeight": 1, "pooledWidth": 2, "spatialScale": scale,
            "samplingRatio": ratio, "aligned": False, "gradInput": Tensor(shape, "FLOAT"),
        },
    )  # fmt: skip
    return registry.load("roi_align_v2_backward")(call)["gradInput"]


def planes(array: NDArray[np.float64] | NDArray[np.bool_] | float, images: int = 3, size: int = 1) -> list[list[float]]:
    """By image and channel the first element; all of a plane are alike."""
    all_of_them = np.broadcast_to(array, (images, 2, size, size))
    assert (all_of_them == all_of_them[:, :, :1, :1]).all()
    found: list[list[float]] = all_of_them[:, :, 0, 0].tolist()
    return found


def test_boxes_of_an_image_add_up() -> None:
    found = expected([[1, 0, 0, 2, 2], [1, 0, 0, 0, 0]])
    assert planes(found.value) == [[0, 0], [15, 48], [0, 0]]
    assert found.open is None or not np.any(found.open)


def test_the_number_of_an_image_is_rounded_down() -> None:
    found = expected([[1.75, 0, 0, 2, 2], [0.25, 0, 0, 2, 2]])
    assert planes(found.value) == [[12, 48], [3, 0], [0, 0]]


@pytest.mark.parametrize(
    ("box", "ratio", "size"),
    [
        ([1, 1, 0, 2, 2], 2, 1),
        ([1, 0, 0, 2, 4], 2, 1),
        ([1, 0, 0, 2, 2], 0, 1),
        ([1, 0, 0, 2, 2], 17, 1),
        ([1, 0, 0, 2, 2], 2, 2),
    ],
    ids=["behind the corner", "beyond the map", "without a number of points", "with many points", "of a larger map"],
)
def test_planes_with_a_gradient_are_open(box: list[float], ratio: int, size: int) -> None:
    """The second channel of the first box, whose gradients are 0, is known all the same."""
    found = expected([box, [2, *box[1:]]], ratio=ratio, size=size)
    assert found.open is not None
    assert planes(found.open, size=size) == [[False, False], [True, False], [True, True]]
    assert planes(found.value, size=size)[0] == [0, 0]
    assert planes(found.value, size=size)[1][1] == 0
