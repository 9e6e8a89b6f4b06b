"""Which dtypes the card of a finding names."""

from __future__ import annotations

from collections import Counter

import pytest

from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.findings.fingerprint import fingerprinted, grouped
from aclnn_cts.reports.model.findings import deciding_dtypes
from aclnn_cts.triage.dedup import Members, by_finding

OPERATOR = "aclnnSoftmaxBackward"


def record(number: int, grad: str, out: str, *, failed: bool) -> Record:
    shape = (number + 1,)
    tensors = {"gradOutput": Tensor(shape, grad), "output": Tensor(shape, grad), "out": Tensor(shape, out)}
    case = Case(OPERATOR, {**tensors, "dim": 0}, Target(product="atlas-a2"))
    trial = Trial("values", case)
    kind = Fault.REJECTED if failed else ""
    return fingerprinted(
        Record(
            trial_id=trial.id,
            trial=trial,
            attempts=(),
            verdict=Verdict(result=Result.FAILED if failed else Result.PASSED, kind=kind),
            fingerprint=Fingerprint(OPERATOR, "values", kind, dtype=out),
        )
    )


@pytest.mark.parametrize(
    ("failing", "passing", "named"),
    [
        pytest.param(
            [("BF16", "FLOAT")] * 3,
            [("FLOAT", "FLOAT"), ("FLOAT16", "FLOAT")],
            "FLOAT, gradOutput BF16",
            id="it decides",
        ),
        pytest.param(
            [("BF16", "FLOAT")], [("FLOAT", "FLOAT"), *[("BF16", "FLOAT")] * 2], "FLOAT", id="others of it pass"
        ),
        pytest.param([("BF16", "FLOAT"), ("FLOAT", "FLOAT")], [("FLOAT", "BF16")], "FLOAT", id="every dtype fails"),
    ],
)
def test_dtypes_are_those_of_all_failures_and_of_the_argument_that_decides(
    failing: list[tuple[str, str]], passing: list[tuple[str, str]], named: str
) -> None:
    members, judged = Members(), Counter[tuple[str, str, str, str]]()
    records = [
        record(number, grad, out, failed=number < len(failing))
        for number, (grad, out) in enumerate([*failing, *passing])
    ]
    for number, item in enumerate(records):
        out = item.fingerprint.dtype
        judged.update(("values", out, name, tensor.dtype) for name, tensor in item.trial.case.tensors())
        if number < len(failing):
            members.add(item, 0)
    [failures] = by_finding(members.known.values(), grouped(records[: len(failing)]))
    assert deciding_dtypes(failures, judged) == named
