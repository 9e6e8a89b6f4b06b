from __future__ import annotations

import msgspec

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.finding import Confirmation
from aclnn_cts.core.fingerprint import Symptom
from aclnn_cts.core.trial import EarlierCall
from aclnn_cts.core.verdict import ALONE_FACT, ALSO_STATUS, CONFORMS, FLAKY_FACT, Deviation, Record, Result
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from tests.support.build_records import group_records, make_record


def test_a_fingerprint_has_what_else_is_wrong_in_the_call() -> None:
    others = [
        Deviation(output=name, got=2.0, expected=1.0, error_ratio=9.0, beyond=beyond)
        for name, beyond in (("out", 3), ("dx", 1), ("dy", 0))
    ]
    record = make_record(result=Result.FAILED, kind=Fault.SPECIAL, output="out", facts={ALSO_STATUS: "ACLNN_SUCCESS"})
    verdict = msgspec.structs.replace(record.verdict, deviations=tuple(others))
    found = with_whole_fingerprint(msgspec.structs.replace(record, verdict=verdict)).fingerprint
    assert found.symptom == Symptom(Fault.VALUE, "out")
    assert set(found.also) == {Symptom(Fault.VALUE, "dx"), Symptom(Fault.STATUS, answer="ACLNN_SUCCESS")}
    assert found.key.text() == "aclnnSoftmaxBackward | value | out"


def again(number: int, *, alone: str, check: str = "values", after: bool = False, rate: object = None) -> Record:
    facts = {ALONE_FACT: alone, **({FLAKY_FACT: rate} if rate is not None else {})}
    dtype = ("FLOAT", "FLOAT16", "BF16")[number % 3]
    record = make_record(
        number, result=Result.FAILED, kind=Fault.VALUE, output="out", dtype=dtype, check=check, facts=facts
    )
    return msgspec.structs.replace(record, after=(EarlierCall(record.trial.case),) if after else ())


def test_an_output_of_which_no_failure_shows_alone_is_one_finding() -> None:
    """Few failures are run again: the others are of their finding, and so are equal calls."""
    unknown = [make_record(n, result=Result.FAILED, kind=Fault.VALUE, output="out", mode="M") for n in range(9)]
    left = [again(0, alone=CONFORMS, after=True), *(again(number, alone=CONFORMS) for number in (1, 2, 3))]
    equal = again(9, alone="fails too", check="determinism")
    [found] = group_records([*left, *unknown, equal])
    assert found.confirmed == Confirmation.ORDER
    assert found.failures == 14
    waived = msgspec.structs.replace(unknown[0], waiver="known")
    found_with = [(item.waiver, item.confirmed) for item in group_records([*left, waived])]
    assert found_with == [("", Confirmation.ORDER), ("known", Confirmation.WAITING)]


def test_failures_that_show_alone_stay_apart_from_those_that_need_other_calls() -> None:
    left = [again(number, alone=CONFORMS, after=True) for number in (0, 3, 6)]
    alone = [again(number, alone="fails too") for number in (1, 2, 4, 5)]
    found = group_records([*left, *alone])
    assert [(item.failures, item.confirmed) for item in found] == [(4, Confirmation.WAITING), (3, Confirmation.ORDER)]


def test_equal_calls_with_different_results_are_non_deterministic() -> None:
    flaky = [again(number, alone=CONFORMS, rate=[3, 20]) for number in (1, 2)]
    [found] = group_records(flaky)
    assert (found.confirmed, found.alone, found.kind) == (Confirmation.FLAKY, (3, 20), Fault.NONDETERMINISTIC)
