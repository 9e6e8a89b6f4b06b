"""The gradient of average pooling against torch's own, for every shape of its arrays and both roundings of sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.oracles import registry
from aclnn_cts.speclang.expression import FUNCTIONS

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")

WINDOWS = FUNCTIONS["windows"][1]


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [
        ((3,), (), (1,)),
        ((2, 3), (2,), (0, 1)),
        ((5, 4), (3, 2), (2, 2)),
        ((4, 4), (4, 1), (0,)),
        ((2,), (5, 3), (1, 0)),
    ],
)
def test_it_is_what_torch_computes(kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    for is_ceil, counts_padding, override in itertools.product((False, True), (False, True), (0, -7)):
        shape = (2, 3, 7, 9)
        sizes = [
            WINDOWS(shape[axis], kernel[place], (stride or kernel)[place], padding[place], is_ceil)
            for axis, place in ((2, 0), (3, -1))
        ]
        grad = random.standard_normal((2, 3, *sizes))
        arguments: dict[str, Argument] = {
            "gradOutput": Tensor(grad.shape, "DOUBLE"), "self": Tensor(shape, "DOUBLE"), "kernelSize": kernel,
            "stride": stride, "padding": padding, "ceilMode": is_ceil, "countIncludePad": counts_padding,
            "divisorOverride": override, "cubeMathType": 0, "gradInput": Tensor(shape, "DOUBLE"),
        }  # fmt: skip
        call = OracleInput(tensors={"gradOutput": grad, "self": np.zeros(shape)}, arguments=arguments)
        found = registry.load("avg_pool2d_backward").values(call)["gradInput"]
        theirs = torch.ops.aten.avg_pool2d_backward(
            torch.from_numpy(grad), torch.zeros(shape, dtype=torch.float64), kernel, stride, padding, is_ceil,
            counts_padding, override or None,
        )  # fmt: skip
        np.testing.assert_allclose(found, theirs.numpy(), rtol=1e-13, atol=1e-15)
