"""Run directories of chosen records, for what a real run would seldom meet."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from aclnn_cts.core.case import Case, Data, Origin, Tensor
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import Outcome
from aclnn_cts.core.target import Target
from aclnn_cts.core.trial import Trial
from aclnn_cts.core.verdict import Deviation, Record, Result, Verdict
from aclnn_cts.findings.findings import findings_in
from aclnn_cts.findings.fingerprint import with_whole_fingerprint
from aclnn_cts.runs.possible import possible_state
from aclnn_cts.runs.programs import program_maker
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import load_specs, package_folder
from aclnn_cts.speclang.model import Spec
from aclnn_cts.store.manifest import Fact, Manifest
from aclnn_cts.store.run_verdict import RunPlan, Terms
from aclnn_cts.store.run_writer import create_run
from aclnn_cts.store.summary import Summary
from tests.support.build_records import SOFTMAX, make_manifest

BINS = 18
VALID = Origin(kind="valid")


def softmax_case(
    seed: int = 0,
    *,
    dtype: str = "FLOAT",
    dim: int = 1,
    strided: bool = False,
    origin: Origin = VALID,
    product: str = "atlas-a2",
    null: str = "",
) -> Case:
    data = Data(recipe="normal", seed=seed)
    strides = (5, 1) if strided else None
    arguments: dict[str, Any] = {
        "gradOutput": Tensor((2, 3), dtype, data=data),
        "output": Tensor((2, 3), dtype, data=data),
        "dim": dim,
        "out": Tensor((2, 3), dtype, strides=strides, storage_shape=(2, 5) if strided else None),
    }
    if null:
        arguments[null] = None
    return Case(SOFTMAX, arguments, Target(product=product), origin=origin)


def record(  # noqa: PLR0913 - what a test wants to say of it
    case: Case,
    *,
    check: str = "values",
    result: str = Result.PASSED,
    kind: str = "",
    message: str = "",
    output: str = "",
    constraint: str = "",
    waiver: str = "",
    error_ratio: float = 0.25,
    status: int | None = 0,
    parameters: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
) -> Record:
    trial = Trial(check, case, parameters or {})
    deviation = Deviation(
        output="out",
        index=(0, 1),
        got=1.5,
        expected=1.25,
        bound=1.0,
        error_ratio=error_ratio,
        beyond=int(error_ratio > 1),
        elements=6,
        histogram=(6, *(0,) * (BINS - 1)),
    )
    out = case.arguments["out"]
    dtype = out.dtype if isinstance(out, Tensor) else ""
    return with_whole_fingerprint(
        Record(
            trial_id=trial.id,
            trial=trial,
            attempts=((Outcome(phase_one=status, phase_two=0 if status == 0 else None),),),
            verdict=Verdict(
                result=result,
                kind=kind,
                message=message,
                basis="assumed",
                deviations=(deviation,) if status == 0 else (),
                facts=facts or {},
            ),
            fingerprint=Fingerprint(SOFTMAX, check, kind, constraint, output=output, dtype=dtype),
            waiver=waiver,
        )
    )


def synthetic_run(
    path: Path,
    records: Sequence[Record],
    *,
    finish: bool = True,
    changes: dict[str, Any] | None = None,
    environment: dict[str, Fact] | None = None,
    spec: bytes | None = None,
) -> Path:
    """A run of softmax on the shipped spec (or on `spec`); all that is recorded was planned."""
    content = spec or (package_folder() / "softmax_backward.yaml").read_bytes()
    manifest = make_manifest(**{"profile": "standard", "environment": environment or {}} | (changes or {}))
    softmax = _softmax()
    terms = Terms(_plan(manifest))
    specs = {"softmax_backward.yaml": content}
    programs = program_maker(load_specs(), ())
    with create_run(
        path, manifest=manifest, specs=specs, terms=terms, grouping=findings_in, programs=programs
    ) as writer:
        coverage = Summary()
        for item in records:
            writer.summary.plan(SOFTMAX, item.trial.case.origin.kind)
            coverage.cover([SOFTMAX], [evaluate(softmax, item.trial.case)])
        writer.append(records, coverage=coverage)
        writer.append_part(Summary(), state=_possible(manifest.target))
        if finish:
            writer.finish(seconds=1.5)
    return path


@functools.cache
def _possible(target: Target) -> dict[str, object]:
    return possible_state([_softmax()], target)


def _plan(manifest: Manifest) -> RunPlan:
    """What a run of that manifest is measured by. A profile's whole plan is not made here: all given is all asked."""
    if manifest.is_campaign:
        return RunPlan.CAMPAIGN
    return RunPlan.STATUSES if manifest.settings.get("phases") == 1 else RunPlan.CHECK


@functools.cache
def _softmax() -> Spec:
    return load_specs()[SOFTMAX]


Struct = TypeVar("Struct", bound=msgspec.Struct)


def renamed(item: Struct, **changes: Any) -> Struct:
    return msgspec.structs.replace(item, **changes)
