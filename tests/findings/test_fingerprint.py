from __future__ import annotations

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Looks
from aclnn_cts.core.verdict import Deviation, Result
from aclnn_cts.findings.fingerprint import fingerprinted
from tests.support.build_records import make_record


@pytest.mark.parametrize(
    ("got", "expected", "cancellation", "dtype", "looks"),
    [
        (1.01, 1.0, 1.0, "FLOAT", Looks.ROUNDING),
        (1.02, 1.0, 1.0, "FLOAT", Looks.NEAR),
        (1.4, 1.0, 1.0, "FLOAT", Looks.WRONG),
        (1.4, 1.0, 10.0, "FLOAT", Looks.NEAR),
        (1.4, 1.0, 100.0, "FLOAT", Looks.ROUNDING),
        (0.0, 1.0, 1.0, "FLOAT", Looks.ZERO),
        (1.0, 0.0, 1.0, "FLOAT", Looks.WRONG),
        (0.0, 1e-5, 1.0, "FLOAT", Looks.ZERO),
        (0.0, 1e-5, 1.0, "FLOAT16", Looks.FLUSHED),
        (2e-5, 1e-5, 1.0, "FLOAT16", Looks.ROUNDING),
        ("inf", 1.0, 1.0, "FLOAT", Looks.STRAY),
        (65504.0, "inf", 1.0, "FLOAT16", Looks.CLAMPED),
        (-65504.0, -70000.0, 1.0, "FLOAT16", Looks.CLAMPED),
        (float(np.finfo("float32").max), 98304.0, 1.0, "FLOAT", Looks.CLAMPED),
        (2.0**128 - 2.0**120, "inf", 1.0, "BF16", Looks.CLAMPED),
        (65505.0, 70000.0, 1.0, "FLOAT", Looks.NEAR),
        (0.0, "nan", 1.0, "FLOAT", Looks.SPECIAL),
    ],
)
def test_what_the_worst_element_looks_like(
    got: float | str, expected: float | str, cancellation: float, dtype: str, looks: Looks
) -> None:
    worst = Deviation(output="out", got=got, expected=expected, share=9.0, cancellation=cancellation, beyond=1)
    record = make_record(result=Result.FAILED, kind=Fault.VALUE, output="out", dtype=dtype)
    verdict = msgspec.structs.replace(record.verdict, deviations=(worst,))
    assert fingerprinted(msgspec.structs.replace(record, verdict=verdict)).fingerprint.looks == looks
