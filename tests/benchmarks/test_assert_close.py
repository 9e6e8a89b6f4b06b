"""The benchmark's `assert-close`, on its limits and against torch itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aclnn_cts.core.rounding import to_dtype, widen
from aclnn_cts.core.verdict import ToleranceVerdict
from aclnn_cts.judgement.tolerances.protocol import Pair
from benchmarks.assert_close import ASSERT_CLOSE_ROWS, AssertClose
from tests.judgement.tolerances.pairs import pair

PASS, FAIL = ToleranceVerdict.PASS, ToleranceVerdict.FAIL


def says(made: Pair) -> str:
    return AssertClose().measure(made).verdict


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return widen(to_dtype(values, dtype))


@pytest.mark.parametrize("row", ASSERT_CLOSE_ROWS)
def test_assert_close_up_to_the_default_tolerances(row: str) -> None:
    numbers = ASSERT_CLOSE_ROWS[row]
    step = {"FLOAT16": 2.0**-10, "BF16": 2.0**-7, "FLOAT": 2.0**-23, "DOUBLE": 2.0**-52}[row]
    steps = math.floor((numbers.atol + numbers.rtol) / step)
    assert says(pair([1.0 + steps * step], [1.0], dtype=row)) == PASS
    assert says(pair([1.0 + (steps + 1) * step], [1.0], dtype=row)) == FAIL
    # The golden is rounded to the dtype first.
    assert says(pair([1.0 + steps * step], [1.0 - step / 8], dtype=row)) == PASS


def test_nan_is_close_to_nothing() -> None:
    assert says(pair([math.nan], [math.nan])) == FAIL
    assert says(pair([math.inf], [math.inf])) == PASS


def test_assert_close_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    generator = np.random.default_rng(3)
    kinds = {"FLOAT16": torch.float16, "BF16": torch.bfloat16, "FLOAT": torch.float32, "DOUBLE": torch.float64}
    outcomes = set()
    for dtype, kind in kinds.items():
        rows = ASSERT_CLOSE_ROWS[dtype]
        for number in range(60):
            golden = stored(generator.normal(size=5) * 10.0 ** generator.integers(-4, 3), dtype)
            # Errors keep away from the limit, where torch's own rounding decides.
            share = [0.5, 1.6][number % 2]
            got = stored(golden + share * (rows.atol + rows.rtol * np.abs(golden)), dtype)
            error, allowed = np.abs(got - golden), rows.atol + rows.rtol * np.abs(golden)
            if (np.abs(error / allowed - 1) < 0.2).any():
                continue
            try:
                torch.testing.assert_close(torch.tensor(got, dtype=kind), torch.tensor(golden, dtype=kind))
                theirs = ToleranceVerdict.PASS
            except AssertionError:
                theirs = ToleranceVerdict.FAIL
            assert AssertClose().measure(pair(got, golden, dtype=dtype)).verdict == theirs
            outcomes.add((dtype, theirs))
    assert len(outcomes) == 2 * len(kinds)
