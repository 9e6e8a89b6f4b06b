"""The gradient of bilinear upsampling against torch's own: both alignments and formats, growing and shrinking."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from aclnn_cts.core.case import Argument, Tensor
from aclnn_cts.core.expected import OracleInput
from aclnn_cts.oracles import registry

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")

STEM = "upsample_bilinear2d_backward_v2"
LAST = (0, 2, 3, 1)
"""Of NCHW the axes in the order of NHWC."""


def question(
    grad: np.ndarray, size: tuple[int, ...], scales: tuple[float, float], form: str, *, align: bool
) -> OracleInput:
    """A call with a gradient and sizes in the order of NCHW, its tensors in a format."""
    laid_out = grad.transpose(LAST) if form == "NHWC" else grad
    shape = tuple(size[axis] for axis in LAST) if form == "NHWC" else size
    arguments: dict[str, Argument] = {
        "gradOut": Tensor(laid_out.shape, "DOUBLE", format=form), "outputSize": grad.shape[2:], "inputSize": size,
        "alignCorners": align, "scalesH": scales[0], "scalesW": scales[1], "out": Tensor(shape, "DOUBLE", format=form),
    }  # fmt: skip
    return OracleInput(tensors={"gradOut": laid_out}, arguments=arguments)


@pytest.mark.parametrize(
    ("size", "output", "scales"),
    [
        ((5, 7), (9, 4), (9 / 5, 4 / 7)),
        ((5, 7), (9, 4), (0.0, -1.0)),
        ((3, 4), (10, 2), (3.5, 0.7)),
        ((1, 6), (4, 1), (4.0, 1 / 6)),
        ((2, 2), (2, 2), (1.0, 1.0)),
    ],
)
def test_it_is_what_torch_computes(size: tuple[int, int], output: tuple[int, int], scales: tuple[float, float]) -> None:
    grad = np.random.default_rng(0).standard_normal((2, 3, *output))
    for align, form in itertools.product((False, True), ("NCHW", "NHWC")):
        call = question(grad, (2, 3, *size), scales, form, align=align)
        found = registry.load(STEM).values(call)["out"]
        theirs = torch.ops.aten.upsample_bilinear2d_backward(
            torch.from_numpy(grad), output, (2, 3, *size), align, *scales
        ).numpy()
        np.testing.assert_allclose(found, theirs.transpose(LAST) if form == "NHWC" else theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("size", "output"), [((1, 2048), (4096, 1)), ((2048, 1), (1, 4096))])
def test_no_plane_between_is_larger_than_both_ends(size: tuple[int, int], output: tuple[int, int]) -> None:
    """One axis shrinks to a point while the other grows from one: the plane of both would have 2^23 elements."""
    call = question(
        np.ones((1, 1, *output)), (1, 1, *size), (output[0] / size[0], output[1] / size[1]), "NCHW", align=False
    )
    tracemalloc.start()
    found = registry.load(STEM).values(call)["out"]
    registry.load(STEM)(call)["out"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(found.sum(), 4096.0)
    assert peak < 8 * 2**23


def test_values_are_open_where_the_step_divides_by_zero() -> None:
    for align, output in ((True, (1, 3)), (True, (2, 3)), (False, (1, 3))):
        call = question(np.ones((1, 1, *output)), (1, 1, 2, 2), (output[0] / 2, 1.5), "NCHW", align=align)
        expected = registry.load(STEM)(call)["out"]
        assert (expected.open is not None and bool(np.all(expected.open))) == (align and 1 in output)
