from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Beside, Looks
from aclnn_cts.core.outcome import BufferState, Outcome
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
        (1.0, 0.0, 1.0, "FLOAT", Looks.FILLED),
        (-3.3, 3.3, 100.0, "FLOAT", Looks.NEGATED),
        (-3.31, 3.3, 1.0, "FLOAT", Looks.WRONG),
        (-3.31, 3.3, 1.0, "BF16", Looks.NEGATED),
        (9.9, 3.3, 1.0, "FLOAT", Looks.SCALED),
        (1.1, 3.3, 1.0, "FLOAT", Looks.SCALED),
        (60.0, 1.0, 1.0, "FLOAT16", Looks.SCALED),
        (60.0, 1.0, 1.0, "BF16", Looks.WRONG),
        (65504.0, "inf", 1.0, "FLOAT16", Looks.CLAMPED),
        (-65504.0, -7e4, 1.0, "FLOAT16", Looks.CLAMPED),
        (-65504.0, "inf", 1.0, "FLOAT16", Looks.SPECIAL),
        (0.0, 1e-5, 1.0, "FLOAT", Looks.ZERO),
        (0.0, 1e-5, 1.0, "FLOAT16", Looks.FLUSHED),
        (2e-5, 1e-5, 1.0, "FLOAT16", Looks.ROUNDING),
        ("inf", 1.0, 1.0, "FLOAT", Looks.STRAY),
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


@pytest.mark.parametrize(
    ("fields", "layouts"),
    [
        ({"kind": Fault.VALUE}, ("strided", "offset", "rank 8")),
        ({"kind": Fault.UNWRITTEN}, ("strided", "offset", "rank 8")),
        ({"kind": Fault.VALUE, "check": "law/linear"}, ()),
        ({"kind": Fault.REJECTED}, ()),
    ],
)
def test_layouts_are_told_of_wrong_outputs_of_plain_calls(fields: dict[str, Any], layouts: tuple[str, ...]) -> None:
    record = make_record(result=Result.FAILED, output="out", **fields)
    tensor = Tensor((2, 1, 1, 1, 1, 1, 1, 3), "FLOAT", strides=(1, 2, 2, 2, 2, 2, 2, 2), offset=4)
    case = msgspec.structs.replace(record.trial.case, arguments={"out": tensor})
    trial = msgspec.structs.replace(record.trial, case=case)
    assert fingerprinted(msgspec.structs.replace(record, trial=trial)).fingerprint.layouts == layouts


@pytest.mark.parametrize(("status", "clause", "found"), [(0, "", True), (161002, "", False), (0, "dim.range", False)])
def test_what_is_not_written_behind_a_stray_write_is_told(status: int, clause: str, found: bool) -> None:
    record = make_record(result=Result.FAILED, kind=Fault.GUARD, output="out", clause=clause)
    outcome = Outcome(phase_one=status, buffers={"out": BufferState(guard_after=1, unwritten=3)})
    told = fingerprinted(msgspec.structs.replace(record, attempts=((outcome,),))).fingerprint.beside
    assert told == ((Beside("out", Looks.NONE, Fault.UNWRITTEN),) if found else ())
