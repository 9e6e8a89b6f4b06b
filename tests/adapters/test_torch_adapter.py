from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call, Session
from aclnn_cts.adapters.registry import choose, load
from aclnn_cts.core.case import Argument, CallOptions, Case, Data, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.engine.process import ProcessHost
from aclnn_cts.generate.buffers import CallBuffers, layout, prepare
from aclnn_cts.generate.recipes import case_arrays

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")

OUTPUTS = {
    "aclnnConvTbcBackward": ("gradInput", "gradWeight", "gradBias"),
    "aclnnEmbeddingDenseBackward": ("out",),
    "aclnnUpsampleNearestExact1dBackward": ("out",),
    "aclnnSoftmaxBackward": ("out",),
    "aclnnRmsNormGrad": ("dxOut", "dgammaOut"),
}
Make: TypeAlias = Callable[..., Case]
LAYOUTS = ("contiguous", "transposed", "gaps")


@pytest.fixture(scope="module")
def sessions() -> Iterator[Mapping[str, Session]]:
    opened = {way: load(choose(f"torch:outputs={way}")).open(Target(), {}) for way in ("direct", "copy")}
    yield opened
    for session in reversed(opened.values()):
        session.close()


def tensor(values: object, dtype: str = "FLOAT") -> Tensor:
    shape = np.shape(np.asarray(values))
    return Tensor(shape, dtype, data=Data(values=tuple(np.asarray(values).reshape(-1).tolist())))


def laid_out(it: Tensor, how: str) -> Tensor:
    """The same tensor with other strides and an offset."""
    rank = len(it.shape)
    if how == "contiguous" or not rank:
        return it
    strides = [0] * rank
    step = 1 if how == "transposed" else 2
    for axis in range(rank) if how == "transposed" else reversed(range(rank)):
        strides[axis] = step
        step *= it.shape[axis] + (how == "gaps")
    return Tensor(it.shape, it.dtype, strides=tuple(strides), offset=3, data=it.data)


def prepared(it: Case) -> CallBuffers:
    arrays = case_arrays(it, [name for name, item in it.tensors() if item.data is not None])
    return prepare(it, outputs=frozenset(OUTPUTS[it.operator]), arrays=arrays)


def run(session: Session, it: Case) -> tuple[Outcome, CallBuffers]:
    buffers = prepared(it)
    (outcome,) = session.run([Call(it, buffers)])
    return outcome, buffers


def values_of(buffers: CallBuffers) -> dict[str, Any]:
    return {name: buffer.view.astype(np.float64).tolist() for name, buffer in buffers.outputs.items()}


def assert_nothing_else_touched(buffers: CallBuffers) -> None:
    for name, state in buffers.inspect().items():
        assert (state.gap, state.guard_before, state.guard_after, state.changed, state.unwritten) == (0,) * 5, name


def softmax(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": tensor([[1, 2], [3, 5]], dtype),
        "output": tensor([[0.25, 0.75], [0.5, 0.5]], dtype),
        "dim": -1,
        "out": Tensor((2, 2), dtype),
    }
    return Case("aclnnSoftmaxBackward", arguments | changes)


def conv(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "self": tensor([[[1]], [[2]], [[4]]], dtype),
        "input": tensor([[[3]], [[5]]], dtype),
        "weight": tensor([[[7]], [[11]]], dtype),
        "bias": tensor([0], dtype),
        "pad": 1,
        "cubeMathType": 0,
        "gradInput": Tensor((2, 1, 1), dtype),
        "gradWeight": Tensor((2, 1, 1), dtype),
        "gradBias": Tensor((1,), dtype),
    }
    return Case("aclnnConvTbcBackward", arguments | changes)


def embedding(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "grad": tensor([[1, 2], [3, 4], [5, 6], [9, 9]], dtype),
        "indices": tensor([2, 0, 2, 1], "INT64"),
        "numWeights": 4,
        "paddingIdx": 1,
        "scaleGradByFreq": False,
        "out": Tensor((4, 2), dtype),
    }
    return Case("aclnnEmbeddingDenseBackward", arguments | changes)


def upsample(dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "gradOutput": tensor([[[1, 2, 3, 4, 5, 6, 7]]], dtype),
        "outputSizeOptional": (7,),
        "inputSize": (1, 1, 4),
        "scalesOptional": 0.0,
        "out": Tensor((1, 1, 4), dtype),
    }
    return Case("aclnnUpsampleNearestExact1dBackward", arguments | changes)


def rms_norm(dtype: str = "FLOAT", gamma_dtype: str = "FLOAT", **changes: Argument) -> Case:
    arguments: dict[str, Argument] = {
        "dy": tensor([[1, 0], [0, 1]], dtype),
        "x": tensor([[1, 1], [1, -1]], dtype),
        "rstd": Tensor((2,), "FLOAT", data=Data(recipe="rstd", of="x", epsilon=0.0)),
        "gamma": tensor([2, 3], gamma_dtype),
        "dxOut": Tensor((2, 2), dtype),
        "dgammaOut": Tensor((2,), "FLOAT"),
    }
    return Case("aclnnRmsNormGrad", arguments | changes)


EXAMPLES: Mapping[Make, object] = {
    # y (g - sum(y g)): the sums are 1.75 and 4.
    softmax: {"out": [[-0.1875, 0.1875], [-0.5, 0.5]]},
    # gradInput[t] = sum_k self[t + 1 - k] weight[k]; gradWeight[k] = sum_u input[u + k - 1] self[u].
    conv: {
        "gradInput": [[[2 * 7 + 1 * 11]], [[4 * 7 + 2 * 11]]],
        "gradWeight": [[[3 * 2 + 5 * 4]], [[3 * 1 + 5 * 2]]],
        "gradBias": [7],
    },
    embedding: {"out": [[3, 4], [0, 0], [6, 8], [0, 0]]},
    upsample: {"out": [[[1 + 2, 3, 4 + 5, 6 + 7]]]},
    # x rstd = x; g = dy gamma; the means of g x are 1 and -1.5; dx = g - x mean; dgamma = sum of dy x.
    rms_norm: {"dxOut": [[1, -1], [1.5, 1.5]], "dgammaOut": [1, -1]},
}


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
    assert seen.stride() == it.arguments["gradOutput"].strides  # type: ignore[union-attr]
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
    assert there.stride() == (it.arguments["gradOutput"].strides or (2, 1))  # type: ignore[union-attr]
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


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (softmax(dim=2), "Dimension out of range"),
        (softmax(gradOutput=None), "proper Tensor"),
        (softmax(output=tensor([1, 2, 3])), ""),
        (softmax("INT8", output=tensor([[1, 1], [1, 1]], "INT8")), "not implemented"),
        (conv(bias=None), "proper Tensor"),
        (conv(weight=tensor([[1, 2]])), ""),
        (conv(pad=None), "pad is None"),
        (embedding(grad=tensor([[1, 2]])), ""),
        (upsample(outputSizeOptional=(6,)), "tensor.size[2] == 6"),
        (upsample(outputSizeOptional=None), "output_size"),
        (upsample(inputSize=(1, 1)), ""),
        (rms_norm(gamma=tensor([1, 2, 3])), ""),
        (rms_norm(dy=None), "dy is a null pointer"),
        (rms_norm("INT32"), "floating"),
    ],
)
def test_what_torch_refuses_is_raised(sessions: Mapping[str, Session], it: Case, words: str) -> None:
    outcome, buffers = run(sessions["direct"], it)
    assert outcome.ended == Ended.RAISED
    assert words in outcome.message
    assert all(state.unwritten for name, state in buffers.inspect().items() if name in buffers.outputs)


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (softmax(out=None), "out cannot be a null pointer"),
        (softmax(gradOutput=Tensor((2, 2), "FLOAT", format="FRACTAL_NZ")), "FRACTAL_NZ"),
        (softmax(gradOutput=Tensor((2, 2), "HIFLOAT8")), "the dtype of gradOutput"),
        (conv(cubeMathType=4), "cubeMathType 4"),
        (rms_norm(rstd=tensor([1, 1])), "only data of the recipe 'rstd'"),
        (rms_norm(rstd=Tensor((1,), "FLOAT", data=Data(recipe="rstd", of="x"))), "1 values for 2 rows"),
        (Case("aclnnSoftmaxBackward", softmax().arguments, call=CallOptions(null=("executor",))), "no executor"),
    ],
)
def test_what_torch_has_no_words_for_is_inexpressible(sessions: Mapping[str, Session], it: Case, words: str) -> None:
    outcome, _ = run(sessions["direct"], it)
    assert outcome.ended == Ended.INEXPRESSIBLE
    assert words in outcome.message


def test_descriptors_alone_and_unknown_operators_are_inexpressible(sessions: Mapping[str, Session]) -> None:
    alone, unknown = sessions["direct"].run([Call(softmax()), Call(Case("aclnnAbs", {}), prepared(softmax()))])
    assert (alone.ended, unknown.ended) == (Ended.INEXPRESSIBLE, Ended.INEXPRESSIBLE)
    assert "aclnnAbs" in unknown.message


@pytest.mark.parametrize("way", ["direct", "copy"])
@pytest.mark.parametrize(
    ("it", "facts"),
    [
        (softmax(out=Tensor((2, 3), "FLOAT")), {"out.shape": "[2, 2]"}),
        (softmax(out=Tensor((4,), "FLOAT16")), {"out": "cast from FLOAT by torch", "out.shape": "[2, 2]"}),
        (upsample(out=Tensor((1, 1, 1, 4), "FLOAT")), {"out.shape": "[1, 1, 4]"}),
        (embedding(numWeights=5), {"out.shape": "[5, 2]"}),
        (conv(gradBias=Tensor((1,), "DOUBLE")), {"gradBias.dtype": "FLOAT"}),
    ],
)
def test_outputs_of_another_shape_or_dtype_are_facts(
    sessions: Mapping[str, Session], way: str, it: Case, facts: dict[str, str]
) -> None:
    outcome, buffers = run(sessions[way], it)
    assert (outcome.ended, outcome.facts) == (Ended.RETURNED, facts)
    states = buffers.inspect()
    for name in {key.partition(".")[0] for key in facts if "." in key}:
        assert states[name].unwritten == buffers.outputs[name].view.size
    assert not any(state.guard_after or state.gap for state in states.values())


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "FLOAT", "FLOAT16", "DOUBLE"])
def test_indices_of_other_dtypes_are_converted_and_said_to_be(sessions: Mapping[str, Session], dtype: str) -> None:
    outcome, buffers = run(sessions["direct"], embedding(indices=tensor([2, 0, 2, 1], dtype)))
    assert outcome.facts == {"indices": f"{dtype} converted to INT64 for torch"}
    assert values_of(buffers) == EXAMPLES[embedding]


def test_bool_and_int32_indices(sessions: Mapping[str, Session]) -> None:
    outcome, buffers = run(
        sessions["direct"], embedding(indices=tensor([True, False, True, True], "BOOL"), paddingIdx=3)
    )
    assert outcome.facts == {"indices": "BOOL converted to INT64 for torch"}
    assert values_of(buffers)["out"] == [[3, 4], [15, 17], [0, 0], [0, 0]]
    outcome, buffers = run(sessions["direct"], embedding(indices=tensor([2, 0, 2, 1], "INT32")))
    assert outcome.facts == {}
    assert values_of(buffers) == EXAMPLES[embedding]


@pytest.mark.parametrize("padding", [2**64 - 1, 2**63, 2**63 - 1, 4, 1000])
def test_a_padding_index_beyond_the_rows_has_no_effect(sessions: Mapping[str, Session], padding: int) -> None:
    outcome, buffers = run(sessions["direct"], embedding(paddingIdx=padding))
    assert outcome.ended == Ended.RETURNED
    assert values_of(buffers)["out"] == [[3, 4], [9, 9], [6, 8], [0, 0]]


def test_gradients_are_scaled_by_frequency(sessions: Mapping[str, Session]) -> None:
    _, buffers = run(sessions["direct"], embedding(scaleGradByFreq=True))
    assert values_of(buffers)["out"] == [[3, 4], [0, 0], [3, 4], [0, 0]]


def test_scales_are_those_of_the_forward_operator(sessions: Mapping[str, Session]) -> None:
    _, buffers = run(sessions["direct"], upsample(scalesOptional=7 / 4))
    assert values_of(buffers) == EXAMPLES[upsample]
    _, buffers = run(sessions["direct"], upsample(scalesOptional=2.0))
    assert values_of(buffers)["out"] == [[[1 + 2, 3 + 4, 5 + 6, 7]]]


def test_gamma_of_half_precision_still_gives_a_gradient_in_float(sessions: Mapping[str, Session]) -> None:
    outcome, buffers = run(sessions["direct"], rms_norm("FLOAT16", "FLOAT16"))
    assert set(outcome.facts) == {"rstd"}
    assert values_of(buffers) == EXAMPLES[rms_norm]


def test_a_rstd_without_an_epsilon_has_the_recipes(sessions: Mapping[str, Session]) -> None:
    x = tensor([[1e-3, 2e-3], [3e-3, 1e-3]])
    it = rms_norm(x=x, rstd=Tensor((2,), "FLOAT", data=Data(recipe="rstd", of="x")))
    outcome, buffers = run(sessions["direct"], it)
    assert outcome.ended == Ended.RETURNED
    arrays = case_arrays(it, ["dy", "x", "rstd", "gamma"])
    dy, x_values, rstd, gamma = (arrays[name].astype(np.float64) for name in ("dy", "x", "rstd", "gamma"))
    normal = x_values * rstd[:, None]
    weighted = dy * gamma
    expected = (weighted - normal * (weighted * normal).mean(axis=-1, keepdims=True)) * rstd[:, None]
    np.testing.assert_allclose(buffers.outputs["dxOut"].view, expected, rtol=1e-5)


def test_the_rstd_of_the_case_takes_the_place_of_torchs_own(sessions: Mapping[str, Session]) -> None:
    # The squares of x overflow in FLOAT, so that torch's own rstd is 0; the recipe's is 2^-100.
    large = tensor([[2.0**100, 2.0**100], [2.0**100, -(2.0**100)]])
    it = rms_norm(x=large, gamma=tensor([1, 1]))
    _, buffers = run(sessions["direct"], it)
    assert values_of(buffers)["dgammaOut"] != [0, 0]
    dy = np.asarray(it.arguments["dy"].data.values).reshape(2, 2)  # type: ignore[union-attr]
    assert values_of(buffers)["dgammaOut"] == (dy * [[1, 1], [1, -1]]).sum(axis=0).tolist()


def test_settings_are_recorded_and_put_back() -> None:
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    session = load(choose("torch:threads=1,deterministic=true")).open(Target(), {})
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (1, True)
    environment = session.environment
    assert environment["torch"] == torch.__version__
    expected = {
        "device": "cpu",
        "threads": "1",
        "deterministic": "true",
        "tf32": "false",
        "reduced_precision_reduction": "false",
        "float32_matmul_precision": "highest",
    }
    assert {key: environment[key] for key in expected} == expected
    assert {"device_name", "flush_denormal", "cpu_capability", "RmsNormGrad"} <= set(environment)
    assert not session.capabilities.statuses
    session.close()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


def test_subnormals_are_kept(sessions: Mapping[str, Session]) -> None:
    tiny = 2.0**-140
    _, buffers = run(sessions["direct"], upsample(gradOutput=tensor([[[tiny] * 7]])))
    assert values_of(buffers)["out"] == [[[2 * tiny, tiny, 2 * tiny, 2 * tiny]]]


@pytest.mark.parametrize(
    ("device", "kind", "message"),
    [("toaster", UsageError, "torch knows no such device"), ("npu", HarnessError, "needs torch_npu")],
)
def test_devices_that_are_not_here(device: str, kind: type[Exception], message: str) -> None:
    if device == "npu" and "npu" in dir(torch):
        pytest.skip("torch_npu is installed here")
    with pytest.raises(kind, match=message):
        load(choose(f"torch:device={device}")).open(Target(), {})


def test_a_cuda_device_that_is_not_here() -> None:
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    with pytest.raises(HarnessError, match="device=cuda cannot be used here"):
        load(choose("torch:device=cuda")).open(Target(), {})


def test_in_a_runner() -> None:
    with ProcessHost("torch", target=Target(), spare=False) as host:
        calls, views = [], []
        for make in EXAMPLES:
            it = make()
            outputs = frozenset(OUTPUTS[it.operator])
            arrays = {name: buffer.view for name, buffer in prepared(it).inputs.items()}
            memory = host.memory(layout(it, outputs).size)
            buffers = prepare(it, outputs=outputs, arrays=arrays, memory=memory)
            calls.append(Call(it, buffers))
            views.append(buffers)
        outcomes = host.run(calls)
        assert [outcome.ended for outcome in outcomes] == [Ended.RETURNED] * len(EXAMPLES)
        assert [values_of(buffers) for buffers in views] == list(EXAMPLES.values())
        assert host.environment["implementation"] == "torch"
