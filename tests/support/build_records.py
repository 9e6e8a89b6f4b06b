"""Records as a run would make them, for the tests of what stores and counts them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from aclnn_cts.core.case import Case, Data, Origin, Tensor
from aclnn_cts.core.finding import Finding
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import BufferState, Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Deviation, Record, Result, Verdict
from aclnn_cts.findings.findings import Failures
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from aclnn_cts.store.manifest import Manifest

SOFTMAX = "aclnnSoftmaxBackward"
EMBEDDING = "aclnnEmbeddingDenseBackward"


def make_record(  # noqa: PLR0913 - each test changes another field
    number: int = 0,
    *,
    operator: str = SOFTMAX,
    result: str = Result.PASSED,
    kind: str = "",
    case_kind: str = "valid",
    check: str = "values",
    constraint: str | None = None,
    clause: str = "",
    output: str = "",
    dtype: str = "FLOAT",
    mode: str = "",
    product: str = "atlas-a2",
    waiver: str = "",
    error_ratio: float = 0.25,
    recipe: str | None = "normal",
    facts: Mapping[str, Any] | None = None,
) -> Record:
    """One record; `number` makes its case different from others."""
    case = Case(
        operator=operator,
        target=Target(product=product),
        arguments={
            "gradOutput": Tensor((2, number + 1), dtype, data=Data(recipe=recipe, seed=number)),
            "dim": 1,
            "scale": math.nan,
            "sizes": (1, 2),
            "optional": None,
            "out": Tensor((2, number + 1), dtype, strides=(1, 2)),
        },
        origin=Origin(kind=case_kind, constraint=constraint),
    )
    trial = Trial(check=check, case=case, parameters={"repeat": 2})
    outcome = Outcome(phase_one=0, phase_two=0, buffers={"out": BufferState(sha256="ab" * 32)}, seconds=0.001)
    deviation = Deviation(
        output="out", index=(0, 1), got=1.5, expected="inf", bound=0.0, error_ratio=error_ratio, elements=2
    )
    return with_whole_fingerprint(
        Record(
            trial_id=trial.id,
            trial=trial,
            attempts=((outcome,),),
            verdict=Verdict(result=result, kind=kind, message="m", deviations=(deviation,), facts=facts or {}),
            fingerprint=Fingerprint(operator, check, kind, clause, output=output, mode=mode, dtype=dtype),
            clauses=("params.gradOutput.1",),
            waiver=waiver,
            seconds=0.002,
            where={"adapter": "torch", "worker": "0"},
        )
    )


def make_manifest(**changes: Any) -> Manifest:
    """A manifest of a small run."""
    fields: dict[str, Any] = {
        "command": "run",
        "operators": (SOFTMAX,),
        "adapter": "torch",
        "seed": 7,
        "started": "2026-01-02T03:04:05+00:00",
    }
    return Manifest(**(fields | changes))


def group_records(records: Iterable[Record]) -> tuple[Finding, ...]:
    """The findings of records; those that passed say which operators enforce constraints."""
    failures = Failures()
    for record in records:
        failures.add(record)
    return failures.findings
