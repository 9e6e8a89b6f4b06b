from __future__ import annotations

import msgspec
import numpy as np
import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Looks
from aclnn_cts.core.trial import Earlier
from aclnn_cts.core.verdict import ALONE_FACT, CONFORMS, FLAKY_FACT, Deviation, Record, Result
from aclnn_cts.findings.fingerprint import fingerprinted, grouped
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


def again(number: int, *, alone: str, check: str = "values", after: bool = False, rate: object = None) -> Record:
    facts = {ALONE_FACT: alone, **({FLAKY_FACT: rate} if rate is not None else {})}
    dtype = ("FLOAT", "FLOAT16", "BF16")[number % 3]
    record = make_record(
        number, result=Result.FAILED, kind=Fault.VALUE, output="out", dtype=dtype, check=check, facts=facts
    )
    return msgspec.structs.replace(record, after=(Earlier(record.trial.case),) if after else ())


def test_an_output_of_which_hardly_any_failure_shows_alone_is_one_finding() -> None:
    """Few failures are run again: the others are of the finding of those, and so are laws, which make calls first."""
    unknown = [make_record(n, result=Result.FAILED, kind=Fault.VALUE, output="out", mode="M") for n in range(9)]
    left = [again(0, alone=CONFORMS, after=True), *(again(number, alone=CONFORMS) for number in (1, 2, 3))]
    law = again(9, alone="fails too", check="law/linear")
    [found] = grouped([*left, *unknown, law])
    assert found.order_dependent
    assert found.failures == 14
    waived = msgspec.structs.replace(unknown[0], waiver="known")
    assert [(item.waiver, item.order_dependent) for item in grouped([*left, waived])] == [("", True), ("known", False)]


def test_failures_that_show_alone_stay_apart_from_those_that_need_other_calls() -> None:
    left = [again(number, alone=CONFORMS, after=True) for number in (0, 3, 6)]
    alone = [again(number, alone="fails too") for number in (1, 2, 4, 5)]
    found = grouped([*left, *alone])
    assert [(item.failures, item.order_dependent) for item in found] == [(4, False), (3, True)]
    flaky = [again(number, alone=CONFORMS, rate=[3, 20]) for number in (1, 2)]
    assert [item.order_dependent for item in grouped(flaky)] == [False]
