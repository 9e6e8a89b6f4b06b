"""Torch's kernels behind the adapter: values by hand, and layouts on both sides."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aclnn_cts.adapters.protocol import Session
from aclnn_cts.core.case import Tensor
from aclnn_cts.core.outcome import Ended
from tests.adapters.torch_calls import (
    EXAMPLES,
    LAYOUTS,
    Make,
    assert_nothing_else_touched,
    embedding,
    laid_out,
    prepared,
    rms_norm,
    run,
    softmax,
    tensor,
    upsample,
    values_of,
)

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16", "DOUBLE"])
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("way", ["direct", "copy"])
def test_kernels_by_hand(sessions: Mapping[str, Session], way: str, make: Make, dtype: str) -> None:
    it = make(dtype)
    if dtype == "DOUBLE" and make is rms_norm:
        it = make(dtype, "DOUBLE", dgammaOut=Tensor((2,), "DOUBLE"))
    outcome, buffers = run(sessions[way], it)
    assert (outcome.ended, outcome.message, outcome.status) == (Ended.RETURNED, "", None)
    assert outcome.seconds > 0
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", [embedding, upsample, softmax, rms_norm], ids=lambda make: make.__name__)
def test_strided_inputs(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    it = make()
    changes = {name: laid_out(item, how) for name, item in it.tensors() if item.data and item.data.values}
    outcome, buffers = run(sessions["direct"], make(**changes))
    assert (outcome.ended, outcome.message) == (Ended.RETURNED, "")
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_strided_outputs_that_the_adapter_fills(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    it = make()
    changes = {name: laid_out(item, how) for name, item in it.tensors() if item.data is None}
    outcome, buffers = run(sessions["copy"], make(**changes))
    assert (outcome.ended, outcome.message) == (Ended.RETURNED, "")
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", [embedding, upsample], ids=lambda make: make.__name__)
def test_strided_outputs_that_the_kernel_fills(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    out = make().arguments["out"]
    assert isinstance(out, Tensor)
    outcome, buffers = run(sessions["direct"], make(out=laid_out(out, how)))
    assert (outcome.ended, outcome.message) == (Ended.RETURNED, "")
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


def test_a_layout_reaches_the_kernel_as_it_is() -> None:
    from aclnn_cts.adapters.torch_tensors import alias  # noqa: PLC0415 - needs torch

    it = softmax("BF16", gradOutput=laid_out(tensor([[1, 2], [3, 5]], "BF16"), "gaps"))
    view = prepared(it).inputs["gradOutput"].view
    seen = alias(view)
    assert seen.data_ptr() == view.__array_interface__["data"][0]
    assert seen.dtype == torch.bfloat16
    assert seen.stride() == dict(it.tensors())["gradOutput"].strides
    view.flags.writeable = False
    assert alias(view).data_ptr() == seen.data_ptr()


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 5])
def test_storages_are_staged_for_other_devices(how: str, offset: int) -> None:
    from aclnn_cts.adapters.torch_tensors import stage  # noqa: PLC0415 - needs torch

    it = softmax(gradOutput=laid_out(tensor([[1, 2], [3, 5]]), how), out=laid_out(Tensor((2, 2), "FLOAT"), how))
    buffers = prepared(it)
    there, _ = stage(buffers.inputs["gradOutput"].view, offset=offset, device=torch.device("cpu"))
    assert there.tolist() == [[1, 2], [3, 5]]
    assert there.storage_offset() == offset
    assert there.stride() == (dict(it.tensors())["gradOutput"].strides or (2, 1))
    out, staged = stage(buffers.outputs["out"].view, offset=offset, device=torch.device("cpu"))
    out.copy_(there)
    assert buffers.inspect()["out"].unwritten == 4
    staged.host.copy_(staged.device)
    assert values_of(buffers) == {"out": [[1, 2], [3, 5]]}
    assert_nothing_else_touched(buffers)


def test_empty_tensors(sessions: Mapping[str, Session]) -> None:
    empty = Tensor((0, 3), "FLOAT")
    outcome, _ = run(sessions["direct"], softmax(gradOutput=empty, output=empty, out=empty))
    assert (outcome.ended, outcome.facts) == (Ended.RETURNED, {})
