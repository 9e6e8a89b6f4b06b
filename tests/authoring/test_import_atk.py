from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn_cts.authoring import import_atk as importing
from aclnn_cts.authoring.import_atk import AtkEntry, UnsupportedAtkError, atk_attribute, atk_data, import_atk
from aclnn_cts.core.case import Case, Data, Tensor
from aclnn_cts.core.case_json import case_to_json
from aclnn_cts.core.dtypes import components
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.trial import Trial
from aclnn_cts.generate.recipes import array
from aclnn_cts.speclang.load import load_specs
from aclnn_cts.store.case_files import read_case_file
from tests.support.ran import Ran

FIXTURE = Path(__file__).parents[1] / "fixtures" / "atk" / "softmax.json"
REAL = Path(__file__).parents[2].parent / "shared" / "atk"
NUMBERS = {
    "ConvTbcBackward": 205,
    "EmbeddingDenseBackward": 201,
    "RmsNormGrad": 197,
    "SoftmaxBackward": 202,
    "UpsampleNearestExact1dBackward": 208,
}
SPECS = load_specs()

real_files = pytest.mark.skipif(
    not REAL.is_dir(), reason="the five ATK files of the community lie beside the checkout, in ../shared/atk"
)


def entries(path: Path) -> list[AtkEntry]:
    return list(import_atk(path, SPECS, product_of=lambda spec: "atlas-a2"))


def case_of(entry: AtkEntry) -> Case:
    assert entry.content is not None, entry.reason
    return entry.content.case if isinstance(entry.content, Trial) else entry.content


def test_names_ranges_and_outputs() -> None:
    first, second, *others = entries(FIXTURE)
    case = case_of(first)
    assert (case.operator, case.product) == ("aclnnSoftmaxBackward", "atlas-a2")
    grad, output, out = (case.arguments[name] for name in ("gradOutput", "output", "out"))
    assert isinstance(grad, Tensor)
    assert isinstance(output, Tensor)
    assert grad.data is not None
    assert (grad.data.recipe, grad.data.seed) == ("normal", 7)
    assert -2 <= (grad.data.mean or 0) <= 2
    assert 1 <= (grad.data.std or 0) <= 3
    values = array(output, arrays={}, name="output").astype(np.float64)
    assert -0.1001 <= values.min() < values.max() <= 0.2501
    assert case.arguments["dim"] == -1
    assert out == Tensor((3, 4), "FLOAT16")
    assert (case.origin.kind, case.origin.source) == ("atk", "softmax.json, id 7, acc single_bm")
    empty = case_of(second)
    assert empty.arguments["output"] == Tensor((2, 0), "FLOAT", "NCHW", data=Data(recipe="constant", mean=-math.inf))
    assert empty.arguments["dim"] in (0, 1)
    unknown = "aclnn_name: 'SoftmaxBackwardV2': there is no spec of aclnnSoftmaxBackwardV2"
    assert [(entry.id, entry.reason) for entry in others] == [
        ("9", f"{unknown}; did you mean 'aclnnSoftmaxBackward'?"),
        ("10", "gradOutput: range_values ['-inf', 'inf']: no recipe for it"),
    ]


def test_the_same_file_gives_the_same_cases() -> None:
    assert entries(FIXTURE) == entries(FIXTURE)


REPLACED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "EmbeddingDenseBackward": (
        [
            {"name": "grad", "type": "tensor", "dtype": "bf16", "shape": [2, 3, 4], "range_values": [-5, 5]},
            {"name": "indices", "type": "tensor", "dtype": "int32", "shape": [2, 3], "range_values": ["nan"]},
            {"name": "numWeights", "type": "attr", "dtype": "int", "shape": None, "range_values": [1, 100]},
            {"name": "paddingIdx", "type": "attr", "dtype": "int", "shape": None, "range_values": 0},
            {"name": "scaleGradByFreq", "type": "attr", "dtype": "bool", "shape": None, "range_values": [True]},
        ],
        {"paddingIdx": {"int": 0}, "scaleGradByFreq": {"bool": True}},
    ),
    "UpsampleNearestExact1dBackward": (
        [
            {"name": "input", "type": "tensor", "dtype": "fp16", "shape": [2, 3, 4], "range_values": ["inf"]},
            {"name": "mode", "type": "attr", "dtype": "string", "shape": None, "range_values": "nearest-exact"},
            {"name": "size", "type": "attr", "dtype": "int", "shape": None, "range_values": 9},
            [{"name": "outputSize_int", "type": "attrs", "dtype": "int", "shape": None, "range_values": 1}],
            {"name": "scalesH_double", "type": "attr", "dtype": "float", "shape": None, "range_values": 7},
            {"name": "format", "type": "attr", "dtype": "string", "shape": None, "range_values": "NCL"},
        ],
        {
            "gradOutput": {
                "tensor": {
                    "shape": [2, 3, 9],
                    "dtype": "FLOAT16",
                    "format": "ND",
                    "data": {"recipe": "constant", "mean": 1.0},
                }
            },
            "outputSizeOptional": {"int_array": [9]},
            "inputSize": {"int_array": [2, 3, 4]},
            "scalesOptional": {"double": 0.0},
            "out": {"tensor": {"shape": [2, 3, 4], "dtype": "FLOAT16", "format": "ND"}},
        },
    ),
    "RmsNormGrad": (
        [
            {"name": "dy", "type": "tensor", "dtype": "fp16", "shape": [2, 3, 4], "range_values": 1},
            {"name": "input", "type": "tensor", "dtype": "fp16", "shape": [2, 3, 4], "range_values": 2},
            {"name": "rstd", "type": "tensor", "dtype": "fp32", "shape": [2, 3, 1], "range_values": 3},
            {"name": "gamma", "type": "tensor", "dtype": "fp16", "shape": [4], "range_values": 4},
        ],
        {
            "x": {
                "tensor": {
                    "shape": [2, 3, 4],
                    "dtype": "FLOAT16",
                    "format": "ND",
                    "data": {"recipe": "constant", "mean": 2.0},
                }
            },
            "dxOut": {"tensor": {"shape": [2, 3, 4], "dtype": "FLOAT16", "format": "ND"}},
            "dgammaOut": {"tensor": {"shape": [4], "dtype": "FLOAT", "format": "ND"}},
        },
    ),
    "ConvTbcBackward": (
        [
            {"name": "self", "type": "tensor", "dtype": "fp32", "shape": [4, 2, 5], "range_values": 1},
            {"name": "input", "type": "tensor", "dtype": "fp32", "shape": [6, 2, 3], "range_values": 1},
            {"name": "weight", "type": "tensor", "dtype": "fp32", "shape": [3, 3, 5], "range_values": 1},
            {"name": "bias", "type": "tensor", "dtype": "fp32", "shape": [5], "range_values": 1},
            {"name": "pad", "type": "attr", "dtype": "int", "shape": None, "range_values": 0},
            {"name": "cubeMathType", "type": "attr", "dtype": "int", "shape": None, "range_values": 0},
            {"name": "format", "type": "attr", "dtype": "non_param", "shape": None, "range_values": "NCL"},
        ],
        {"gradWeight": {"tensor": {"shape": [3, 3, 5], "dtype": "FLOAT", "format": "ND"}}},
    ),
}


VALID = ("EmbeddingDenseBackward", "UpsampleNearestExact1dBackward")
"""Operators whose case the document supports."""


@pytest.fixture(name="imported")
def import_document(tmp_path: Path) -> Callable[[Any], list[AtkEntry]]:
    def imported(document: Any) -> list[AtkEntry]:
        path = tmp_path / "atk_x.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return entries(path)

    return imported


@pytest.mark.parametrize("operator", REPLACED)
def test_what_executors_put_in_place(operator: str, imported: Callable[[Any], list[AtkEntry]]) -> None:
    inputs, expected = REPLACED[operator]
    [entry] = imported([{"id": 0, "aclnn_name": operator, "inputs": inputs}])
    # Formats and axes about which the document contradicts itself are judged by their values.
    assert isinstance(entry.content, Case) == (operator in VALID)
    arguments = json.loads(json.dumps(case_to_json(case_of(entry))))["arguments"]
    assert {name: arguments[name] for name in expected} == expected
    if operator == "EmbeddingDenseBackward":
        rows = arguments["numWeights"]["int"]
        assert 1 <= rows <= 100
        assert arguments["indices"]["tensor"]["dtype"] == "INT64"
        assert arguments["indices"]["tensor"]["data"]["high"] == rows
        assert arguments["out"]["tensor"]["shape"] == [rows, 4]


def changed(position: int, **fields: Any) -> list[Any]:
    document = copy.deepcopy(json.loads(FIXTURE.read_text(encoding="utf-8"))[:1])
    document[0]["inputs"][position] |= fields
    return [document]


MISTAKES: list[tuple[Any, str]] = [
    (3, "no object with a list of inputs"),
    ({"aclnn_name": "SoftmaxBackward", "inputs": 1}, "no object with a list of inputs"),
    ({"inputs": []}, "aclnn_name: missing; which operator it is for is not said"),
    ({"aclnn_name": "SoftmaxBackward", "inputs": []}, "gradOutput: the case has no such input"),
    ({"aclnn_name": "SoftmaxBackward", "inputs": [[]]}, "inputs[0]: no object, and no list of them"),
    ({"aclnn_name": "SoftmaxBackward", "inputs": [{}]}, "inputs[0]: has no name, so that its parameter is not known"),
    (
        {"aclnn_name": "SoftmaxBackward", "inputs": [], "expected_error_msg": "161002"},
        "it expects an error message, which no document promises",
    ),
    (changed(0, name="gradOut"), "gradOut: no parameter of aclnnSoftmaxBackward; did you mean 'gradOutput'?"),
    (changed(1, name="gradOutput"), "inputs[1]: 'gradOutput' stands twice"),
    (changed(0, type="tensors"), "gradOutput: type 'tensors' is not one that case files have"),
    (changed(0, type="attr"), "gradOutput: type 'attr'; the prototype has const aclTensor *"),
    (changed(0, dtype="fp8"), "gradOutput: dtype 'fp8' is not known"),
    (
        changed(0, dtype="complex64", range_values=1),
        "gradOutput: range_values 1: whether re and im are both meant is not known",
    ),
    (changed(0, shape=None), "gradOutput: shape None is no list of integers"),
    (
        changed(0, shape=[2, 2**63], range_values=1),
        "case: $.arguments.gradOutput: 9223372036854775808; expected int64_t",
    ),
    (changed(0, outlier_values=[0.001, 1000]), "gradOutput: outlier_values: no recipe for outliers"),
    (changed(0, range_values=["null"]), "gradOutput: range_values ['null']: no recipe for it"),
    (changed(0, range_values=[1, 2, 3]), "gradOutput: range_values [1, 2, 3]: no recipe for it"),
    (
        changed(0, range_values={"name": "beta"}),
        "gradOutput: range_values {'name': 'beta'}: no recipe for it in FLOAT16",
    ),
    (changed(2, range_values="last"), "dim: range_values 'last': no value for the C type int64_t"),
    (changed(2, range_values=2**70), "$.arguments.dim"),
]


@pytest.mark.parametrize(("entry", "reason"), MISTAKES)
def test_what_is_not_carried_over_has_its_reason(
    entry: Any,
    reason: str,
    imported: Callable[[Any], list[AtkEntry]],
) -> None:
    [found] = imported(entry[0] if isinstance(entry, list) else [entry])
    assert found.content is None
    assert reason in found.reason


@pytest.mark.parametrize("text", ["{}", "", "[", '{"cases": []}'])
def test_a_file_that_is_no_list_of_cases(text: str, tmp_path: Path) -> None:
    path = tmp_path / "atk.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"atk\.json"):
        entries(path)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# a page", encoding="utf-8")
    with pytest.raises(UsageError, match=r"README\.md: not valid JSON .*; expected an ATK case file"):
        entries(path)


def test_a_file_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "DOCUMENT_BYTES", 10)
    with pytest.raises(UsageError, match="longer than 10 bytes"):
        entries(FIXTURE)


@pytest.mark.parametrize(
    ("ranges", "dtype", "low", "high"),
    [
        ([-5, 5], "FLOAT", -5, 5),
        ([-0.1, 0.1], "FLOAT", -0.1, 0.1),
        ([1e-9, 2e-9], "DOUBLE", 1e-9, 2e-9),
        ([-3, 9], "INT32", -3, 9),
        ([0.5, 3.5], "INT8", 1, 3),
        (7, "INT64", 7, 7),
        (-2.5, "BF16", -2.5, -2.5),
        ([-2, 3], "COMPLEX64", -2, 3),
    ],
)
def test_ranges_are_kept(ranges: object, dtype: str, low: float, high: float) -> None:
    data = atk_data(ranges, dtype=dtype, seed=3, name="x")
    values = components(array(Tensor((1000,), dtype, data=data), arrays={}, name="x")).astype(np.float64)
    # Rounding to the dtype may take a bound's neighbour over it.
    reach = 2.0**-7 * max(abs(low), abs(high)) if dtype in ("FLOAT", "BF16") else 0
    assert low - reach <= values.min() <= values.max() <= high + reach
    assert low == high or values.max() - values.min() > 0.6 * (high - low)


def test_attributes() -> None:
    assert atk_attribute(-1, kind="int", c_type="uint64_t", seed=0, name="x") == 2**64 - 1
    assert atk_attribute("inf", kind="double", c_type="double", seed=0, name="x") == math.inf
    assert atk_attribute([2, 2], kind="double", c_type="double", seed=0, name="x") == 2.0
    drawn = {atk_attribute([1, 6], kind="int", c_type="int64_t", seed=seed, name="x") for seed in range(99)}
    assert drawn <= {1, 2, 3, 4, 5, 6}
    assert len(drawn) > 3
    with pytest.raises(UnsupportedAtkError):
        atk_attribute(True, kind="int", c_type="int64_t", seed=0, name="x")  # noqa: FBT003 - the value under test


@pytest.mark.parametrize(
    ("ranges", "truth"),
    [
        (["nan"], True),
        (["inf"], True),
        ("-inf", True),
        (-1, True),
        ([0.5], True),
        (0, False),
        (-0.0, False),
        (True, True),
        ([False], False),
    ],
)
def test_a_bool_is_what_c_makes_of_a_number(ranges: object, *, truth: bool) -> None:
    value = atk_attribute(ranges, kind="bool", c_type="bool", seed=0, name="x")
    assert value is truth
    data = atk_data(ranges, dtype="BOOL", seed=0, name="x")
    assert array(Tensor((3,), "BOOL", data=data), arrays={}, name="x").tolist() == [truth] * 3


@pytest.mark.parametrize("ranges", ["null", "true", None, [1, 2, 3]])
def test_a_bool_takes_no_words(ranges: object) -> None:
    with pytest.raises(UnsupportedAtkError, match=r"scale: range_values .*: no value for the C type bool"):
        atk_attribute(ranges, kind="bool", c_type="bool", seed=0, name="scale")


def test_cases_whose_bool_is_no_bool_and_whose_format_is_not_sent_are_judged(
    ran: Callable[..., Ran], tmp_path: Path
) -> None:
    """Each ends in a verdict: a nan, an infinity or -1 for scaleGradByFreq, and NCL for tensors that are sent in ND."""
    cases = []
    for number, (operator, name, value) in enumerate(
        (
            ("EmbeddingDenseBackward", "scaleGradByFreq", ["nan"]),
            ("EmbeddingDenseBackward", "scaleGradByFreq", ["-inf"]),
            ("EmbeddingDenseBackward", "scaleGradByFreq", -1),
            ("UpsampleNearestExact1dBackward", "format", "NCL"),
        )
    ):
        inputs = copy.deepcopy(REPLACED[operator][0])
        next(item for item in inputs if isinstance(item, dict) and item["name"] == name)["range_values"] = value
        cases.append({"id": number, "aclnn_name": operator, "inputs": inputs})
    path = tmp_path / "atk.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    assert ran("import-atk", str(path), out=Path("cases.jsonl")).code == 0
    assert ran("run", "--cases", "cases.jsonl", "--adapter", "reference").kinds == ["passed"] * 4


def test_the_command(ran: Callable[..., Ran]) -> None:
    found = ran("import-atk", str(FIXTURE), "--json", out=Path("cases.jsonl"))
    assert found.code == 0
    assert [json.loads(line) for line in found.out.splitlines()][-1] == {
        "file": str(FIXTURE),
        "cases": 4,
        "imported": 2,
        "not_carried_over": 2,
    }
    assert len(list(read_case_file(found.path))) == 2
    judged = ran("run", "--cases", "cases.jsonl", "--adapter", "reference")
    assert judged.kinds == ["passed", "passed"]
    assert ran("import-atk", str(FIXTURE), out=Path("cases.json")).err == (
        "error: -o cases.json: expected a name that ends in .jsonl, since it holds one case a line\n"
    )


@real_files
def test_every_real_case_is_imported_or_listed(tmp_path: Path) -> None:
    reasons: Counter[str] = Counter()
    for operator, number in NUMBERS.items():
        found = entries(REAL / f"atk_aclnn{operator}.json")
        assert len(found) == number
        assert {case_of(entry).operator for entry in found if entry.content is not None} == {f"aclnn{operator}"}
        reasons.update(entry.reason.partition(":")[0] for entry in found if entry.content is None)
    assert not reasons


@real_files
def test_every_real_upsample_case_is_valid() -> None:
    """The executor sends ND, whatever the case says of the format."""
    found = entries(REAL / "atk_aclnnUpsampleNearestExact1dBackward.json")
    assert Counter(type(entry.content) for entry in found) == {Case: 208}


@real_files
@pytest.mark.parametrize("adapter", ["reference", "torch"])
@pytest.mark.slow
def test_the_real_cases_pass_where_they_are_small(adapter: str, ran: Callable[..., Ran]) -> None:
    ran("import-atk", *map(str, sorted(REAL.glob("*.json"))), out=Path("cases.jsonl"))
    judged = ran("run", "--cases", "cases.jsonl", "--adapter", adapter, "--max-bytes", "16384")
    result = judged.result
    assert (result["failed"] - result["waived"], result["errors"]) == (0, 0)
    # A case that is too large for the limit is a chosen case without a verdict.
    assert (judged.code, result["verdict"]) == (3, "inconclusive")
    ends = Counter(
        f"{record.verdict.result} {record.verdict.kind if record.verdict.result == 'skipped' else ''}".strip()
        for record in judged.records
        if record.trial.case.origin.kind == "atk"
    )
    assert ends["skipped too large"] == 761
    expected = {"passed", "skipped too large", "skipped open"}
    assert set(ends) <= (expected if adapter == "reference" else {*expected, "failed"})
    assert sum(ends.values()) == 1013
