"""One message for each wrong input, with the exit code that the contract gives it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from aclnn_cts.cli.main import main
from tests.cli.conftest import named

Call = Callable[..., Any]


@named(
    "arguments",
    [
        ("no_command", ()),
        ("unknown_command", ("validat",)),
        ("unknown_subcommand", ("spec", "lnt")),
        ("unknown_option", ("ops", "--jsn")),
        ("missing_argument", ("validate",)),
        ("unknown_operator", ("clauses", "softmax_backwards")),
        ("unknown_operator_of_cases", ("cases", "aclnnSoftmaxBackwad")),
        ("unknown_product", ("cases", "softmax_backward", "--product", "atlas-a4")),
        ("unsupported_product", ("spec", "show", "conv_tbc_backward", "--product", "atlas-inference")),
        ("unknown_kind", ("cases", "softmax_backward", "--kind", "valid,boundry")),
        ("no_kind", ("cases", "softmax_backward", "--kind", "")),
        ("count_too_small", ("cases", "softmax_backward", "-n", "0")),
        ("count_no_number", ("cases", "softmax_backward", "-n", "many")),
        ("seed_too_large", ("cases", "softmax_backward", "--seed", "18446744073709551616")),
        ("size_without_unit", ("run", "softmax_backward", "--adapter", "reference", "--max-bytes", "4M")),
        ("size_of_disk", ("fuzz", "softmax_backward", "--adapter", "reference", "--max-disk", "0GiB")),
        ("size_of_a_shrunk_call", ("shrink", "x.json", "--adapter", "reference", "--max-bytes", "4Mb")),
        ("unknown_language", ("clauses", "--lang", "fr")),
        ("no_spec_folder", ("ops", "--specs", "nowhere")),
        ("output_without_folder", ("cases", "softmax_backward", "-n", "1", "-o", "nowhere/cases.jsonl")),
        ("output_is_folder", ("cases", "softmax_backward", "-n", "1", "-o", ".")),
        ("missing_file", ("validate", "nowhere.json")),
        ("folder_as_file", ("validate", ".")),
        ("lint_missing_file", ("spec", "lint", "nowhere.yaml")),
        ("lint_folder", ("spec", "lint", ".")),
    ],
)
def test_command_line(call: Call, snapshot: SnapshotAssertion, arguments: tuple[str, ...]) -> None:
    called = call(*arguments)
    assert called.code == 2
    assert called.out == ""
    assert called == snapshot


@named(
    "content",
    [
        ("empty", b""),
        ("malformed", b'{"format": "aclnn-cts/case/1", "operator": '),
        ("binary", bytes(range(128, 256))),
        ("not_utf8", '{"format": "ä"}'.encode("latin-1")),
        ("a_list", b"[]"),
        ("no_format", b'{"operator": "aclnnSoftmaxBackward"}'),
        ("deep", b"[" * 100_000),
    ],
)
def test_file_that_is_no_case(call: Call, snapshot: SnapshotAssertion, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "case.json").write_bytes(content)
    called = call("validate", "case.json")
    assert called.code == 2
    assert called == snapshot


def _set(*path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(case: dict[str, Any]) -> None:
        place = case
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


@named(
    ("operator", "change"),
    [
        ("operator", "softmax_backward", _set("operator", value="aclnnSoftmaxBackwards")),
        ("product", "softmax_backward", _set("product", value="atlas-a9")),
        ("product_no_string", "softmax_backward", _set("product", value=2)),
        ("int8_range", "conv_tbc_backward", _set("arguments", "cubeMathType", value={"int": 300})),
        ("uint64_range", "embedding_dense_backward", _set("arguments", "paddingIdx", value={"int": -1})),
        ("int64_range", "softmax_backward", _set("arguments", "dim", value={"int": 2**63})),
        ("int_as_double", "softmax_backward", _set("arguments", "dim", value={"double": 1.0})),
        ("null_integer", "softmax_backward", _set("arguments", "dim", value=None)),
        ("tensor_as_int", "softmax_backward", _set("arguments", "out", value={"int": 1})),
        ("bare_number", "softmax_backward", _set("arguments", "dim", value=1)),
        ("unknown_key", "softmax_backward", _set("argument", value={})),
        ("unknown_argument", "softmax_backward", _set("arguments", "dims", value={"int": 1})),
        ("unknown_tensor_key", "softmax_backward", _set("arguments", "out", "tensor", "dtpye", value="FLOAT")),
        ("unknown_dtype", "softmax_backward", _set("arguments", "out", "tensor", "dtype", value="FLOAT32")),
        ("unknown_format", "softmax_backward", _set("arguments", "out", "tensor", "format", value="NDD")),
        (
            "too_few_values",
            "softmax_backward",
            _set("arguments", "output", "tensor", value={"shape": [2], "dtype": "FLOAT", "data": {"values": [1]}}),
        ),
        (
            "unknown_recipe",
            "softmax_backward",
            _set("arguments", "output", "tensor", "data", value={"recipe": "sofmtax", "seed": 1}),
        ),
        (
            "unread_recipe_parameter",
            "softmax_backward",
            _set("arguments", "output", "tensor", "data", value={"recipe": "zeros", "low": 1}),
        ),
        (
            "values_of_a_negative_size",
            "softmax_backward",
            _set("arguments", "output", "tensor", value={"shape": [-2, 3], "dtype": "FLOAT", "data": {"values": [1]}}),
        ),
        ("unknown_call_key", "softmax_backward", _set("call", value={"phase": 1})),
    ],
)
def test_case_that_does_not_fit(
    call: Call,
    snapshot: SnapshotAssertion,
    tmp_path: Path,
    operator: str,
    change: Callable[[dict[str, Any]], None],
) -> None:
    case = json.loads(call("cases", operator, "--kind", "valid", "-n", "1").out)
    change(case)
    (tmp_path / "case.json").write_text(json.dumps(case))
    called = call("validate", "case.json")
    assert called.code == 2
    assert called.out == ""
    assert called == snapshot


def test_argument_left_out(call: Call, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    case = json.loads(call("cases", "softmax_backward", "--kind", "valid", "-n", "1").out)
    del case["arguments"]["dim"]
    (tmp_path / "case.json").write_text(json.dumps(case))
    assert call("validate", "case.json") == snapshot


def test_a_line_of_many_is_named(call: Call, tmp_path: Path) -> None:
    case = call("cases", "softmax_backward", "--kind", "valid", "-n", "1").out
    (tmp_path / "cases.jsonl").write_text(case + "{}\n" + case + "no JSON\n" + case)
    called = call("validate", "cases.jsonl", "--json")
    assert called.code == 2
    assert [line["file"] for line in called.lines] == [f"cases.jsonl:{number}" for number in (1, 3, 5)]
    assert called.err.startswith("error: cases.jsonl:2: ")
    assert "error: cases.jsonl:4: not valid JSON" in called.err
    assert "3 cases answered, 2 mistakes in the files" in called.err


def test_a_file_that_cannot_be_written(call: Call) -> None:
    unwritable = Path("/proc/aclnn-cts.jsonl")
    if not unwritable.parent.is_dir():
        pytest.skip("no folder here that refuses files to everybody")
    called = call("cases", "softmax_backward", "-n", "1", "-o", str(unwritable))
    assert called.code == 3
    assert called.err.startswith(f"error: {unwritable}: cannot be written: ")


@pytest.mark.parametrize("traceback", ["", "1"], ids=["message", "traceback"])
def test_an_unexpected_exception(
    call: Call, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion, traceback: str
) -> None:
    def fail(_folders: object) -> None:
        raise LookupError("what nobody\nthought of")

    monkeypatch.setattr("aclnn_cts.cli.ops.load_specs", fail)
    monkeypatch.setenv("ACLNN_CTS_TRACEBACK", traceback)
    called = call("ops")
    assert called.code == 3
    assert ("Traceback" in called.err) == bool(traceback)
    if not traceback:
        assert called == snapshot


def test_interruption(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_folders: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("aclnn_cts.cli.ops.load_specs", interrupt)
    assert call("ops") == (130, "", "error: interrupted\n")


def test_exit_is_left_to_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(_folders: object) -> None:
        raise SystemExit(7)

    monkeypatch.setattr("aclnn_cts.cli.ops.load_specs", leave)
    with pytest.raises(SystemExit):
        main(["ops"])
