"""Changes that contributors make: each is a patch of at most two files, after which the right thing happens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATCHES = ROOT / "tests" / "fixtures" / "patches"
MATRIX = "benchmarks/figures/power/kill_matrix.json"
"""What the report shows, through a link in `aclnn_cts`."""
FOLDERS = ("aclnn_cts", "specs", "oracles", "adapters", "suites", "reports", "waivers")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git, which applies the patches, is not installed"),
]


@dataclass(frozen=True)
class Patched:
    """A copy of this tree with a patch, whose command line is called."""

    tree: Path

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        # The working directory comes first on the path, before the tree that is installed.
        command = [sys.executable, "-m", "aclnn_cts", *words]
        return subprocess.run(command, cwd=self.tree, check=False, capture_output=True, text=True, timeout=300)


@pytest.fixture
def patched(request: pytest.FixtureRequest, tmp_path: Path) -> Patched:
    """The command line of a copy of this tree with the patch that the test is named for."""
    name = request.node.name.removeprefix("test_").replace("_", "-")
    patch = PATCHES / f"{name}.patch"
    files = re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert 1 <= len(files) <= 2
    tree = tmp_path / "tree"
    (tree / MATRIX).parent.mkdir(parents=True)
    shutil.copy(ROOT / MATRIX, tree / MATRIX)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", str(patch)], cwd=tree, check=True, timeout=60)
    return Patched(tree)


def test_dtype(patched: Patched) -> None:
    cases = patched("cases", "softmax_backward", "--kind", "valid", "-n", "40")
    assert cases.returncode == 0, cases.stderr
    assert '"DOUBLE"' in cases.stdout
    run = patched("run", "softmax_backward", "--adapter", "reference", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout


def test_product(patched: Patched) -> None:
    run = patched("run", "softmax_backward", "--adapter", "reference", "--product", "atlas-example", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout, run.stderr
    assert "atlas-example" in patched("run", "--help").stdout


def test_report_format(patched: Patched) -> None:
    run = patched("run", "softmax_backward", "--adapter", "reference", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout, run.stderr
    assert patched("report", "run", "-o", "-", "--format", "names").stdout == "# operators\naclnnSoftmaxBackward\n"


def test_check(patched: Patched) -> None:
    run = patched("run", "softmax_backward", "--adapter", "reference", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout, run.stderr
    assert patched("report", "run", "-o", "trials.csv").returncode == 0
    assert "life-cycle/back-to-back" in (patched.tree / "trials.csv").read_text(encoding="utf-8")


def test_adapter_option(patched: Patched) -> None:
    run = patched("run", "softmax_backward", "--adapter", "reference:note=tuesday", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout, run.stderr
    manifest = json.loads((patched.tree / "run" / "manifest.json").read_bytes())
    assert manifest["environment"]["adapter.note"]["value"] == "tuesday"
    refused = patched("run", "softmax_backward", "--adapter", "reference:nite=tuesday")
    assert (refused.returncode, "note" in refused.stderr) == (2, True)


def test_operator(patched: Patched) -> None:
    assert patched("spec", "lint", "specs/logistic_backward.yaml").returncode == 0
    assert "aclnnLogisticBackward" in patched("ops").stdout
    run = patched("run", "logistic_backward", "--adapter", "reference", "-o", "run")
    assert "RESULT verdict=conforms " in run.stdout, run.stderr
