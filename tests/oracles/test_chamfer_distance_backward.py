"""The gradient of the chamfer distance against torch's autograd, and what several batches leave open."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import ExpectedOutput, OracleInput
from aclnn_cts.oracles import registry


def expected(tensors: dict[str, NDArray[np.float64 | np.int64]]) -> dict[str, ExpectedOutput]:
    arguments = {
        name: Tensor(value.shape, "INT32" if name.startswith("idx") else "DOUBLE") for name, value in tensors.items()
    }
    outputs = {f"gradXyz{number}": Tensor(tensors["xyz1"].shape, "DOUBLE") for number in (1, 2)}
    call = OracleInput(tensors=tensors, arguments={**arguments, **outputs})
    return dict(registry.load("chamfer_distance_backward")(call))


def drawn(batches: int, points: int) -> dict[str, NDArray[np.float64 | np.int64]]:
    random = np.random.default_rng(0)
    shape = (batches, points)
    found: dict[str, NDArray[np.float64 | np.int64]] = {
        name: random.standard_normal((*shape, 2)) for name in ("xyz1", "xyz2")
    }
    found |= {name: random.standard_normal(shape) for name in ("gradDist1", "gradDist2")}
    return found | {name: random.integers(0, points, shape) for name in ("idx1", "idx2")}


def test_it_is_the_gradient_of_the_distances_to_the_nearest_points() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    tensors = drawn(1, 9)
    leaves = [torch.from_numpy(tensors[name]).requires_grad_() for name in ("xyz1", "xyz2")]
    apart = ((leaves[0][:, :, None] - leaves[1][:, None]) ** 2).sum(-1)
    tensors |= {"idx1": apart.min(2).indices.numpy(), "idx2": apart.min(1).indices.numpy()}
    first, second = (torch.from_numpy(tensors[name]) for name in ("gradDist1", "gradDist2"))
    theirs = torch.autograd.grad((apart.min(2).values * first).sum() + (apart.min(1).values * second).sum(), leaves)
    found = expected(tensors)
    for name, gradient in zip(("gradXyz1", "gradXyz2"), theirs, strict=True):
        np.testing.assert_allclose(found[name].value, gradient.numpy(), rtol=1e-13, atol=1e-14)
        assert found[name].open is None or not np.any(found[name].open)


def test_several_batches_are_open() -> None:
    for output in expected(drawn(2, 3)).values():
        assert output.open is not None
        assert np.broadcast_to(output.open, (2, 3, 2)).all()


def test_an_infinite_gradient_reaches_both_points() -> None:
    tensors = drawn(1, 3) | {"gradDist2": np.zeros((1, 3)), "idx1": np.array([[2, 0, 0]])}
    tensors |= {"xyz1": np.zeros((1, 3, 2)), "xyz2": np.ones((1, 3, 2)), "gradDist1": np.array([[np.inf, 1.0, 1.0]])}
    found = expected(tensors)
    assert np.asarray(found["gradXyz1"].value)[0, :, 0].tolist() == [-np.inf, -2.0, -2.0]
    assert np.asarray(found["gradXyz2"].value)[0, :, 0].tolist() == [4.0, 0.0, np.inf]
    assert not any(output.open is not None and np.any(output.open) for output in found.values())
