"""Rules that hold the output against a second implementation, on numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aclnn_cts.core.verdict import ToleranceVerdict
from aclnn_cts.judgement.tolerances.double_benchmark import DUAL_LEVELS, DUAL_ROWS
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from tests.judgement.tolerances.pairs import figures, pair, says, values

PASS, FAIL, NOT_APPLICABLE = ToleranceVerdict.PASS, ToleranceVerdict.FAIL, ToleranceVerdict.NOT_APPLICABLE
INF, NAN = math.inf, math.nan
UNIT = 2.0**-10
ONES = np.ones(64)
SIGNS = np.resize([1.0, -1.0], 64)
"""Errors that lean to no side."""


@pytest.mark.parametrize("level", DUAL_LEVELS)
def test_dual_mean_errors_up_to_the_level_s_ratio(level: str) -> None:
    limits = DUAL_LEVELS[level]
    assert limits.mere == limits.rmse
    unit = 2.0**-10 * 1.25
    benchmark = ONES + SIGNS * unit
    # 1.2 is no binary fraction: 1.1875 is below it and 1.3125 beyond.
    times = {"l0": 2.0, "l1": 1.5, "l2": 1.1875}[level]
    result = TOLERANCES[f"dual-{level}"].measure(pair(ONES + SIGNS * unit * times, ONES, benchmark))
    assert result.verdict == PASS
    assert values(result) == pytest.approx({"MARE ratio": times, "MERE ratio": times, "RMSE ratio": times}, rel=1e-12)
    assert result.benchmark == "made by hand"
    result = TOLERANCES[f"dual-{level}"].measure(pair(ONES + SIGNS * unit * (times + 0.125), ONES, benchmark))
    assert result.verdict == FAIL


@pytest.mark.parametrize("level", DUAL_LEVELS)
def test_dual_largest_error_up_to_the_level_s_ratio(level: str) -> None:
    limit = DUAL_LEVELS[level].mare
    got = ONES.copy()
    # A ratio of two rounded quotients meets 10 to within a rounding alone.
    got[5] += limit * UNIT - 2.0**-23
    assert says(f"dual-{level}", pair(got, ONES, ONES + SIGNS * UNIT)) == PASS
    got[5] += 2.0**-22
    result = TOLERANCES[f"dual-{level}"].measure(pair(got, ONES, ONES + SIGNS * UNIT))
    assert (result.verdict, result.message.split()[0]) == (FAIL, "MARE")


@pytest.mark.parametrize("row", DUAL_ROWS)
def test_dual_divides_by_the_threshold_at_least(row: str) -> None:
    dtype, operand = ("FLOAT", "HFLOAT32") if row == "HFLOAT32" else (row, "")
    small = DUAL_ROWS[row].small
    step = max(small, 2.0**-7 if dtype == "BF16" else 2.0**-10 if dtype == "FLOAT16" else small)
    result = TOLERANCES["dual-l0"].measure(pair([1.0 + step], [1.0], [1.0], dtype=dtype, operand=operand))
    assert values(result)["MARE ratio"] == pytest.approx(step / small, rel=1e-6)
    assert values(result)["RMSE ratio"] == step / small
    same = TOLERANCES["dual-l2"].measure(pair([1.0], [1.0], [1.0], dtype=dtype, operand=operand))
    assert set(values(same).values()) == {1.0}, "0 / 0 counts as 1"


@pytest.mark.parametrize("row", DUAL_ROWS)
@pytest.mark.parametrize(("mine", "other", "expected"), [(2, 0, PASS), (3, 0, FAIL), (4, 2, PASS), (5, 2, FAIL)])
def test_dual_counts_errors_of_small_values(row: str, mine: int, other: int, expected: str) -> None:
    dtype, operand = ("FLOAT", "HFLOAT32") if row == "HFLOAT32" else (row, "")
    numbers = DUAL_ROWS[row]
    # An error on the row's limit does not count.
    on_limit, beyond = numbers.error, 2 * numbers.error

    def output(count: int) -> list[float]:
        return [beyond] * count + [on_limit] * (8 - count)

    result = TOLERANCES["dual-l1"].measure(pair(output(mine), [0.0] * 8, output(other), dtype=dtype, operand=operand))
    assert (result.verdict, list(figures(result))) == (expected, ["small-value error ratio"])
    at_threshold = pair([numbers.small], [numbers.small], [numbers.small], dtype=dtype, operand=operand)
    assert "small-value error ratio" not in values(TOLERANCES["dual-l1"].measure(at_threshold))


@pytest.mark.parametrize(
    ("got", "golden", "benchmark", "expected"),
    [
        (NAN, NAN, NAN, PASS),
        (NAN, NAN, 1.0, PASS),
        (NAN, 1.0, NAN, PASS),
        (NAN, 1.0, 1.0, FAIL),
        (INF, INF, 1.0, PASS),
        (INF, -INF, INF, PASS),
        (INF, -INF, 1.0, FAIL),
        (1.0, INF, 1.0, PASS),
        (1.0, INF, 2.0, FAIL),
        (INF, 1e9, 1.0, PASS),
        (1.0, 1.0, INF, PASS),
        (1.0, 1.0, NAN, PASS),
    ],
)
def test_dual_inf_and_nan(got: float, golden: float, benchmark: float, expected: str) -> None:
    made = pair([got, 1.0], [golden, 1.0], [benchmark, 1.0], dtype="FLOAT16")
    assert says("dual-l0", made) == expected


def test_dual_leaves_out_what_the_benchmark_alone_has_no_number_for() -> None:
    # The second element's error would fail the ratio; the benchmark overflowed there.
    assert says("dual-l0", pair([1.0, 1.5], [1.0, 1.0], [1.0, INF])) == PASS
    assert says("dual-l0", pair([1.0, 1.5], [1.0, 1.0], [1.0, 1.0])) == FAIL


def test_dual_of_integers() -> None:
    assert says("dual-l0", pair([3], [3], dtype="INT32")) == PASS
    assert says("dual-l0", pair([3], [4], dtype="INT32")) == FAIL


def test_without_a_second_implementation_there_is_no_verdict() -> None:
    alone = pair([1.0], [1.0])
    for name in ("dual-l0", "dual-l1", "dual-l2"):
        result = TOLERANCES[name].measure(alone)
        assert result.verdict == NOT_APPLICABLE
        assert "second implementation" in result.message
        assert result.source
