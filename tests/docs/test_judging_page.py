"""docs/judging-kernels.md: its examples run from the wheel, where nothing but the base dependencies can be imported."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_pages import ROOT, blocks, commands

PAGE = ROOT / "docs" / "judging-kernels.md"
EXTRAS = (
    "pytest",
    "_pytest",
    "torch",
    "jax",
    "jinja2",
    "markupsafe",
    "xlsxwriter",
    "markdown_it",
    "selectolax",
    "cryptography",
)
WITHOUT = f"""
import sys
for name in {EXTRAS!r}:
    sys.modules[name] = None
"""
KERNEL = """
import numpy as np

def softmax_backward(gradOutput, output, dim):
    g, y = np.float32(gradOutput), np.float32(output)
    return y * (g - (g * y).sum(axis=dim, keepdims=True))

f = softmax_backward
"""
ARRAYS = """
import numpy as np
rng = np.random.default_rng(0)
y = np.exp(rng.standard_normal((8, 16), np.float32))
y /= y.sum(-1, keepdims=True)
grad = rng.standard_normal((8, 16), np.float32)
result = y * (grad - (grad * y).sum(-1, keepdims=True))
"""


def run(python: Path, folder: Path, program: str) -> str:
    """What a program prints where no extra can be imported."""
    (folder / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (folder / "other.py").write_text(KERNEL, encoding="utf-8")
    ran = subprocess.run(
        [str(python), "-c", WITHOUT + program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_functions_of_the_page_run_without_extras(python: Path, tmp_path: Path) -> None:
    check, judge = blocks(PAGE, "python")
    # The kernel of the page is wrong; this one is right, and has no finding.
    judge = judge.replace("judgement.findings[0].case.arguments", "judgement.findings")
    program = ARRAYS + check + "\nassert found.ok, found\nimport aclnn_cts\n" + judge + "\nprint(judgement.verdict)\n"
    assert run(python, tmp_path, program).split() == ["conforms"]


@pytest.mark.slow
def test_the_command_of_the_page_runs_without_extras(python: Path, tmp_path: Path) -> None:
    [line] = [line for line in commands(PAGE) if "judge" in line and "--json" in line]
    words = shlex.split(line)[1:]
    program = f"from aclnn_cts.cli.main import main\nassert main({words!r}) == 0\n"
    verdicts = [json.loads(text)["verdict"] for text in run(python, tmp_path, program).splitlines()]
    assert verdicts == ["conforms", "conforms"]
