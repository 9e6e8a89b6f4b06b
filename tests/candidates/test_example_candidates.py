"""The ten candidates of `docs/examples/candidates.py`: five conform, and five have a mistake."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "docs" / "examples" / "candidates.py"
EXPECTED = {
    "plain": "conforms",
    "other_order": "conforms",
    "into_out": "conforms",
    "row_by_row": "conforms",
    "remembers": "conforms",
    "half_sum": "fails",
    "last_axis": "fails",
    "nothing_but_nan": "fails",
    "small_is_zero": "fails",
    "ten_times": "fails",
}


def test_each_candidate_has_a_line_about_it_and_a_verdict_here() -> None:
    functions = [item for item in ast.parse(FILE.read_text(encoding="utf-8")).body if isinstance(item, ast.FunctionDef)]
    public = {item.name: ast.get_docstring(item) or "" for item in functions if not item.name.startswith("_")}
    assert list(public) == list(EXPECTED)
    assert [name for name, text in public.items() if len(text.splitlines()) != 1] == []


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_the_command_gives_each_candidate_its_verdict(seed: int) -> None:
    words = [f"{FILE}:{name}" for name in EXPECTED]
    command = [sys.executable, "-m", "aclnn_cts", "judge", *words, "--op", "softmax_backward", "--json"]
    done = subprocess.run(
        [*command, "--seed", str(seed), "--budget", "60s"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {item["candidate"].rpartition(":")[2]: item["verdict"] for item in found} == EXPECTED
