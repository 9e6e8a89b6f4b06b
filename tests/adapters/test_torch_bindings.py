"""Bindings on torch: the operators of torch that they name, values by hand, and layouts on both sides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from aclnn_cts.adapters import bindings
from aclnn_cts.adapters.binding_evaluation import BindingScope
from aclnn_cts.adapters.bindings import check_names, check_spec, read_bindings
from aclnn_cts.adapters.protocol import Call, Inexpressible, Session
from aclnn_cts.adapters.registry import load, parse_adapter_word, with_bindings
from aclnn_cts.authoring.read import read_document
from aclnn_cts.cli.main import main
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.outcome import CallEnd
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.load import load_specs
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
torch_bindings = pytest.importorskip("aclnn_cts.adapters.torch_bindings")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "specs"
DOCUMENTS = Path(__file__).parents[3] / "shared" / "docs" / "public"


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16", "DOUBLE"])
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("way", ["direct", "copy"])
def test_kernels_by_hand(sessions: Mapping[str, Session], way: str, make: Make, dtype: str) -> None:
    it = make(dtype)
    if dtype == "DOUBLE" and make is rms_norm:
        it = make(dtype, "DOUBLE", dgammaOut=Tensor((2,), "DOUBLE"))
    outcome, buffers = run(sessions[way], it)
    assert (outcome.ended, outcome.message, outcome.status) == (CallEnd.RETURNED, "", None)
    assert outcome.seconds > 0
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", [embedding, upsample, softmax, rms_norm], ids=lambda make: make.__name__)
def test_strided_inputs(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    it = make()
    changes = {name: laid_out(item, how) for name, item in it.tensors() if item.data and item.data.values}
    outcome, buffers = run(sessions["direct"], make(**changes))
    assert (outcome.ended, outcome.message) == (CallEnd.RETURNED, "")
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", EXAMPLES, ids=lambda make: make.__name__)
def test_strided_outputs_that_the_adapter_fills(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    it = make()
    changes = {name: laid_out(item, how) for name, item in it.tensors() if item.data is None}
    outcome, buffers = run(sessions["copy"], make(**changes))
    assert (outcome.ended, outcome.message) == (CallEnd.RETURNED, "")
    assert values_of(buffers) == EXAMPLES[make]
    assert_nothing_else_touched(buffers)


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("make", [embedding, upsample], ids=lambda make: make.__name__)
def test_strided_outputs_that_the_kernel_fills(sessions: Mapping[str, Session], make: Make, how: str) -> None:
    out = make().arguments["out"]
    assert isinstance(out, Tensor)
    outcome, buffers = run(sessions["direct"], make(out=laid_out(out, how)))
    assert (outcome.ended, outcome.message) == (CallEnd.RETURNED, "")
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
    host, there = staged
    host.copy_(there)
    assert values_of(buffers) == {"out": [[1, 2], [3, 5]]}
    assert_nothing_else_touched(buffers)


def test_empty_tensors(sessions: Mapping[str, Session]) -> None:
    empty = Tensor((0, 3), "FLOAT")
    outcome, _ = run(sessions["direct"], softmax(gradOutput=empty, output=empty, out=empty))
    assert (outcome.ended, outcome.facts) == (CallEnd.RETURNED, {})


def schemas() -> dict[str, list[set[str]]]:
    """The arguments of every overload that torch lists, by the operator's name."""
    found: dict[str, list[set[str]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten":
            for key in (name, f"{name}.{schema.overload_name}"):
                found.setdefault(key, []).append({item.name for item in schema.arguments})
    return found


def test_torch_has_every_operator_with_these_arguments() -> None:
    known = schemas()
    for operator, binding in bindings.shipped_bindings("torch").items():
        for call in (value for value in bindings._values_of(binding) if isinstance(value, bindings.LibraryCall)):
            assert any(set(call.arguments) <= names for names in known.get(call.function, ())), (operator, call)


def test_every_shipped_binding_is_offered(sessions: Mapping[str, Session]) -> None:
    session = sessions["direct"]
    assert session.capabilities.operators == frozenset(bindings.shipped_bindings("torch"))
    assert session.environment["not_bound"] == "none"


def test_parameters_are_those_of_the_specs() -> None:
    specs, bound = load_specs(), bindings.shipped_bindings("torch")
    assert specs.keys() - bound.keys() == {
        "aclnnLightningIndexerGrad",
        "aclnnMoeFinalizeRoutingV2Grad",
        "aclnnMoeInitRoutingV2Grad",
        "aclnnMoeTokenPermuteGrad",
        "aclnnMoeTokenPermuteWithEpGrad",
        "aclnnMoeTokenPermuteWithRoutingMapGrad",
        "aclnnMoeTokenUnpermuteGrad",
        "aclnnMoeTokenUnpermuteWithEpGrad",
        "aclnnMoeTokenUnpermuteWithRoutingMapGrad",
        "aclnnMultiScaleDeformableAttentionGrad",
        "aclnnNormRopeConcatBackward",
        "aclnnNsaCompressGrad",
        "aclnnRmsNormGradQuant",
        "aclnnRoiAlignV2Backward",
        "aclnnSituGluGrad",
        "aclnnSparseFlashAttentionGrad",
        "aclnnSparseLightningIndexerGradKLLoss",
        "aclnnSwigluBackwardMxQuantWithDualAxis",
        "aclnnSwigluGroupGrad",
        "aclnnSwigluGroupQuantGrad",
    }
    for operator in specs.keys() & bound.keys():
        assert check_spec(bound[operator], specs[operator]) == []


@pytest.mark.slow
def test_parameters_are_those_of_the_documents() -> None:
    """Outputs are told by their C type: a tensor that is not const."""
    if not DOCUMENTS.is_dir():
        pytest.skip(f"{DOCUMENTS} is not here")
    specs, bound = load_specs(), dict(bindings.shipped_bindings("torch"))
    for path in sorted(DOCUMENTS.glob("*.md")):
        document = read_document(path)
        binding = bound.pop(document.operator, None)
        if binding is not None and document.operator not in specs:
            names = [item.name for item in document.parameters]
            assert check_names(binding, parameters=names) == []
    assert bound == {}


def call_of(tmp_path: Path, text: str) -> str:
    """Why torch does not serve a binding of aclnnMineBackward with this `call` and its arguments."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"bindings:\n  aclnnMineBackward:\n    {text}\n    outputs: [out]\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(parse_adapter_word(f"torch:bindings={path}")).open(Target(), {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("call: no_such_backward", "has no aten::no_such_backward"),
        ("call: tanh_backward.no", "no overload 'no'; expected one of tanh_backward.default"),
        (
            "call: tanh_backward\n    arguments: {grad: g, output: y}",
            "no argument 'grad'; expected grad_output, output",
        ),
        ("call: tanh_backward\n    arguments: {output: y}", "needs the argument grad_output"),
        ("call: add_.Tensor\n    arguments: {self: g, other: y}", "writes into its arguments"),
        ("call: from_file\n    arguments: {filename: {text: /etc/passwd}}", "is no function of tensors"),
        ("call: size\n    arguments: {self: g}", "is no function of tensors"),
        ("call: __class__", "has no aten::__class__"),
        ("function: os_system", "function: 'os_system'; expected one of convolution_backward"),
    ],
)
def test_what_torch_does_not_offer_is_said_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    message = call_of(tmp_path, text)
    assert words in message
    assert f"{tmp_path / 'mine.yaml'}:3: bindings.aclnnMineBackward" in message


@pytest.mark.parametrize(
    ("value", "word"), [("size: [g, 7]", "dimension of 2"), ("item: [{shape: g}, 7]", "item of 2")]
)
def test_an_index_out_of_range_is_said_with_its_line(tmp_path: Path, value: str, word: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"bindings:\n  aclnnMineBackward:\n    let:\n      n: {{{value}}}\n    outputs: {{out: n}}\n")
    binding = torch_bindings.TorchBinding(read_bindings(path)["aclnnMineBackward"], device=torch.device("cpu"))
    scope = BindingScope(case=Case("aclnnMineBackward", {}), inputs={"g": torch.zeros(2, 3)}, outputs={})
    with pytest.raises(Inexpressible, match=rf"mine\.yaml:4: .*: 7 is out of range; expected an? {word}"):
        binding.let["n"](scope)


@pytest.mark.slow
def test_an_operator_of_the_user_needs_no_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(FIXTURES, mine, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mine.yaml").write_text(
        "bindings:\n"
        "  aclnnLogisticBackward:\n"
        "    call: sigmoid_backward\n"
        "    arguments: {grad_output: {cast: [gradOutput, FLOAT]}, output: {cast: [output, FLOAT]}}\n"
        "    outputs: [gradInput]\n"
        "    cast: true\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert main(["cases", "logistic_backward", "--specs", "mine", "-n", "6", "-o", "cases.jsonl"]) == 0
    words = ["run", "--cases", "cases.jsonl", "--specs", "mine", "--adapter", "torch"]
    code = main([*words, "--bindings", "mine.yaml", "-o", "out"])
    line = capfd.readouterr().out.splitlines()[-1]
    assert (code, "verdict=conforms judged=100%" in line) == (0, True), line
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    facts = manifest["environment"]
    assert facts["adapter.bindings"]["value"] == "mine.yaml"
    assert len(facts["adapter.bindings_sha256"]["value"]) == 64
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8").replace("[output, FLOAT]", "[y, FLOAT]")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    assert main([*words, "--bindings", "mine.yaml"]) == 2
    error = capfd.readouterr().err
    assert "mine.yaml:3: bindings.aclnnLogisticBackward: 'y' is no parameter" in error
    assert main([*words[:-1], "torch:bindings=none.yaml"]) == 2
    assert "none.yaml: cannot be read" in capfd.readouterr().err


def test_a_tensor_as_a_flag_says_whether_it_is_given(sessions: Mapping[str, Session]) -> None:
    """Without a scale there is no gradient of it to return."""
    arguments = {
        "grad_output": tensor([[[1, 2], [3, 5]]]),
        "input": tensor([[[7, 11], [13, 17]]]),
        "scale": None,
        "shift": tensor([[19, 23]]),
        "grad_input": Tensor((1, 2, 2), "FLOAT"),
        "grad_scale": None,
        "grad_shift": Tensor((1, 2), "FLOAT"),
    }
    outcome, buffers = run(sessions["copy"], Case("aclnnModulateBackward", arguments))
    assert outcome.ended == CallEnd.RETURNED
    assert values_of(buffers) == {"grad_input": [[[1, 2], [3, 5]]], "grad_shift": [[4, 7]]}


def test_bindings_are_an_option_of_the_adapter() -> None:
    files = (Path("a.yaml"), Path("b.yaml"))
    assert parse_adapter_word(with_bindings("torch:device=cpu", files)).options == {
        "device": "cpu",
        "bindings": "a.yaml,b.yaml",
    }
    assert parse_adapter_word(with_bindings("mine:Adapter", files[:1])).options == {"bindings": "a.yaml"}
    with pytest.raises(UsageError, match="--adapter reference takes no bindings; expected torch or jax"):
        with_bindings("reference", files)
    for name in ("a,b.yaml", "a=b.yaml"):
        with pytest.raises(UsageError, match="rename the file"):
            with_bindings("torch", (Path(name),))
    with pytest.raises(UsageError, match="expected --adapter too"):
        with_bindings(None, files)


def test_a_spec_with_other_names_is_no_fault_of_torch(sessions: Mapping[str, Session]) -> None:
    it = softmax()
    renamed = {("axis" if name == "dim" else name): value for name, value in it.arguments.items()}
    [outcome] = sessions["direct"].run([Call(Case(it.operator, renamed), prepared(it))])
    assert outcome.ended == CallEnd.INEXPRESSIBLE
    assert "names dim, which the operator's spec does not have" in outcome.message
