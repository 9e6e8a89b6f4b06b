"""What the torch adapter refuses, converts and records."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping

import numpy as np
import pytest

from aclnn_cts.adapters.protocol import Call, Rejected, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word
from aclnn_cts.adapters.torch_settings import _same_version, call_torch
from aclnn_cts.core.case import Argument, BoolArray, CallOptions, Case, Tensor
from aclnn_cts.core.errors import HarnessError, UsageError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.generate.buffers import block_layout, prepare
from aclnn_cts.sandbox.process import ProcessHost
from tests.adapters.torch_calls import (
    EXAMPLES,
    OUTPUTS,
    conv,
    embedding,
    prepared,
    rms_norm,
    run,
    softmax,
    tensor,
    upsample,
    values_of,
)

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (softmax(dim=2), "Dimension out of range"),
        (softmax(gradOutput=None), "proper Tensor"),
        (softmax(output=tensor([1, 2, 3])), ""),
        (softmax("INT8", output=tensor([[1, 1], [1, 1]], "INT8")), "not implemented"),
        (conv(bias=None), "proper Tensor"),
        (conv(weight=tensor([[1, 2]])), ""),
        (embedding(grad=tensor([[1, 2]])), ""),
        (upsample(outputSizeOptional=(6,)), "tensor.size[2] == 6"),
        (upsample(outputSizeOptional=None), "output_size"),
        (upsample(inputSize=(1, 1)), ""),
        (rms_norm(gamma=tensor([1, 2, 3])), ""),
        (rms_norm(dy=None), "grad can be implicitly created only for scalar outputs"),
        (rms_norm(x=None), "must be Tensor, not NoneType"),
        (rms_norm(dy=tensor([[1, 0, 0], [0, 1, 0]])), "Mismatch in shape"),
        (rms_norm("INT32"), "floating"),
    ],
)
def test_what_torch_refuses_is_a_rejection(sessions: Mapping[str, Session], it: Case, words: str) -> None:
    outcome, buffers = run(sessions["direct"], it)
    assert (outcome.ended, outcome.rejected) == (CallEnd.RAISED, True)
    assert words in outcome.message
    assert all(state.unwritten for name, state in buffers.inspect().items() if name in buffers.outputs)


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (softmax(out=None), "out cannot be a null pointer"),
        (softmax(gradOutput=Tensor((2, 2), "FLOAT", format="FRACTAL_NZ")), "FRACTAL_NZ"),
        (softmax(gradOutput=Tensor((2, 2), "HIFLOAT8")), "the dtype of gradOutput"),
        (conv(cubeMathType=4), "cubeMathType 4"),
        (conv(pad=None), "pad is None"),
        (rms_norm(rstd=None), "do without rstd"),
        (rms_norm(gamma=None), "do without gamma"),
        (rms_norm(rstd=tensor([1])), "1 values for 2 rows"),
        (Case("aclnnSoftmaxBackward", softmax().arguments, call=CallOptions(null=("executor",))), "no executor"),
    ],
)
def test_what_torch_has_no_words_for_is_inexpressible(sessions: Mapping[str, Session], it: Case, words: str) -> None:
    outcome, _ = run(sessions["direct"], it)
    assert outcome.ended == CallEnd.INEXPRESSIBLE
    assert words in outcome.message


def test_a_lack_of_memory_is_no_rejection(sessions: Mapping[str, Session]) -> None:
    outcome, _ = run(sessions["direct"], embedding(numWeights=2**45))
    assert (outcome.ended, outcome.rejected) == (CallEnd.NOT_RUN, False)
    assert "can't allocate memory" in outcome.message


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), Rejected),
        (NotImplementedError("no"), Rejected),
        (KeyError("no"), KeyError),
        (RuntimeError("x INTERNAL ASSERT FAILED at y"), RuntimeError),
        (torch.OutOfMemoryError("no"), torch.OutOfMemoryError),
    ],
)
def test_a_clear_error_of_torch_is_a_rejection(error: Exception, raised: type[Exception]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(raised):
        call_torch(fail)


def test_descriptors_alone_and_unknown_operators_are_inexpressible(sessions: Mapping[str, Session]) -> None:
    alone, unknown = sessions["direct"].run([Call(softmax()), Call(Case("aclnnAbs", {}), prepared(softmax()))])
    assert (alone.ended, unknown.ended) == (CallEnd.INEXPRESSIBLE, CallEnd.INEXPRESSIBLE)
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
    assert (outcome.ended, outcome.facts) == (CallEnd.RETURNED, facts)
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
    assert outcome.ended == CallEnd.RETURNED
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


def test_the_rstd_of_the_case_takes_the_place_of_torchs_own(sessions: Mapping[str, Session]) -> None:
    # The squares of x overflow in FLOAT, so that torch's own rstd is 0; the recipe's is 2^-100.
    large = tensor([[2.0**100, 2.0**100], [2.0**100, -(2.0**100)]])
    it = rms_norm(x=large, gamma=tensor([1, 1]))
    _, buffers = run(sessions["direct"], it)
    assert values_of(buffers)["dgammaOut"] != [0, 0]
    dy = np.asarray(it.arguments["dy"].data.values).reshape(2, 2)  # type: ignore[union-attr]  # explicit, as made above
    assert values_of(buffers)["dgammaOut"] == (dy * [[1, 1], [1, -1]]).sum(axis=0).tolist()


def test_a_version_that_only_torch_tells_is_no_more_than_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.0.0")
    session = load(parse_adapter_word("torch")).open(Target(), {})
    assert not {"torch", "version"} & session.capabilities.measured
    session.close()


def test_settings_are_recorded_and_put_back() -> None:
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    session = load(parse_adapter_word("torch:threads=1,deterministic=true")).open(Target(), {})
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
    sentences = {name for name, value in environment.items() if value.count(" ") > 3}
    assert sentences <= set(session.capabilities.environment_zh) <= set(environment)
    assert {"cubeMathType", "RmsNormGrad"} <= sentences
    measured = session.capabilities.measured
    assert {"torch", "version", "torch_record", "threads", "tf32", "device", "outputs"} <= measured
    assert not {"implementation", "torch_git", "cpu_capability", "deterministic", "RmsNormGrad"} & measured
    assert re.fullmatch("sha256 [0-9a-f]{64}", environment["torch_record"])
    session.close()
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


@pytest.mark.parametrize(("dtype", "large"), [("FLOAT16", 2048), ("BF16", 256)])
def test_convolution_without_onednn_adds_images_in_float(
    sessions: Mapping[str, Session], monkeypatch: pytest.MonkeyPatch, dtype: str, large: int
) -> None:
    """In the dtype itself large + 1 is large."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    arguments: dict[str, Argument] = {
        "gradOutput": tensor([[[large]], [[1]], [[1]]], dtype),
        "input": tensor([[[1]], [[1]], [[1]]], dtype),
        "weight": tensor([[[1]]], dtype),
        "biasSizes": (1,),
        "stride": (1,),
        "padding": (0,),
        "dilation": (1,),
        "transposed": False,
        "outputPadding": (0,),
        "groups": 1,
        "outputMask": BoolArray((False, True, True)),
        "cubeMathType": 0,
        "gradInput": None,
        "gradWeight": Tensor((1, 1, 1), dtype),
        "gradBias": Tensor((1,), dtype),
    }
    outcome, buffers = run(sessions["direct"], Case("aclnnConvolutionBackward", arguments))
    assert (outcome.ended, outcome.facts["precision"]) == (CallEnd.RETURNED, "computed in FLOAT by torch")
    assert values_of(buffers) == {"gradWeight": [[[large + 2]]], "gradBias": [large + 2]}


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
        load(parse_adapter_word(f"torch:device={device}")).open(Target(), {})


def test_a_cuda_device_that_is_not_here() -> None:
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    with pytest.raises(HarnessError, match="device=cuda cannot be used here"):
        load(parse_adapter_word("torch:device=cuda")).open(Target(), {})


def test_in_a_runner() -> None:
    with ProcessHost("torch", target=Target(), spare=False) as host:
        calls, views = [], []
        for make in EXAMPLES:
            it = make()
            outputs = frozenset(OUTPUTS[it.operator])
            arrays = {name: buffer.view for name, buffer in prepared(it).inputs.items()}
            memory = host.memory(block_layout(it, outputs).size)
            buffers = prepare(it, outputs=outputs, arrays=arrays, memory=memory)
            calls.append(Call(it, buffers))
            views.append(buffers)
        outcomes = host.run(calls)
        assert [outcome.ended for outcome in outcomes] == [CallEnd.RETURNED] * len(EXAMPLES)
        assert [values_of(buffers) for buffers in views] == list(EXAMPLES.values())
        assert host.environment["implementation"] == "torch"


@pytest.mark.parametrize(
    ("installed", "told", "same"),
    [
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.13.0", "2.13.0+cu130", True),
        ("2.13.0", "2.12.1+cu130", False),
        ("2.13.0+cpu", "2.13.0+cu130", False),
        (None, "2.13.0", False),
        ("2.13.0", None, False),
    ],
)
def test_a_version_is_measured_where_the_installed_files_are_of_it(
    installed: str | None, told: str | None, same: bool
) -> None:
    assert _same_version(installed, told) == same
