"""The gradient of maximum pooling in three dimensions against torch's own, and what becomes of inf and nan."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.oracles import registry

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [((3,), (), (1,)), ((2, 3, 4), (1,), (0, 1, 2)), ((4, 2, 1), (3, 1, 2), (2, 1, 0)), ((2,), (5, 3, 1), (1, 0, 1))],
)
def test_it_is_what_torch_computes(kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    for is_ceil, shape in itertools.product((False, True), ((3, 5, 7, 4), (2, 3, 5, 7, 4))):
        x = torch.from_numpy(random.standard_normal(shape)).requires_grad_()
        pooled, indices = torch.nn.functional.max_pool3d(
            x, kernel, stride or kernel, padding, ceil_mode=is_ceil, return_indices=True
        )
        grad = random.standard_normal(pooled.shape)
        (theirs,) = torch.autograd.grad(pooled, x, torch.from_numpy(grad))
        call = called(grad, x.detach().numpy(), indices.numpy(), kernel, stride, padding, is_ceil=is_ceil)
        found = registry.load("max_pool3d_with_argmax_backward").values(call)
        np.testing.assert_allclose(found["gradInput"], theirs.numpy(), rtol=1e-13, atol=1e-15)


def test_inf_and_nan_reach_the_elements_that_they_are_for() -> None:
    grad = np.array([np.inf, -np.inf, np.inf, np.nan, 2.0]).reshape(1, 5, 1, 1)
    places = np.array([0, 1, 1, 3, 3]).reshape(grad.shape)
    call = called(grad, np.zeros((1, 5, 1, 1)), places, (1,), (), (0,), is_ceil=False)
    found = registry.load("max_pool3d_with_argmax_backward")(call)["gradInput"]
    np.testing.assert_array_equal(np.asarray(found.value).reshape(-1), [np.inf, np.nan, 0.0, np.nan, 0.0])
    assert found.open is None or not found.open.any()


def called(
    grad: np.typing.NDArray[np.float64],
    x: np.typing.NDArray[np.float64],
    indices: np.typing.NDArray[np.int64],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    *,
    is_ceil: bool,
) -> OracleInput:
    arguments: dict[str, Argument] = {
        "gradOutput": Tensor(grad.shape, "DOUBLE"), "self": Tensor(x.shape, "DOUBLE"),
        "indices": Tensor(grad.shape, "INT32"), "kernelSize": kernel, "stride": stride, "padding": padding,
        "dilation": (1,), "ceilMode": is_ceil, "gradInput": Tensor(x.shape, "DOUBLE"),
    }  # fmt: skip
    return OracleInput(tensors={"gradOutput": grad, "self": x, "indices": indices}, arguments=arguments)
