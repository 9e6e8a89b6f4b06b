"""The gradient of maximum pooling against torch's own, from its indices, with overlapping windows and dilations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.oracles import registry

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((3,), (), (1,), (1,)),
        ((2, 3), (1,), (0, 1), (2, 1)),
        ((4, 2), (3, 1), (2, 1), (1, 3)),
        ((2,), (5, 3), (1, 0), (1, 1)),
    ],
)
def test_it_is_what_torch_computes(
    kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    for is_ceil, shape in itertools.product((False, True), ((3, 7, 9), (2, 3, 7, 9))):
        x = torch.from_numpy(random.standard_normal(shape)).requires_grad_()
        arrays = (kernel, stride or kernel, padding, dilation)
        pooled, indices = torch.nn.functional.max_pool2d(x, *arrays, ceil_mode=is_ceil, return_indices=True)
        grad = random.standard_normal(pooled.shape)
        (theirs,) = torch.autograd.grad(pooled, x, torch.from_numpy(grad))
        arguments: dict[str, Argument] = {
            "gradOutput": Tensor(grad.shape, "DOUBLE"), "self": Tensor(shape, "DOUBLE"),
            "indices": Tensor(grad.shape, "INT64"), "kernelSize": kernel, "stride": stride, "padding": padding,
            "dilation": dilation, "ceilMode": is_ceil, "gradInput": Tensor(shape, "DOUBLE"),
        }  # fmt: skip
        tensors = {"gradOutput": grad, "self": x.detach().numpy(), "indices": indices.numpy()}
        call = OracleInput(tensors=tensors, arguments=arguments)
        found = registry.load("max_pool2d_with_indices_backward").values(call)
        np.testing.assert_allclose(found["gradInput"], theirs.numpy(), rtol=1e-13, atol=1e-15)
