"""Gradients of regions go to the places of their batch, and what the document does not decide is open."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry


def expected(argmax: list[int], held: NDArray[np.float64] | None = None) -> ExpectedOutput:
    """Of gradients 1, 2 and 4 of three regions, in batches 1, 0 and 1 of two, with 1 x 3 elements each."""
    tensors = {
        "gradOutput": np.array([1.0, 2.0, 4.0]).reshape(3, 1, 1, 1),
        "gradInputRef": np.zeros((2, 1, 1, 3)) if held is None else held,
        "rois": np.array([[1.0, 0, 1, 0, 1], [0, 0, 1, 0, 1], [1, 0, 1, 0, 1]]),
        "argmax": np.array(argmax, np.int64).reshape(3, 1, 1, 1),
    }
    arguments = {name: Tensor(value.shape, "INT32" if name == "argmax" else "FLOAT") for name, value in tensors.items()}
    call = OracleInput(
        tensors=tensors,
        arguments={**arguments, "pooledH": 1, "pooledW": 1, "spatialScale": 1.0},
        updated=frozenset(["gradInputRef"]),
    )
    return registry.load("roi_pooling_grad_with_arg_max")(call)["gradInputRef"]


def open_elements(output: ExpectedOutput) -> list[bool]:
    known = output.open
    return [False] * 6 if known is None else np.broadcast_to(known, (2, 1, 1, 3)).reshape(-1).tolist()


def test_regions_of_a_batch_add_up() -> None:
    found = expected([2, 1, 2])
    assert np.asarray(found.value).reshape(-1).tolist() == [0, 2, 0, 0, 0, 5]
    assert not any(open_elements(found))


def test_an_element_that_the_index_0_names_is_open() -> None:
    found = expected([0, 1, 2])
    assert np.asarray(found.value).reshape(-1)[[0, 1, 2, 4, 5]].tolist() == [0, 2, 0, 0, 4]
    assert open_elements(found) == [False, False, False, True, False, False]


def test_an_element_that_held_something_is_open() -> None:
    held = np.zeros((2, 1, 1, 3))
    held[0, 0, 0, 1] = 3.0
    assert open_elements(expected([2, 1, 2], held)) == [False, True, False, False, False, False]
