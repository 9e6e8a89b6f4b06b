from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
import pytest

import aclnn_cts
from aclnn_cts.candidates.arrays import as_array
from aclnn_cts.candidates.public import PUBLIC
from aclnn_cts.candidates.schemas import schemas
from aclnn_cts.core.case import Scalar
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import load_specs
from tests.candidates.kernels import right


def call(shape: tuple[int, ...] = (10, 100), dtype: Any = np.float32) -> tuple[dict[str, Any], Any]:
    generator = np.random.default_rng(7)
    grad = generator.standard_normal(shape).astype(dtype)
    exponent = np.exp(generator.standard_normal(shape))
    output = (exponent / exponent.sum(axis=-1, keepdims=True)).astype(dtype)
    inputs = {"grad_output": grad, "output": output, "dim": -1}
    return inputs, right(grad, output, -1).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_right_outputs_conform(dtype: Any) -> None:
    inputs, out = call(dtype=dtype)
    found = aclnn_cts.check("softmax_backward", inputs, {"out": out})
    assert found
    assert found.ok
    assert found.verdict == "conforms"
    assert found.worst is not None
    assert float(found.worst.error_ratio) <= 1
    assert found.open_share == 0


def test_wrong_element_is_named() -> None:
    inputs, out = call()
    out[3, 5] += 1
    found = aclnn_cts.check("aclnnSoftmaxBackward", inputs, out)
    assert not found.ok
    assert found.fault == "value"
    assert found.worst is not None
    assert found.worst.index == (3, 5)
    assert float(found.worst.error_ratio) > 1
    jsonschema.validate(found.to_json(), schemas()["check"])
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("dtype", "value", "wrong"),
    [
        (np.int32, 2**30 + 1, 2**30),
        (np.int32, -(2**31), -(2**31) + 1),
        (np.int64, 2**53 - 1, 2**53),
        (np.int64, 2**52 + 1, 2**52),
        (np.int64, 2**62 + 1, 2**62 + 2**12),
        (np.int8, -128, 127),
        (np.uint8, 255, 254),
    ],
)
def test_integers_must_come_back_as_they_are(dtype: Any, value: int, wrong: int) -> None:
    inputs = {"gradOutput": np.array([value, 5], dtype), "self": np.array([3, 0], dtype), "threshold": 0.0}
    for number, verdict in ((value, "conforms"), (wrong, "fails")):
        out = np.array([number, 0], dtype)
        assert aclnn_cts.check("threshold_backward", inputs, {"out": out}, product="ascend-950").verdict == verdict


def test_broken_rule_is_named_and_nothing_judged() -> None:
    inputs, out = call()
    found = aclnn_cts.check("softmax_backward", {**inputs, "dim": 2}, out)
    assert (found.verdict, found.rule, found.clause) == ("inconclusive", "dim.range", "returns.6")
    assert "dim.range" in found.reason


def test_elements_out_of_range_break_their_rule() -> None:
    inputs = {
        "grad": np.ones((2, 3), np.float32),
        "indices": np.array([0, 9]),
        "numWeights": 4,
        "paddingIdx": 100,
        "scaleGradByFreq": False,
    }
    found = aclnn_cts.check("embedding_dense_backward", inputs, np.zeros((4, 3), np.float32))
    assert found.verdict == "inconclusive"
    assert "indices" in found.rule


@pytest.mark.parametrize("padding", [-1, 2**64 - 1])
def test_negative_padding_index_has_no_effect(padding: int) -> None:
    inputs = {
        "grad": np.ones((2, 3), np.float32),
        "indices": np.array([3, 0]),
        "numWeights": 4,
        "paddingIdx": padding,
        "scaleGradByFreq": False,
    }
    out = np.zeros((4, 3), np.float32)
    out[[0, 3]] = 1
    assert aclnn_cts.check("embedding_dense_backward", inputs, out).ok
    out[3] = 0
    assert aclnn_cts.check("embedding_dense_backward", inputs, out).verdict == "fails"
    with pytest.raises(UsageError, match=r"numWeights|out"):
        aclnn_cts.check("embedding_dense_backward", {**inputs, "numWeights": -1}, out)


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        (lambda out: out[0], "shape"),
        (lambda out: {}, "unwritten"),
        (lambda out: {"out": out * np.nan}, "special-value"),
    ],
)
def test_outputs_in_wrong_form_fail(outputs: Any, fault: str) -> None:
    inputs, out = call()
    assert aclnn_cts.check("softmax_backward", inputs, outputs(out)).fault == fault


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({"grad_outputs": 1}, {}, "did you mean"),
        ({}, {"result": np.zeros(1)}, "writes out"),
        ({"dim": "last"}, {"out": np.zeros(1)}, "int64_t"),
        ({"dim": 1.5}, {}, r"dim: 1\.5; expected an integer \(int64_t\)"),
        ({"dim": float("nan")}, {}, "dim: nan; expected an integer"),
        ({"dim": 2**70}, {}, "inputs: dim: 1180591620717411303424; expected int64_t"),
        ({"dim": None}, {}, r"dim is missing; expected an integer \(int64_t\)"),
        ({"gradOutput": np.zeros(1)}, {}, "grad_output and gradOutput are one parameter"),
        ({"out": np.zeros(1)}, {}, "out is an output of aclnnSoftmaxBackward"),
        ({3: 1}, {}, "inputs: 3: aclnnSoftmaxBackward takes"),
        ({"output": [[1], [1, 2]]}, {}, "all rows of the same length"),
        ({"output": np.ma.masked_array([1.0, 2.0], [True, False])}, {}, "masked array with masked elements"),
    ],
)
def test_unknown_names_and_values_are_refused(inputs: dict[str, Any], outputs: Any, message: str) -> None:
    good, _ = call()
    with pytest.raises(UsageError, match=message):
        aclnn_cts.check("softmax_backward", {**good, **inputs}, outputs)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("op", 3, "op: 3; expected a name"),
        ("op", [], "op: "),
        ("inputs", [1], "inputs: list; expected a mapping"),
        ("product", 3, "product: 3; expected a name"),
        ("edition", "never", "edition: 'never' is not known"),
    ],
)
def test_wrong_parameter_is_named(parameter: str, value: Any, message: str) -> None:
    inputs, out = call()
    given = {"op": "softmax_backward", "inputs": inputs, "outputs": out, parameter: value}
    with pytest.raises(UsageError, match=message) as raised:
        aclnn_cts.check(**given)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("grad_output", np.ones((10, 100), ">f4"), "gradOutput >f4 [10, 100]"),
        ("grad_output", [[1.0]], "gradOutput float64 [1, 1]"),
        ("grad_output", 3, "gradOutput int64 []"),
        ("dim", 7, "dim 7"),
        ("output", None, "output None"),
    ],
)
def test_reason_says_what_was_given_of_a_broken_rule(name: str, value: Any, given: str) -> None:
    inputs, out = call()
    found = aclnn_cts.check("softmax_backward", {**inputs, name: value}, out)
    assert found.verdict == "inconclusive"
    assert given in found.reason
    with pytest.raises(UsageError, match="they break the rule"):
        aclnn_cts.expected("softmax_backward", {**inputs, name: value})


def test_broken_rule_is_the_reason_where_the_mathematics_has_no_value() -> None:
    inputs, out = call()
    found = aclnn_cts.check("softmax_backward", {**inputs, "output": inputs["output"][0]}, out)
    assert found.reason.startswith("the inputs break the rule output.shape")


def conforming(case: aclnn_cts.CaseArrays) -> dict[str, Any]:
    """The outputs that a case asks for, each the exact value rounded."""
    expected = aclnn_cts.expected(case.case.operator, case.arguments)
    with np.errstate(all="ignore"):
        return {name: expected[name].value.astype(memory.dtype) for name, memory in case.outputs().items()}


OPTIONAL = [name for name, spec in load_specs().items() if any(spec.parameter(item).optional for item in spec.outputs)]
SCALARS = [name for name, spec in load_specs().items() if any(item.kind == "scalar" for item in spec.parameters)]


@pytest.mark.parametrize("operator", OPTIONAL)
def test_outputs_that_may_be_left_out_are_not_missing(operator: str) -> None:
    spec = load_specs()[operator]
    faults = set()
    for case in aclnn_cts.cases(operator, seed=1, n=12):
        outputs = conforming(case)
        assert aclnn_cts.check(operator, case.arguments, outputs).fault == ""
        for name in outputs:
            others = {other: array for other, array in outputs.items() if other != name}
            left = {**case.case.arguments, name: None}
            found = aclnn_cts.check(operator, case.arguments, others)
            if spec.parameter(name).may_be_left_out(left, case.case.target):
                # Another may have to be there in its place.
                assert not found.reason.startswith(f"{name} is missing")
            else:
                assert (found.fault, found.reason.partition(" is")[0]) == ("unwritten", name)
            faults.add(found.fault)
    assert "unwritten" in faults


def test_each_gradient_of_ada_layer_norm_is_judged_without_the_others() -> None:
    tensors = {name: np.ones((2, 3, 4), np.float32) for name in ("gradOut", "input")}
    rows = {name: np.ones((2, 3, 1), np.float32) for name in ("rstd", "mean")}
    inputs = {
        **tensors,
        **rows,
        "normalizedShape": [4],
        **dict.fromkeys(("scale", "shift"), np.ones((2, 4), np.float32)),
    }
    sums = np.full((2, 4), 3, np.float32)
    bias = np.full(4, 12, np.float32)
    assert aclnn_cts.check(OPTIONAL[0], inputs, {"gradShiftOut": sums, "gradBiasOut": bias}).ok
    assert aclnn_cts.check(OPTIONAL[0], inputs, {"gradShiftOut": sums + 1, "gradBiasOut": bias}).fault == "value"
    assert aclnn_cts.check(OPTIONAL[0], inputs, {"gradShiftOut": sums}).fault == "unwritten"


@pytest.mark.parametrize("operator", SCALARS)
def test_python_numbers_stand_for_scalars_of_the_dtypes_that_the_document_demands(operator: str) -> None:
    for case in aclnn_cts.cases(operator, seed=1, n=24):
        scalars = {name: value for name, value in case.case.arguments.items() if isinstance(value, Scalar)}
        assert all(isinstance(case.arguments[name], (bool, int, float)) for name in scalars)
        outputs = conforming(case)
        plain = aclnn_cts.check(operator, case.arguments, outputs)
        own = aclnn_cts.check(operator, {**case.arguments, **scalars}, outputs)
        assert (plain.verdict, plain.rule, plain.fault) == (own.verdict, "", "")


@pytest.mark.parametrize(("value", "rule"), [(1, ""), (1.0, ""), (True, ""), (0.5, "threshold.same_dtype")])
def test_a_number_that_the_demanded_dtype_does_not_hold_breaks_the_rule(value: float, rule: str) -> None:
    inputs = {"gradOutput": np.ones(3, np.int32), "self": np.arange(3, dtype=np.int32), "threshold": value}
    assert aclnn_cts.check("threshold_backward", inputs, np.array([0, 0, 1], np.int32)).rule == rule


def test_subclasses_of_arrays_are_arrays() -> None:
    inputs, out = call()
    matrix = inputs["output"].view(np.matrix)
    for array in (matrix, np.ma.masked_array(inputs["output"])):
        assert aclnn_cts.check("softmax_backward", {**inputs, "output": array}, out).ok


@pytest.mark.parametrize(
    ("name", "value"), [("normalized_shape", [8.5]), ("normalized_shape", "8"), ("output_mask", [1, 0, 3])]
)
def test_items_of_another_kind_are_refused(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=r"expected (integers|True and False)"):
        aclnn_cts.check("layer_norm_backward", {**layer_norm(), name: value}, {})


def test_call_without_outputs_says_that_nothing_was_compared() -> None:
    found = aclnn_cts.check("layer_norm_backward", {**layer_norm(), "output_mask": [False] * 3}, {})
    assert found.ok
    assert "nothing was compared" in found.reason


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_, np.complex64, ">f4", "U3"])
def test_output_in_a_dtype_that_the_document_does_not_list_fails(dtype: Any) -> None:
    inputs, out = call()
    found = aclnn_cts.check("softmax_backward", inputs, out.astype(dtype))
    assert (found.verdict, found.fault, found.rule) == ("fails", "dtype", "")
    assert f"out has the dtype {np.dtype(dtype)}, expected FLOAT (float32), FLOAT16 (float16) or BF16" in found.reason


def test_output_in_any_dtype_that_the_document_lists_conforms() -> None:
    inputs, out = call()
    assert aclnn_cts.check("softmax_backward", inputs, out.astype(np.float16)).ok


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16, np.bool_, np.complex64])
def test_right_gradients_in_another_dtype_than_the_input_fail(dtype: Any) -> None:
    inputs = layer_norm()
    outputs = {
        name: item.value.astype(np.float32)
        for name, item in aclnn_cts.expected("layer_norm_backward", inputs).outputs.items()
    }
    for name, output in outputs.items():
        found = aclnn_cts.check("layer_norm_backward", inputs, {**outputs, name: output.astype(dtype)})
        assert (found.verdict, found.fault) == ("fails", "dtype")
        assert found.reason == f"{name} has the dtype {np.dtype(dtype)}, expected FLOAT (float32)"


def test_outputs_of_inputs_that_break_a_rule_are_not_blamed() -> None:
    inputs, out = call()
    given: tuple[Any, ...] = (out, out.astype(np.int8), {})
    for outputs in given:
        found = aclnn_cts.check("softmax_backward", {**inputs, "grad_output": inputs["grad_output"][0]}, outputs)
        assert (found.verdict, found.rule) == ("inconclusive", "output.shape")
        assert "the inputs break the rule output.shape" in found.reason


def layer_norm() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((4, 8))
    mean, var = rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)
    return {
        "grad_out": generator.standard_normal((4, 8)).astype(np.float32),
        "input": rows.astype(np.float32),
        "normalized_shape": [8],
        "mean": mean.astype(np.float32),
        "rstd": (1 / np.sqrt(var + 1e-5)).astype(np.float32),
        "weight": np.ones(8, np.float32),
        "bias": np.zeros(8, np.float32),
        "output_mask": [True, True, True],
    }


def test_framework_names_stand_for_those_of_the_prototype() -> None:
    inputs = layer_norm()
    expected = aclnn_cts.expected("layer_norm_backward", inputs)
    outputs = {name: item.value.astype(np.float32) for name, item in expected.outputs.items()}
    assert set(outputs) == {"gradInputOut", "gradWeightOut", "gradBiasOut"}
    assert aclnn_cts.check("layer_norm_backward", inputs, outputs).ok
    assert aclnn_cts.check("layer_norm_backward", inputs, list(outputs.values())).ok


def test_expected_ends_are_what_check_accepts() -> None:
    inputs, _ = call((4, 16))
    expected = aclnn_cts.expected("softmax_backward", inputs)["out"]
    assert (np.abs(expected.upper - expected.value) <= expected.bound * (1 + 1e-9)).all()
    for end, inwards in ((expected.lower, np.inf), (expected.upper, -np.inf)):
        nearest = end.astype(np.float32)
        is_beyond = (nearest < end) if inwards > 0 else (nearest > end)
        inside = np.where(is_beyond, np.nextafter(nearest, np.float32(inwards)), nearest)
        assert aclnn_cts.check("softmax_backward", inputs, inside).ok
        assert not aclnn_cts.check("softmax_backward", inputs, np.nextafter(nearest, np.float32(-inwards))).ok


def test_torch_and_dlpack_give_what_numpy_gives() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    inputs, out = call(dtype=ml_dtypes.bfloat16)
    tensor = torch.from_numpy(out.view(np.int16)).view(torch.bfloat16)
    assert as_array(tensor).dtype == numpy_dtype("BF16")
    assert aclnn_cts.check("softmax_backward", inputs, tensor).ok

    plain, right_out = call()
    assert aclnn_cts.check("softmax_backward", plain, Dlpack(right_out)).ok


class Dlpack:
    """A tensor of which DLPack alone is known."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


def test_views_and_formats_that_numpy_cannot_read_are_read() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    plain = torch.tensor([1.0, -2.0])
    assert as_array(torch._neg_view(plain)).tolist() == [-1.0, 2.0]
    assert as_array(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]
    brain = as_array(Dlpack(plain.bfloat16()))
    assert (brain.dtype, brain.tolist()) == (numpy_dtype("BF16"), [1.0, -2.0])


def test_tensors_without_elements_to_read_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    inputs, out = call()
    for tensor in (torch.empty(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises(UsageError, match=r"gradOutput: Tensor of torch\.[a-z0-9]+ on \w+: "):
            aclnn_cts.check("softmax_backward", {**inputs, "grad_output": tensor}, out)


def test_check_needs_no_package_of_an_extra() -> None:
    program = (
        "import sys, numpy as np, aclnn_cts\n"
        "x = np.ones((2, 3), np.float32)\n"
        "assert aclnn_cts.check('tanh_backward', {'gradOutput': x, 'output': x * 0}, x).ok\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for name in ("pytest", "hypothesis", "rich", "click", "torch", "markdown_it", "selectolax"):
        assert f"'{name}'" not in done.stdout


def test_importing_the_package_imports_nothing_of_it() -> None:
    program = "import sys, aclnn_cts; print([name for name in sys.modules if name.startswith('aclnn_cts.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    stub = Path(aclnn_cts.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for name in PUBLIC:
        assert getattr(aclnn_cts, name) is not None
        assert f'"{name}"' in stub
    starred: dict[str, Any] = {}
    exec("from aclnn_cts import *", starred)  # noqa: S102 - a function cannot do it
    for name in (*PUBLIC, "__version__"):
        assert name in starred
        assert name in dir(aclnn_cts)
    assert aclnn_cts.UsageError is UsageError
    with pytest.raises(AttributeError):
        getattr(aclnn_cts, "nothing")  # noqa: B009 - no type has it
