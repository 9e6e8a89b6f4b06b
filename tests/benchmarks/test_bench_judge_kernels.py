"""The candidates of the benchmark: how many they are, and that each has the verdict that its place in it says."""

from __future__ import annotations

import numpy as np
import pytest

import aclnn_cts
from benchmarks import softmax_candidates
from benchmarks.bench_judge_kernels import GOALS, OPERATORS, expected_verdicts, rows
from benchmarks.softmax_candidates import RIGHT, WRONG

FILE = softmax_candidates.__file__


def test_half_of_a_hundred_candidates_are_wrong() -> None:
    assert len(OPERATORS) * len(RIGHT) == len(OPERATORS) * len(WRONG) == 50
    assert [name for name in expected_verdicts() if not hasattr(softmax_candidates.softmax_backward, name)] == []


def test_a_way_computes_the_gradient_of_its_operator() -> None:
    g, y = np.array([[1.0, 2.0]], np.float32), np.array([[0.25, 0.75]], np.float32)
    of_softmax = softmax_candidates.softmax_backward.padded(g, y, 1, None)
    assert of_softmax == pytest.approx(np.array([[-0.1875, 0.1875]]))
    of_log_softmax = softmax_candidates.log_softmax_backward.padded(g, np.log(y), 1, None)
    assert of_log_softmax == pytest.approx(np.array([[0.25, -0.25]]), abs=1e-6)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("way", ["padded", "small_is_zero"])
def test_a_candidate_has_the_verdict_that_it_deserves(operator: str, way: str) -> None:
    found = aclnn_cts.judge(f"{FILE}:{operator}.{way}", operator, seed=5, budget="60s")
    assert found.verdict == expected_verdicts()[way], found.reason


def test_a_row_has_the_median_and_the_goal() -> None:
    rounds = {name: (goal / 2, goal, goal * 2) for name, goal in GOALS.items()}
    assert [float(measured) for _, measured, _ in rows(rounds)] == list(GOALS.values())
