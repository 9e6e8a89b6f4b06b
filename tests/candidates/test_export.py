"""A test that is exported: it needs nothing of ours, passes what conforms and fails what does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aclnn_cts.candidates.export import export_pytest
from aclnn_cts.cli.main import main
from aclnn_cts.core.errors import UsageError
from aclnn_cts.speclang.load import load_specs

KERNELS = """
import numpy as np

def named(dtypes):
    import ml_dtypes
    name = dtypes["out"]
    return np.dtype(getattr(ml_dtypes, name, name))

def right(gradOutput, output, dim, dtypes):
    grad, y = np.float32(gradOutput), np.float32(output)
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


def run_pytest(folder: Path, function: str, stem: str) -> subprocess.CompletedProcess[str]:
    """pytest on the exported test, in a process that cannot import this package."""
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "aclnn_cts.py").write_text("raise ImportError('nothing of ours is there')\n", encoding="utf-8")
    environment = {**os.environ, "IMPLEMENTATION": f"kernels:{function}", "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{stem}.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_a_right_function_passes_and_a_wrong_one_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "softmax_backward", "-n", "12", "-o", str(tmp_path)]) == 0
    assert "12 calls" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"test_softmax_backward.py", "softmax_backward.npz"}
    right = run_pytest(tmp_path, "right", "softmax_backward")
    assert (right.returncode, "12 passed" in right.stdout) == (0, True), right.stdout
    wrong = run_pytest(tmp_path, "wrong", "softmax_backward")
    assert wrong.returncode == 1
    assert "expected from" in wrong.stdout
    assert "out has the dtype float64, expected float" in run_pytest(tmp_path, "wide", "softmax_backward").stdout
    assert "the result lacks out; it has nothing" in run_pytest(tmp_path, "empty", "softmax_backward").stdout
    assert "has the shape" in run_pytest(tmp_path, "flat", "softmax_backward").stdout
    assert "IMPLEMENTATION=module:function names" in run_pytest(tmp_path, "", "softmax_backward").stdout


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
    ran = run_pytest(tmp_path, "lstm", made.stem)
    assert "the result lacks " in ran.stdout, "the function was called, and returned nothing"
    with np.load(tmp_path / f"{made.stem}.npz", allow_pickle=False) as arrays:
        assert any(name.endswith("/value") for name in arrays)


def test_a_limit_below_every_call_is_told() -> None:
    with pytest.raises(UsageError, match="--max-elements 0: no call is that small"):
        export_pytest("tanh_backward", max_elements=0)
