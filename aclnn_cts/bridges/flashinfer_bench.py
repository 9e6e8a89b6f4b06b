"""flashinfer-bench: verdicts as its Evaluation, and an evaluator that takes the place of its comparison.

    from flashinfer_bench.bench.evaluators import registry
    from flashinfer_bench.bench.evaluators.default import DefaultEvaluator

    class Evaluator(BoundEvaluator, DefaultEvaluator):
        pass

    registry._EVALUATORS.append(Evaluator)

The format is that of flashinfer-bench 0.1.2 (flashinfer_bench/data/trace.py).
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import numpy as np

from aclnn_cts import __version__
from aclnn_cts.candidates.arrays import as_array
from aclnn_cts.candidates.check import CheckResult, check, shipped_specs
from aclnn_cts.candidates.verdict import Judgement
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.verdict import RunVerdict

# ruff: noqa: ANN401 - its classes have no types here

EXTRA = "aclnn_cts"
"""The key of what is ours in `extra`."""
TAG = "aclnn:"
"""Before an operator's name, in the tags of a Definition whose name is another."""


class FlashInferStatus(str, Enum):
    """Its EvaluationStatus, as far as a judgement has it."""

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"


_STATUSES: Mapping[str, FlashInferStatus] = {
    Fault.SHAPE: FlashInferStatus.INCORRECT_SHAPE,
    Fault.DTYPE: FlashInferStatus.INCORRECT_DTYPE,
    Fault.REJECTED: FlashInferStatus.RUNTIME_ERROR,
    Fault.CRASH: FlashInferStatus.RUNTIME_ERROR,
    Fault.HANG: FlashInferStatus.TIMEOUT,
}
"""By fault; all others are numerical."""


def evaluation(
    judgement: Judgement, *, latency_ms: float | None = None, reference_latency_ms: float = 0.0, hardware: str = ""
) -> dict[str, Any]:
    """A judgement as the JSON of an Evaluation: ratio, clause, seed and counts stand in `correctness.extra`.

    A status that has no `correctness` has them as JSON in the last line of `log`.

    - `latency_ms`: of one call; None: the mean over the judgement's calls, which says little of speed.
    - `reference_latency_ms`: 0 where nothing was measured; the speed-up is 0 then.
    - `hardware`: default: this machine's processor.

    An inconclusive judgement is a RUNTIME_ERROR, and `log` says why: nothing was shown to be right.
    """
    found = judgement.findings[0] if judgement.findings else None
    status = FlashInferStatus.PASSED if judgement.ok else FlashInferStatus.RUNTIME_ERROR
    if judgement.verdict == RunVerdict.FAILS.value:
        status = _STATUSES.get(found.fault if found else "", FlashInferStatus.INCORRECT_NUMERICAL)
    extra = {
        "verdict": judgement.verdict,
        "operator": judgement.operator,
        "seed": judgement.seed,
        # Of calls that conform, a judgement keeps no ratio.
        **({} if found is None else {"error_ratio": found.error_ratio}),
        "fault": "" if found is None else found.fault,
        "clause": "" if found is None else found.clause,
        "planned": judgement.planned,
        "passed": judgement.passed,
        "failed": judgement.failed,
        "version": __version__,
    }
    document: dict[str, Any] = {
        "status": status.value,
        "environment": {"hardware": hardware or platform.processor() or platform.machine(), "libs": _libraries()},
        "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "log": judgement.reason,
    }
    if status in (FlashInferStatus.PASSED, FlashInferStatus.INCORRECT_NUMERICAL):
        # The ratio says how wrong it is: errors without a bound are not kept. What is left out is read as 0.
        document["correctness"] = {
            "max_relative_error": "NaN",
            "max_absolute_error": "NaN",
            "extra": {EXTRA: extra},
        }
    else:
        document["log"] = f"{judgement.reason}\n{json.dumps({EXTRA: extra})}".lstrip()
    if status is FlashInferStatus.PASSED:
        calls = max(judgement.passed + judgement.failed + judgement.unjudged, 1)
        latency = judgement.call_seconds * 1000 / calls if latency_ms is None else latency_ms
        document["performance"] = {
            "latency_ms": latency,
            "reference_latency_ms": reference_latency_ms,
            "speedup_factor": reference_latency_ms / latency if latency else 0.0,
        }
    return document


def _libraries() -> dict[str, str]:
    return {"aclnn-cts": __version__, "numpy": np.__version__}


def operator_of(definition: Any) -> str:
    """The operator of a Definition, by its name or a tag `aclnn:softmax_backward`; empty where there is none."""
    names = [definition.name, *(tag.removeprefix(TAG) for tag in definition.tags if tag.startswith(TAG))]
    for name in names:
        try:
            return shipped_specs("").find(name, where="definition").operator
        except UsageError:
            continue
    return ""


class BoundEvaluator:
    """Holds a solution to the derived bound of an operator instead of a constant; goes before its DefaultEvaluator."""

    @classmethod
    def can_evaluate(cls, definition: Any) -> bool:
        """Whether the definition names an operator with a spec."""
        return bool(operator_of(definition))

    @classmethod
    def check_correctness(
        cls,
        definition: Any,
        sol_runnable: Any,
        inputs: Sequence[Sequence[Any]],
        ref_outputs: Sequence[Sequence[Any]],
        cfg: Any,  # noqa: ARG003 - its tolerances are not ours
        log_path: str,
        device: str,
    ) -> tuple[Any, Any]:
        """Its Correctness, and an Evaluation where the solution fails. The reference's outputs are not looked at."""
        from flashinfer_bench.bench.utils import (  # noqa: PLC0415 - only where it calls us
            allocate_outputs,
            make_eval,
            normalize_result,
        )
        from flashinfer_bench.data import Correctness, EvaluationStatus  # noqa: PLC0415 - as above

        operator, largest = operator_of(definition), None
        for given, _ in zip(inputs, ref_outputs, strict=True):
            try:
                if sol_runnable.metadata.destination_passing_style:
                    results = allocate_outputs(definition, given, device)
                    sol_runnable(*given, *results)
                else:
                    results = normalize_result(definition, sol_runnable(*given), device)
            except Exception as error:  # noqa: BLE001 - whatever a solution raises is its failure
                status = EvaluationStatus.RUNTIME_ERROR
                return None, make_eval(status=status, device=device, log_path=log_path, extra_msg=str(error))
            found = check_solution(operator, definition, given, results)
            # A call that fails has no ratio where its shape does not fit.
            if largest is None or not found.ok or _ratio(found) >= _ratio(largest):
                largest = found
            if not found.ok:
                break
        made = Correctness(**correctness_fields(largest)) if largest is not None else None
        if largest is None or largest.ok:
            return made, None
        # As `evaluation` has it: what breaks a rule of the document shows nothing to be right.
        unknown = (
            FlashInferStatus.RUNTIME_ERROR
            if largest.verdict == RunVerdict.INCONCLUSIVE.value
            else FlashInferStatus.INCORRECT_NUMERICAL
        )
        status = EvaluationStatus(_STATUSES.get(largest.fault, unknown).value)
        numerical = status is EvaluationStatus.INCORRECT_NUMERICAL
        return made if numerical else None, make_eval(
            status=status, device=device, log_path=log_path, correctness=made if numerical else None
        )


def check_solution(operator: str, definition: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> CheckResult:
    """One call of a solution against the document; inputs and outputs in the order of the definition."""
    named = {name: _plain(value) for name, value in zip(definition.inputs, inputs, strict=True)}
    return check(operator, named, dict(zip(definition.outputs, map(as_array, outputs), strict=True)))


def _plain(value: Any) -> Any:
    return as_array(value) if hasattr(value, "shape") else value


def correctness_fields(found: CheckResult) -> dict[str, Any]:
    """A check as the fields of its Correctness: errors of the worst element, and what is ours in `extra`."""
    absolute = relative = math.nan
    if found.worst is not None:
        got, value = float(found.worst.got), float(found.worst.expected)
        absolute = abs(got - value)
        relative = absolute / abs(value) if value else (math.inf if absolute else 0.0)
    extra = {
        "verdict": found.verdict,
        "operator": found.operator,
        "error_ratio": _ratio(found),
        "fault": found.fault,
        "rule": found.rule,
        "clause": found.clause,
        "reason": found.reason,
    }
    return {"max_relative_error": relative, "max_absolute_error": absolute, "extra": {EXTRA: extra}}


def _ratio(found: CheckResult) -> float:
    return 0.0 if found.worst is None else float(found.worst.error_ratio)
