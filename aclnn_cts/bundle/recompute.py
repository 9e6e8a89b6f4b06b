"""A record judged again from its recorded outputs, with data made anew from the recipes: no device takes part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from aclnn_cts.checks.life_cycle import asked_calls
from aclnn_cts.checks.registry import check
from aclnn_cts.core.case import Case, Tensor
from aclnn_cts.core.dtypes import numpy_dtype
from aclnn_cts.core.errors import HarnessError
from aclnn_cts.core.fault_words import fault_name
from aclnn_cts.core.outcome import Ended, Outcome
from aclnn_cts.core.printable import shown
from aclnn_cts.core.verdict import Record, Result, Verdict
from aclnn_cts.execution.executor import Performed
from aclnn_cts.execution.judges import Judges
from aclnn_cts.findings.fingerprint import fingerprinted
from aclnn_cts.generate.contents import case_arrays
from aclnn_cts.speclang.evaluate import evaluate
from aclnn_cts.speclang.load import Specs
from aclnn_cts.speclang.model import Spec

_TOLERANCE = 1e-6
"""Relative difference of shares that another release of NumPy may make in a sum in float64."""

Blob = Callable[[str], bytes]


def recorded_outputs(record: Mapping[str, Any]) -> tuple[str, ...]:
    """SHA-256 of every output that judging a record (as JSON) again takes; none where there is nothing to judge."""
    if record["verdict"]["result"] == Result.ERROR:
        return ()
    outcomes = record["attempts"][0] if record["attempts"] else ()
    return tuple(
        state["sha256"]
        for outcome in outcomes
        if _succeeded(msgspec.convert(outcome, Outcome, strict=False))
        for state in outcome.get("buffers", {}).values()
        if state.get("sha256")
    )


def _succeeded(outcome: Outcome) -> bool:
    return outcome.ended == Ended.RETURNED and not outcome.status


def difference(record: Record, blob: Blob, *, specs: Specs, judges: Judges) -> str:
    """Why the verdict is not the recorded one; empty where it is. Oracles, models and tolerances are this program's.

    `blob` gives the bytes of a recorded output by its SHA-256. Raises HarnessError where no oracle is known, or a blob
    has another size than its output.
    """
    trial = record.trial
    spec = specs[trial.case.operator]
    entry = check(trial.check, where="trial")
    asked = [call.case for call in asked_calls(trial, spec, entry.calls(trial, spec), known=frozenset())]
    outcomes = record.attempts[0]
    if len(asked) != len(outcomes):
        return f"{len(outcomes)} calls are recorded; the trial takes {len(asked)}"
    performed = [_performed(spec, case, outcome, blob) for case, outcome in zip(asked, outcomes, strict=True)]
    verdict = entry.judge(trial, performed, judges.of(spec), evaluate(spec, trial.case))
    return _difference(record.verdict, verdict) or _other_fingerprint(record, verdict)


def _performed(spec: Spec, case: Case, outcome: Outcome, blob: Blob) -> Performed:
    if not _succeeded(outcome) or not any(state.sha256 for state in outcome.buffers.values()):
        return Performed(case=case, outcome=outcome)
    outputs = spec.output_tensors(case)
    got = {
        name: _output(name, tensor, outcome.buffers[name].sha256, blob)
        for name, tensor in case.tensors()
        if name in outputs and name in outcome.buffers and outcome.buffers[name].sha256
    }
    return Performed(case=case, outcome=outcome, arrays=case_arrays(case, spec.given_inputs(case)), got=got)


def _output(name: str, tensor: Tensor, digest: str, blob: Blob) -> NDArray[Any]:
    content = blob(digest)
    dtype = numpy_dtype(tensor.dtype)
    if len(content) != tensor.numel * dtype.itemsize:
        raise HarnessError(f"{name}: {len(content)} bytes are recorded; expected {tensor.numel * dtype.itemsize}")
    return np.frombuffer(content, dtype=dtype).reshape(tensor.shape)


def _difference(recorded: Verdict, found: Verdict) -> str:
    was, now = (" ".join(part for part in (item.result, fault_name(item.kind)) if part) for item in (recorded, found))
    if was != now:
        return f"it is recorded as {was}, and judged again it is {now} ({found.message})"
    shares = {item.output: item.share for item in found.deviations}
    for item in recorded.deviations:
        share = shares.get(item.output, math.nan)
        if not _close(item.share, share):
            return (
                f"{item.output}: an error of {item.share!r} of its bound is recorded, and judged again it is {share!r}"
            )
    return ""


def _other_fingerprint(record: Record, found: Verdict) -> str:
    """Why the looks of the wrong values are not the recorded ones; empty where they are."""
    verdict = msgspec.structs.replace(record.verdict, deviations=found.deviations)
    now = fingerprinted(msgspec.structs.replace(record, verdict=verdict)).fingerprint
    was = record.fingerprint
    return "" if was == now else f"its fingerprint is {shown(was.text())}, and judged again it is {shown(now.text())}"


def _close(recorded: float, found: float) -> bool:
    if math.isfinite(recorded) and math.isfinite(found):
        return abs(recorded - found) <= _TOLERANCE * max(abs(recorded), abs(found))
    return repr(recorded) == repr(found)
