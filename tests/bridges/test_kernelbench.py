"""Files with ModelNew are judged by what autograd makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aclnn_cts.bridges.kernelbench import judge_module
from aclnn_cts.core.errors import UsageError

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'aclnn-cts[torch]'")

FILE = """
import torch

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return BACKWARD

class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return Function.apply(x)

def get_inputs():
    return [torch.randn(16, 8)]

def get_init_inputs():
    return [8]
"""
LAYER_NORM = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x, approximate="tanh")

def get_inputs():
    return [torch.randn(16, 8)]
"""


def written(folder: Path, backward: str) -> Path:
    path = folder / "model.py"
    path.write_text(FILE.replace("BACKWARD", backward), encoding="utf-8")
    return path


def test_a_right_backward_pass_conforms(tmp_path: Path) -> None:
    judgement = judge_module(written(tmp_path, "g * (1 - y * y)"), "tanh_backward", seed=1)
    assert judgement.ok, judgement.reason
    assert (judgement.planned, judgement.passed) == (5, 5)


def test_lower_precision_fails_with_its_ratio(tmp_path: Path) -> None:
    judgement = judge_module(
        written(tmp_path, "(g.half() * (1 - y.half() * y.half())).float()"), "tanh_backward", seed=1
    )
    assert judgement.verdict == "fails"
    [finding] = judgement.findings
    assert float(finding.error_ratio) > 1
    assert finding.fault == "value"


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        ("__import__('os')._exit(0)", "exit"),
        pytest.param("__import__('os').kill(__import__('os').getpid(), 11)", "SIGSEGV", marks=pytest.mark.slow),
        ("__import__('aclnn_cts').check", "ModuleNotFoundError"),
        ("None", "no gradient reaches input0"),
    ],
)
def test_what_a_file_does_is_its_failure(backward: str, message: str, tmp_path: Path) -> None:
    judgement = judge_module(written(tmp_path, backward), "tanh_backward", seed=1)
    assert judgement.verdict == "fails"
    assert message in judgement.reason


def test_a_backward_pass_that_hangs_is_a_hang(tmp_path: Path) -> None:
    judgement = judge_module(written(tmp_path, "__import__('time').sleep(600)"), "tanh_backward", seed=1, budget="4s")
    assert [finding.fault for finding in judgement.findings] == ["hang"]


def test_attributes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(LAYER_NORM, encoding="utf-8")
    right, wrong = (
        judge_module(path, "gelu_backward_v2", attributes={"approximate": word}, seed=1, trials=2)
        for word in ("tanh", "none")
    )
    assert right.verdict == "conforms", right.reason
    assert wrong.verdict == "fails"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"op": "nothing"}, "nothing"),
        ({"trials": 0}, "trials: 0"),
        ({"trials": "x"}, "trials: 'x'"),
        ({"arrays": {"gradInput": "output"}}, "no output of aclnnTanhBackward"),
        ({"budget": "soon"}, "budget"),
    ],
)
def test_wrong_words_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    words = {"op": "tanh_backward", "seed": 1, **given}
    with pytest.raises(UsageError, match=message):
        judge_module(written(tmp_path, "g"), **words)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py: cannot be read"):
        judge_module(tmp_path / "none.py", "tanh_backward")


def test_arrays_without_room_are_not_held_against_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "g * (1 - y * y)")
    path.write_text(path.read_text(encoding="utf-8").replace("randn(16, 8)", "ones(1, 1 << 26).expand(1, 1 << 26)"))
    found = judge_module(path, "tanh_backward", seed=1, budget="60s")
    assert (found.verdict, found.findings, found.unjudged) == ("inconclusive", (), 1)
    assert "at most 268435456 can be judged" in found.reason


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"nothing": "output"}, "arrays: 'nothing': aclnnTanhBackward takes gradOutput, output, gradInput"),
        ({"gradInput": "d.weight"}, r"arrays: gradInput: 'd\.weight'; expected one of output, grad, input0"),
    ],
)
def test_arrays_that_are_none_are_refused(arrays: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        judge_module(written(tmp_path, "g * (1 - y * y)"), "tanh_backward", arrays=arrays, seed=1)
