"""A test that is exported: it needs nothing of ours, passes what conforms and fails what does not."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from aclnn_cts.candidates.export import export_pytest
from aclnn_cts.cli.main import main
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import load_specs

KERNELS = """
import numpy as np

def named(dtypes):
    return {"bfloat16": np.dtype("float32")}.get(dtypes["out"]) or np.dtype(dtypes["out"])

def bits(gradOutput, output, dim, dtypes):
    result = right(gradOutput, output, dim, dtypes)
    if dtypes["out"] == "bfloat16":
        result = ((result.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)
    return result

def of_torch(gradOutput, output, dim, dtypes):
    import torch
    grad, y = gradOutput.float(), output.float()
    return (y * (grad - (grad * y).sum(dim, keepdim=True))).to(getattr(torch, dtypes["out"]))

def wide_of_torch(gradOutput, output, dim, dtypes):
    return of_torch(gradOutput, output, dim, dtypes).double()

def right(gradOutput, output, dim, dtypes):
    grad, y = gradOutput.astype(np.float32), output.astype(np.float32)
    return (y * (grad - (grad * y).sum(axis=dim, keepdims=True))).astype(named(dtypes))

def wrong(gradOutput, output, dim, dtypes):
    return right(gradOutput, output, dim, dtypes) + np.ones((), named(dtypes))

def wide(gradOutput, output, dim, dtypes):
    return right(gradOutput, output, dim, dtypes).astype(np.float64)

def empty(gradOutput, output, dim):
    return {}

def flat(gradOutput, output, dim, dtypes):
    return right(gradOutput, output, dim, dtypes).reshape(-1)

def lstm(**arguments):
    return {}
"""


PROGRAM = """
import os, sys, pytest
file, *functions = sys.argv[1:]
for function in functions:
    os.environ["IMPLEMENTATION"] = function
    code = pytest.main(["-q", "-p", "no:cacheprovider", file])
    print(f"{int(code)}\\f", end="", flush=True)
"""


def run_pytest(folder: Path, stem: str, *functions: str) -> list[tuple[int, str]]:
    """The exit code and output of pytest on the exported test, for each function.

    The process can import neither this package nor ml_dtypes.
    """
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    for name in ("aclnn_cts", "ml_dtypes"):
        (folder / f"{name}.py").write_text("raise ImportError('it is not there')\n", encoding="utf-8")
    words = [f"kernels:{function}" if function else "" for function in functions]
    command = [sys.executable, "-c", PROGRAM, f"test_{stem}.py", *words]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=300)
    shown = [text.rpartition("\n") for text in ran.stdout.split("\f")[:-1]]
    assert len(shown) == len(functions)
    return [(int(code), text) for text, _, code in shown]


def test_a_right_function_passes_and_a_wrong_one_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "softmax_backward", "-n", "12", "-o", str(tmp_path)]) == 0
    with np.load(tmp_path / "softmax_backward.npz") as arrays:
        assert b'"bfloat16"' in arrays["cases"].tobytes()
    assert "12 calls" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"test_softmax_backward.py", "softmax_backward.npz"}
    functions = ("right", "bits", "wrong", "wide", "empty", "flat", "")
    right, bits, wrong, wide, empty, flat, unnamed = run_pytest(tmp_path, "softmax_backward", *functions)
    for code, text in (right, bits):
        assert (code, "12 passed" in text) == (0, True), text
    for (code, text), said in (
        (wrong, "expected from"),
        (wide, "out has the dtype float64, expected float"),
        (empty, "the result lacks out; it has nothing"),
        (flat, "has the shape"),
        (unnamed, "IMPLEMENTATION=module:function names"),
    ):
        assert (code, said in text) == (1, True), text


def test_a_function_on_torch_gets_and_returns_tensors(tmp_path: Path) -> None:
    assert main(["export", "softmax_backward", "-n", "12", "--arrays", "torch", "-o", str(tmp_path)]) == 0
    (code, right), (_, wide) = run_pytest(tmp_path, "softmax_backward", "of_torch", "wide_of_torch")
    assert (code, "12 passed" in right) == (0, True), right
    assert "out has the dtype float64, expected bfloat16" in wide


@pytest.fixture(name="exported", scope="module")
def make_exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("exported")
    made = export_pytest("swiglu_backward_mx_quant_with_dual_axis", n=4, max_elements=20_000)
    (folder / f"{made.stem}.npz").write_bytes(made.data)
    (folder / f"test_{made.stem}.py").write_bytes(made.module)
    spec = importlib.util.spec_from_file_location("exported", folder / f"test_{made.stem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_conversions_of_an_exported_test_are_those_of_the_dtypes(exported: Any) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    expected = every.view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(exported.values_of(every, "bfloat16"), expected)
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
    halfway = (every.astype(np.uint32) << 16) | 0x8000
    for values in (drawn.view(np.float32), halfway.view(np.float32)):
        rounded = exported.rounded(values, "bfloat16")
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(rounded, values.astype(ml_dtypes.bfloat16).astype(np.float32))
    codes = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fn", "float8_e8m0fnu"):
        of_code = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
        np.testing.assert_array_equal(exported.values_of(codes, name), of_code)
        np.testing.assert_array_equal(exported.rounded(of_code, name), of_code)
    with pytest.raises(AssertionError, match=r"1\.0\d* is no number of float8_e4m3fn"):
        exported.rounded(np.array([1.0, 1.03], np.float32), "float8_e4m3fn")


def test_the_order_of_results_has_outputs_alone() -> None:
    text = export_pytest("add_layer_norm_grad", n=1).module.decode()
    [order] = re.findall(r'^ORDER = json.loads\("""(.*)"""\)$', text, re.MULTILINE)
    assert tuple(json.loads(order)) == load_specs()["aclnnAddLayerNormGrad"].outputs


def test_equal_seeds_give_equal_files() -> None:
    first, again, other = (export_pytest("tanh_backward", n=3, seed=seed) for seed in (1, 1, 2))
    assert (first.module, first.data) == (again.module, again.data)
    assert first.data != other.data


@pytest.mark.parametrize("op", ["gru_backward", "nll_loss_backward", "sigmoid_backward", "deformable_conv2d_backward"])
def test_lists_indices_and_complex_numbers_are_exported(op: str, tmp_path: Path) -> None:
    made = export_pytest(op, n=2, max_elements=20_000)
    (tmp_path / f"test_{made.stem}.py").write_bytes(made.module)
    (tmp_path / f"{made.stem}.npz").write_bytes(made.data)
    [(_, text)] = run_pytest(tmp_path, made.stem, "lstm")
    assert "the result lacks " in text, "the function was called, and returned nothing"
    with np.load(tmp_path / f"{made.stem}.npz", allow_pickle=False) as arrays:
        assert any(name.endswith("/value") for name in arrays)


def test_a_limit_below_every_call_is_told() -> None:
    with pytest.raises(UsageError, match="--max-elements 0: no call is that small"):
        export_pytest("tanh_backward", max_elements=0)
