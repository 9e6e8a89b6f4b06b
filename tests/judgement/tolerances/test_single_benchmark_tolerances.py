"""Rules that look at the output and the golden alone, on hand-made numbers: on their limits and just beyond."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aclnn_cts.core.verdict import ToleranceVerdict
from aclnn_cts.judgement.tolerances.registry import TOLERANCES
from aclnn_cts.judgement.tolerances.single_benchmark import MERE_LIMITS, MIXED_ROWS
from tests.judgement.tolerances.pairs import figures, pair, says, values

PASS, FAIL, NOT_APPLICABLE = ToleranceVerdict.PASS, ToleranceVerdict.FAIL, ToleranceVerdict.NOT_APPLICABLE
INF, NAN = math.inf, math.nan
TINY = 2.0**-40
"""Added to a float64 golden it moves an error that lies on its limit just beyond it."""


def place(row: str) -> tuple[str, str]:
    """The dtype and the mode's operand format that choose a row."""
    return ("FLOAT", "HFLOAT32") if row == "HFLOAT32" else (row, "")


@pytest.mark.parametrize("row", MIXED_ROWS)
def test_mixed_matches_up_to_the_row_s_tolerance(row: str) -> None:
    numbers = MIXED_ROWS[row]
    dtype, operand = place(row)
    got = [1.0 + numbers.rtol + numbers.atol]
    assert says("mixed", pair(got, [1.0], dtype=dtype, operand=operand)) == PASS
    assert says("mixed", pair(got, [1.0 - TINY], dtype=dtype, operand=operand)) == FAIL


def test_mixed_takes_the_row_of_hfloat32_from_the_mode_alone() -> None:
    got = [1.0 + 2.0**-9 + 2.0**-10]
    assert says("mixed", pair(got, [1.0], operand="HFLOAT32")) == PASS
    assert says("mixed", pair(got, [1.0], operand="FLOAT16")) == FAIL
    assert says("mixed", pair(got, [1.0])) == FAIL
    assert says("mixed", pair([1.0 + 2.0**-8], [1.0], dtype="FLOAT16", operand="HFLOAT32")) == PASS, "FLOAT16's own row"
    beyond = pair([1.0 + 2.0**-9 + 2.0**-10], [1.0], dtype="DOUBLE", operand="HFLOAT32")
    assert says("mixed", beyond) == FAIL, "other dtypes have FLOAT's row"


@pytest.mark.parametrize(("unmatched", "expected"), [(0, PASS), (1, PASS), (2, FAIL)])
def test_mixed_admits_one_unmatched_element_in_a_hundred(unmatched: int, expected: str) -> None:
    got = np.ones(100)
    got[:unmatched] += 2.0**-8
    result = TOLERANCES["mixed"].measure(pair(got, np.ones(100)))
    assert result.verdict == expected
    assert figures(result)["matched share"].value == 1 - unmatched / 100
    if unmatched:
        assert result.headroom == pytest.approx(1.0 - unmatched)


@pytest.mark.parametrize(("golden", "expected"), [(0.01, PASS), (math.nextafter(0.01, 1.0), FAIL)])
def test_mixed_limits_the_largest_error_of_an_unmatched_element(golden: float, expected: str) -> None:
    made = pair(np.zeros(100), [golden] + [0.0] * 99)
    assert says("mixed", made) == expected


def test_mixed_takes_32_ulp_where_they_are_more_than_the_absolute_limit() -> None:
    spacing = 2.0**-3
    assert says("mixed", pair([2.0**20 + 32 * spacing], [2.0**20])) == PASS
    result = TOLERANCES["mixed"].measure(pair([2.0**20 + 33 * spacing], [2.0**20]))
    assert result.verdict == FAIL
    assert values(result) == {"matched share": 1.0, "largest absolute error": 33 * spacing}
    assert result.message == "largest absolute error 4.12, not <= 4"


@pytest.mark.parametrize("row", MERE_LIMITS)
def test_mere_and_mare_stay_below_their_limits(row: str) -> None:
    limit = MERE_LIMITS[row]
    dtype, operand = place(row)
    # Over |g| + 1e-7 an error of T is just below T; moving the golden by a little more than 1e-7 T is just beyond.
    assert says("mere-mare", pair([1.0 + limit], [1.0], dtype=dtype, operand=operand)) == PASS
    assert says("mere-mare", pair([1.0 + limit], [1.0 - 2e-7], dtype=dtype, operand=operand)) == FAIL
    got, golden = np.ones(20), np.ones(20)
    got[3] += 10 * limit
    result = TOLERANCES["mere-mare"].measure(pair(got, golden, dtype=dtype, operand=operand))
    assert result.verdict == PASS
    assert values(result) == pytest.approx({"MERE": limit / 2, "MARE": 10 * limit})
    golden[3] -= 2e-6
    result = TOLERANCES["mere-mare"].measure(pair(got, golden, dtype=dtype, operand=operand))
    assert (result.verdict, result.message.split()[0]) == (FAIL, "MARE")


def test_mere_mare_of_integers() -> None:
    assert says("mere-mare", pair([3, -7], [3, -8], dtype="INT8")) == PASS
    assert says("mere-mare", pair([3, -7], [5, -7], dtype="INT8")) == FAIL
    assert says("mere-mare", pair([3, -7], [3, -8], dtype="INT32")) == FAIL
    assert says("mere-mare", pair([3, -8], [3, -8], dtype="INT32")) == PASS


SINGLE_TOLERANCES = ("mixed", "mere-mare")
UNREAD = ("mere-mare",)
"""Rules that pass a golden with inf or nan without reading the output."""


@pytest.mark.parametrize(
    ("got", "golden", "passing"),
    [
        ([NAN, 1.0], [NAN, 1.0], set(SINGLE_TOLERANCES)),
        ([INF, 1.0], [INF, 1.0], set(SINGLE_TOLERANCES)),
        ([-INF, 1.0], [INF, 1.0], set(UNREAD)),
        ([NAN, 1.0], [INF, 1.0], set(UNREAD)),
        ([7.0, 1.0], [INF, 1.0], set(UNREAD)),
        ([7.0, 1.0], [NAN, 1.0], set(UNREAD)),
        ([NAN, 1.0], [7.0, 1.0], set()),
        ([INF, 1.0], [7.0, 1.0], set()),
        ([65504.0, 1.0], [1e9, 1.0], set(UNREAD)),
        ([INF, 1.0], [1e9, 1.0], set(SINGLE_TOLERANCES)),
    ],
)
def test_inf_and_nan(got: list[float], golden: list[float], passing: set[str]) -> None:
    made = pair(got, golden, dtype="FLOAT16")
    assert {name for name in SINGLE_TOLERANCES if says(name, made) == PASS} == passing
    assert {name for name in SINGLE_TOLERANCES if says(name, made) == FAIL} == set(SINGLE_TOLERANCES) - passing


def test_dtypes_without_a_row_are_not_judged() -> None:
    double = pair([1.0], [1.0], dtype="DOUBLE", benchmark=[1.0])
    assert {name for name in TOLERANCES if says(name, double) == NOT_APPLICABLE} == set(TOLERANCES) - {"mixed"}
    whole = pair([1], [1], dtype="INT64", benchmark=[1])
    assert {name for name in TOLERANCES if says(name, whole) == NOT_APPLICABLE} == {"mixed"}
    assert TOLERANCES["mixed"].measure(whole).message == "the rule has no numbers for INT64"
