"""Which clause the terminal quotes beside a finding."""

from __future__ import annotations

from typing import Any

import pytest

from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import Result
from aclnn_cts.findings.finding_text import quoted_clause
from aclnn_cts.speclang.load import load_specs
from tests.support.build_records import make_record

SPECS = load_specs()
CONV = "aclnnConvTbcBackward"


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"kind": Fault.VALUE, "output": "out"}, "function.1"),
        ({"kind": Fault.VALUE, "output": "gradWeight", "operator": CONV}, "function.4"),
        ({"kind": Fault.VALUE, "output": "gradBias", "operator": CONV}, "function.5"),
        ({"kind": Fault.REJECTED}, None),
        ({"kind": Fault.REJECTED, "check": "example"}, "example.1"),
        ({"kind": Fault.INPUT}, "prototype.9"),
        ({"kind": Fault.STATUS, "check": "status", "clause": "dim.range"}, "returns.6"),
        ({"kind": Fault.STATUS, "check": "status", "clause": "output.shape"}, "params.output.5"),
        ({"kind": Fault.VALUE, "check": "example", "output": "out"}, "example.1"),
        ({"kind": Fault.VALUE, "check": "determinism", "output": "out"}, "function.1"),
        (
            {"kind": Fault.CRASH, "check": "status", "clause": "interface.executor.null"},
            "executor.2",
        ),
        ({"kind": "unheard of", "clause": "gone"}, None),
    ],
)
def test_the_clause_that_a_finding_contradicts_is_quoted(fields: dict[str, Any], at: str | None) -> None:
    found = quoted_clause(make_record(result=Result.FAILED, **fields), SPECS)
    assert (None if found is None else found.at) == at


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"shared": "not contiguous(gradOutput)"}, "params.gradOutput.3"),
        ({"shared": "dim(gradOutput, -1) > 7 and not contiguous(gradOutput)"}, "params.gradOutput.3"),
        ({"shared": "dim(gradOutput, -1) > 7"}, None),
        ({}, None),
    ],
)
def test_rejection_is_explained_by_the_clause_on_what_rejected_calls_share(
    given: dict[str, Any], at: str | None
) -> None:
    record = make_record(result=Result.FAILED, kind=Fault.REJECTED)
    found = quoted_clause(record, SPECS, **given)
    assert (None if found is None else found.at) == at
