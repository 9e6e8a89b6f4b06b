"""Calls that other programs have dumped become cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.training.dumped import read_dumped
from tests.cli.conftest import Called
from tests.training.calls import GRAD, LAYER_NORM

REAL = Path(__file__).parents[3] / "shared" / "real-calls"
COVERED = ("native_layer_norm_backward", "avg_pool2d_backward", "max_pool2d_with_indices_backward", "gelu_backward")


def dumped(folder: Path, *calls: Any) -> Path:
    path = folder / "calls.jsonl"
    path.write_text("\n".join(json.dumps(call) for call in calls), encoding="utf-8")
    return path


def test_a_call_by_parameter_names_becomes_a_case(tmp_path: Path) -> None:
    [entry] = read_dumped(dumped(tmp_path, LAYER_NORM))
    assert entry.case is not None
    grad = entry.case.tensor("gradOut")
    assert grad is not None
    assert (grad.shape, grad.dtype) == ((8, 16), "FLOAT")
    assert grad.data is not None
    assert isinstance(entry.case.arguments["gradWeightOut"], Tensor)


def test_a_call_of_aten_becomes_a_case(tmp_path: Path) -> None:
    kwargs = {"grad_output": GRAD, "output": {"tensor": GRAD}}
    by_name, by_place = (
        {"function": "aten::tanh_backward", "kwargs": kwargs, "models": 3},
        {"function": "tanh_backward", "args": list(kwargs.values())},
    )
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    first, second = read_dumped(dumped(tmp_path, by_name, by_place))
    assert first.case is not None
    assert second.case is not None
    assert first.case.operator == second.case.operator == "aclnnTanhBackward"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"operator": "nothing"}, "nothing"),
        ({"function": "aten::mm", "kwargs": {}}, "no operator with a spec is bound"),
        ({"operator": "tanh_backward", "arguments": {"x": GRAD}}, "takes"),
        ({"operator": "tanh_backward", "arguments": {"output": {"shape": [2], "dtype": "qint9"}}}, "qint9"),
        ({"operator": "tanh_backward", "arguments": {"output": {"shape": [-1], "dtype": "f32"}}}, "shape"),
        ({"operator": "tanh_backward", "arguments": {"output": {"dtype": "f32"}}}, "shape"),
        ([1, 2], "object"),
    ],
)
def test_a_line_that_fits_no_operator_has_a_reason(call: Any, reason: str, tmp_path: Path) -> None:
    [entry] = read_dumped(dumped(tmp_path, call))
    assert entry.case is None
    assert reason in entry.reason


def test_imported_calls_run(call: Callable[..., Called], tmp_path: Path) -> None:
    imported = call("import-calls", str(dumped(tmp_path, LAYER_NORM)), "-o", "cases.jsonl")
    assert imported.code == 0
    assert "1 of 1 calls" in imported.err
    ran = call("run", "--cases", "cases.jsonl", "--adapter", "reference", "-o", "out")
    assert "verdict=conforms" in ran.out, ran.out + ran.err


def test_lines_that_are_left_out_or_break_a_rule_are_named(call: Callable[..., Called], tmp_path: Path) -> None:
    integers = {"shape": [8, 16], "dtype": "int32"}
    negative = {"shape": [8, -16], "dtype": "f32"}
    path = dumped(
        tmp_path,
        {"operator": "tanh_backward", "arguments": {"gradOutput": integers, "output": integers}},
        {"operator": "tanh_backward", "arguments": {"gradOutput": negative, "output": GRAD}},
        {"operator": "softmax_backward", "arguments": {"gradOutput": GRAD, "dim": -1}},
        *[{"operator": "nothing"}] * 12,
    )
    imported = call("import-calls", str(path), "-o", "cases.jsonl")
    assert imported.code == 3
    assert "not valid: line 1: breaks the rule gradOutput.dtype" in imported.err
    assert (
        "not carried over: line 2: arguments: gradOutput: shape [8, -16]; expected sizes of 0 or more" in imported.err
    )
    assert "line 3: breaks the rule output.null" in imported.err
    assert "not carried over: line 4: " in imported.err
    assert "not carried over: 3 more lines" in imported.err
    assert "2 of 15 calls" in imported.err


@pytest.mark.parametrize("function", COVERED)
def test_calls_of_real_trainings_are_imported(function: str, tmp_path: Path) -> None:
    path = REAL / f"{function}.jsonl"
    if not path.is_file():
        pytest.skip("the calls of real trainings are no part of this repository")
    pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")
    lines = path.read_text(encoding="utf-8").splitlines()[:20]
    entries = list(read_dumped(dumped(tmp_path, *({"function": function, **json.loads(line)} for line in lines))))
    assert [entry.reason for entry in entries if entry.case is None] == []


def test_strides_of_a_dumped_tensor_are_kept(tmp_path: Path) -> None:
    laid_out = {"shape": [4, 6], "dtype": "f32", "stride": [1, 4]}
    kwargs = {"grad_output": {"tensor": laid_out}, "output": {"tensor": {"shape": [4, 6], "dtype": "f32"}}}
    [entry] = read_dumped(dumped(tmp_path, {"function": "tanh_backward", "kwargs": kwargs}))
    assert entry.case is not None
    grad, output = (entry.case.tensor(name) for name in ("gradOutput", "output"))
    assert grad is not None
    assert (grad.strides, grad.storage_shape) == ((1, 4), (24,))
    assert output is not None
    assert output.strides is None
