"""What `make bench-size` measures: a call of 2^22 elements is judged within a gigabyte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_size

ROOT = Path(bench_size.__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "dtype", ["FLOAT", pytest.param("FLOAT16", marks=pytest.mark.slow), pytest.param("BF16", marks=pytest.mark.slow)]
)
def test_a_call_of_four_million_elements_takes_less_than_a_gigabyte(dtype: str) -> None:
    words = [sys.executable, "-m", "benchmarks.bench_size", "--peak", dtype]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    assert 50 * 1024 < int(done.stdout) < 1024 * 1024  # KiB


def test_it_says_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_size.main(["--elements", "65536", "--rounds", "1", "--no-peak"]) == 0
    said = capsys.readouterr().out
    for dtype, goal in bench_size.GOALS.items():
        [row] = [line for line in said.splitlines() if line.startswith(f"| {dtype} |")]
        assert f"million (goal: {goal / 1e6:.0f})" in row
    assert "| `aclnn_cts/judgement/comparison.py` | `settle_within` |" in said
