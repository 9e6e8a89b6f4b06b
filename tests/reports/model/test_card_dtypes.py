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
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from aclnn_cts.reports.model.finding_tally import FindingTallies
from aclnn_cts.reports.model.findings import deciding_dtypes
from tests.support.build_records import group_records

OPERATOR = "aclnnSoftmaxBackward"


def record(number: int, grad: str, out: str, *, failed: bool) -> Record:
    shape = (number + 1,)
    tensors = {"gradOutput": Tensor(shape, grad), "output": Tensor(shape, grad), "out": Tensor(shape, out)}
    case = Case(OPERATOR, {**tensors, "dim": 0}, Target(product="atlas-a2"))
    trial = Trial("values", case)
    kind = Fault.REJECTED if failed else ""
    return with_whole_fingerprint(
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
    judged: Counter[tuple[str, str, str, str]] = Counter()
    records = [
        record(number, grad, out, failed=number < len(failing))
        for number, (grad, out) in enumerate([*failing, *passing])
    ]
    for item in records:
        out = item.fingerprint.dtype
        judged.update(("values", out, name, tensor.dtype) for name, tensor in item.trial.case.tensors())
    tallies = FindingTallies([group_records(records[: len(failing)])])
    for item in records[: len(failing)]:
        tallies.add(item, 0)
    [tally] = tallies.tallies.values()
    assert deciding_dtypes(tally, judged) == named
