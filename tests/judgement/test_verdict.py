"""Each kind of verdict, its order, and the sentence that a person reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.expected import Expected, ExpectedOutput
from aclnn_cts.core.faults import Fault
from aclnn_cts.core.outcome import ANY_ERROR, SUCCESS, BufferState, CallEnd, Outcome
from aclnn_cts.core.verdict import ALSO_STATUS, Judged, Observation, OutOfScope, Result, SkipReason, Verdict
from aclnn_cts.judgement.compare import compare_all
from aclnn_cts.judgement.model import load_precision
from aclnn_cts.judgement.verdict import compared_outputs, conclude, fingerprint, judge_form, judge_status
from tests.support.counted import counted

OUTPUTS = {"dxOut": Tensor(shape=(2, 3), dtype="FLOAT16"), "dgammaOut": Tensor(shape=(3,), dtype="FLOAT")}
MODELS = load_precision().models(
    operator="aclnnRmsNormGrad", dtypes={name: tensor.dtype for name, tensor in OUTPUTS.items()}
)
DX = np.array([[0.5, -1.0, 2.0], [0.25, 3.0, -0.125]])
DGAMMA = np.array([1.0, 2.0, -3.0])
SUCCEEDED = Outcome(phase_one=0, phase_two=0, synchronised=0)


def summed(value: np.ndarray) -> ExpectedOutput:
    return counted(value, 4, partial=np.abs(value))


EXPECTED = {"dxOut": summed(DX), "dgammaOut": summed(DGAMMA)}


def right() -> dict[str, np.ndarray]:
    return {"dxOut": DX.astype(np.float16), "dgammaOut": DGAMMA.astype(np.float32)}


def values(
    outcome: Outcome = SUCCEEDED,
    got: dict[str, Any] | None = None,
    *,
    expected: Expected = EXPECTED,
    outputs: dict[str, Tensor] = OUTPUTS,
    allowed: tuple[str, ...] = (SUCCESS,),
    mode: str = "",
) -> Verdict:
    got = right() if got is None else got
    verdict = judge_form(outcome=outcome, got=got, outputs=outputs, allowed=allowed, mode=mode)
    if verdict is not None:
        return verdict
    asked = compared_outputs(expected=expected, got=got, outputs=outputs, models=MODELS, operands={})
    return conclude(dict(zip(outputs, compare_all(asked), strict=True)), MODELS, mode)


def conclusion(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.result, verdict.kind, verdict.message


def test_right_values_pass_with_figures() -> None:
    verdict = values(mode="KEEP_DTYPE")
    assert conclusion(verdict) == (Result.PASSED, "", "")
    assert [deviation.output for deviation in verdict.deviations] == ["dxOut", "dgammaOut"]
    assert (verdict.basis, verdict.mode) == ("assumed", "KEEP_DTYPE")
    assert values(Outcome()).result == Result.PASSED, "an implementation without statuses"


@pytest.mark.parametrize(
    ("outcome", "result", "kind", "message"),
    [
        (
            Outcome(ended=CallEnd.SIGNAL, signal=11, message="Segmentation fault\nmore"),
            Result.FAILED,
            Fault.CRASH,
            "the process died by signal 11 during the call: Segmentation fault",
        ),
        (Outcome(ended=CallEnd.EXIT), Result.FAILED, Fault.CRASH, "the process ended by itself during the call"),
        (
            Outcome(ended=CallEnd.MEMORY_LIMIT),
            Result.FAILED,
            Fault.CRASH,
            "the process grew beyond its memory limit during the call",
        ),
        (
            Outcome(ended=CallEnd.DEVICE_FAULT, synchronised=507015),
            Result.FAILED,
            Fault.CRASH,
            "the device reported a fault during the call",
        ),
        (
            Outcome(ended=CallEnd.TIME_LIMIT, seconds=30.0),
            Result.FAILED,
            Fault.HANG,
            "the call did not come back within 30 s",
        ),
        (
            Outcome(ended=CallEnd.INEXPRESSIBLE, message="no BF16 here"),
            Result.SKIPPED,
            SkipReason.INEXPRESSIBLE,
            "no BF16 here",
        ),
        (Outcome(ended=CallEnd.NOT_RUN, message="disk full"), Result.ERROR, "", "the call was not run: disk full"),
        (
            Outcome(ended=CallEnd.RAISED, message="RuntimeError: expected 3 dimensions"),
            Result.FAILED,
            Fault.REJECTED,
            "the implementation raised where the document promises ACLNN_SUCCESS: RuntimeError: expected 3 dimensions",
        ),
        (
            Outcome(phase_one=161002, message="dtype"),
            Result.FAILED,
            Fault.REJECTED,
            "phase one returned ACLNN_ERR_PARAM_INVALID (161002) where the document promises ACLNN_SUCCESS: dtype",
        ),
        (
            Outcome(phase_one=0, phase_two=0, synchronised=507046),
            Result.FAILED,
            Fault.REJECTED,
            "synchronisation returned aclError 507046 where the document promises ACLNN_SUCCESS",
        ),
        (
            Outcome(phase_one=0, phase_two=0, buffers={"dgammaOut": BufferState(unwritten=2)}),
            Result.FAILED,
            Fault.UNWRITTEN,
            "dgammaOut: 2 of 3 elements were never written and still hold the fill pattern",
        ),
        (
            Outcome(phase_one=0, phase_two=0, buffers={"dxOut": BufferState(guard_after=8, gap=2)}),
            Result.FAILED,
            Fault.GUARD,
            "dxOut: the call changed 8 bytes behind its memory, 2 bytes inside its storage but outside its view",
        ),
        (
            Outcome(phase_one=0, phase_two=0, buffers={"x": BufferState(changed=16)}),
            Result.FAILED,
            Fault.INPUT,
            "x: the call changed 16 bytes of this input",
        ),
    ],
)
def test_how_a_call_ended_comes_before_its_values(outcome: Outcome, result: str, kind: str, message: str) -> None:
    wrong = {name: array + 1 for name, array in right().items()}
    assert conclusion(values(outcome, wrong)) == (result, kind, message)


def test_the_order_of_faults() -> None:
    everything = BufferState(unwritten=1, guard_before=1, changed=1)
    outcome = Outcome(phase_one=0, phase_two=0, buffers={"dxOut": everything})
    assert values(outcome, right() | {"dxOut": DX}).kind == Fault.DTYPE
    assert values(outcome).kind == Fault.UNWRITTEN
    assert values(Outcome(phase_one=561002, buffers={"dxOut": everything})).kind == Fault.REJECTED


def test_shape_dtype_and_missing_outputs() -> None:
    assert conclusion(values(got=right() | {"dxOut": DX.astype(np.float16).T})) == (
        Result.FAILED,
        Fault.SHAPE,
        "dxOut has the shape [3, 2], expected [2, 3]",
    )
    assert conclusion(values(got=right() | {"dxOut": DX.astype(np.float32)})) == (
        Result.FAILED,
        Fault.DTYPE,
        "dxOut has the dtype float32, expected FLOAT16 (float16)",
    )
    assert values(got={"dxOut": right()["dxOut"]}).message == "dgammaOut: the call returned no such output"


def test_an_allowed_error_has_no_values_to_judge() -> None:
    allowed = (ANY_ERROR, SUCCESS)
    verdict = values(Outcome(phase_one=561002), {}, allowed=allowed)
    assert conclusion(verdict) == (
        Result.SKIPPED,
        SkipReason.OPEN,
        (
            "phase one returned ACLNN_ERR_INNER_TILING_ERROR (561002); the document leaves the status open, and there "
            "are no values to judge"
        ),
    )
    outcome = Outcome(phase_one=561002, buffers={"x": BufferState(changed=1)})
    assert values(outcome, {}, allowed=allowed).kind == Fault.INPUT


def test_a_wrong_value_and_its_sentence() -> None:
    got = right()
    got["dxOut"][1, 0] = 0.5
    verdict = values(got=got, mode="USE_HF32")
    assert conclusion(verdict) == (
        Result.FAILED,
        Fault.VALUE,
        (
            "dxOut[1, 0] is 0.5, expected 0.25 ± 0.000122, an error of 2.05e+03 times the bound; 1 of 6 elements at "
            "fault; compute model: operands as stored, accumulation in FLOAT, output in FLOAT16 (basis: assumed)"
        ),
    )
    assert (
        fingerprint(verdict, operator="aclnnRmsNormGrad", check="values", dtype="FLOAT16").text()
        == "aclnnRmsNormGrad | values | value | dxOut | USE_HF32 | FLOAT16"
    )


def test_beyond_the_model_but_not_beyond_coarser_arithmetic() -> None:
    got = right()
    got["dxOut"][0, 2] = np.nextafter(np.float16(2), np.float16(3))
    verdict = values(got=got)
    assert conclusion(verdict) == (
        Result.FAILED,
        Fault.MODEL,
        (
            "dxOut[0, 2] is 2.00195312, expected 2 ± 0.000977, an error of 2 times the bound; 1 of 6 elements at "
            "fault; coarser arithmetic in the promised formats would explain it, the compute model does not: operands "
            "as stored, accumulation in FLOAT, output in FLOAT16 (basis: assumed)"
        ),
    )
    got["dgammaOut"][2] = 3.0
    verdict = values(got=got)
    assert verdict.kind == Fault.VALUE, "the worse of two faults"
    assert verdict.message.startswith("dgammaOut[2] is 3, expected -3 ± ")
    assert verdict.message.endswith("; also at fault: dxOut")


def test_special_values_and_exact_data_in_words() -> None:
    got = right()
    got["dgammaOut"][0] = np.nan
    assert conclusion(values(got=got)) == (
        Result.FAILED,
        Fault.SPECIAL,
        "dgammaOut[0] is nan, expected 1; 1 of 3 elements at fault",
    )
    exact = EXPECTED | {"dgammaOut": ExpectedOutput(value=DGAMMA, partial=np.abs(DGAMMA), exact=True)}
    got["dgammaOut"][0] = 2.0
    assert values(got=got, expected=exact).message == (
        "dgammaOut[0] is 2, expected 1 which must be exact; 1 of 3 elements at fault; compute model: operands as "
        "stored, accumulation in FLOAT, output in FLOAT (basis: assumed)"
    )


def test_nothing_judged_is_no_pass() -> None:
    def left_open(value: np.ndarray) -> ExpectedOutput:
        return ExpectedOutput(value=value, open=np.ones(value.shape, np.bool_))

    verdict = values(expected={"dxOut": left_open(DX), "dgammaOut": left_open(DGAMMA)})
    assert conclusion(verdict) == (
        Result.SKIPPED,
        SkipReason.OPEN,
        "9 of 9 elements: the document leaves open; too few were compared for a verdict",
    )


@pytest.mark.parametrize(("left_open", "passes"), [(0, True), (4, True), (5, False)])
def test_a_pass_takes_at_least_half_of_all_elements(left_open: int, passes: bool) -> None:
    """`dxOut` has 6 elements and `dgammaOut` 3."""
    unsaid = np.arange(DX.size).reshape(DX.shape) < left_open
    verdict = values(expected={**EXPECTED, "dxOut": ExpectedOutput(value=DX, open=unsaid)})
    assert (verdict.result == Result.PASSED) is passes
    assert verdict.judged == (Judged.VALUES if passes else "")


def test_outputs_without_elements_pass_by_their_form() -> None:
    empty = np.zeros((0, 3), np.float32)
    verdict = values(
        got={"dxOut": empty},
        expected={"dxOut": ExpectedOutput(value=empty.astype(np.float64))},
        outputs={"dxOut": Tensor((0, 3), "FLOAT")},
    )
    assert (verdict.result, verdict.judged) == (Result.PASSED, Judged.FORM)


INVALID = ("ACLNN_ERR_PARAM_INVALID",)
REFUSED = Outcome(phase_one=161002)
ACCEPTED = Outcome(phase_one=0, phase_two=0)


def status(
    outcome: Outcome,
    strength: str = "listed",
    allowed: tuple[str, ...] = INVALID,
    judge: Callable[[], Verdict] | None = None,
    *,
    has_statuses: bool = True,
) -> Verdict:
    return judge_status(
        outcome=outcome,
        allowed=allowed,
        strength=strength,
        constraint="dim.range",
        values=judge,
        has_statuses=has_statuses,
    )


def test_listed_statuses() -> None:
    assert status(REFUSED).result == Result.PASSED
    assert conclusion(status(Outcome(phase_one=161001))) == (
        Result.FAILED,
        Fault.STATUS,
        "phase one returned ACLNN_ERR_PARAM_NULLPTR (161001), expected ACLNN_ERR_PARAM_INVALID as dim.range is broken",
    )
    assert status(ACCEPTED).message == (
        "synchronisation returned ACLNN_SUCCESS (0), expected ACLNN_ERR_PARAM_INVALID as dim.range is broken"
    ).replace("synchronisation", "phase two")
    assert status(Outcome(phase_one=999), allowed=(ANY_ERROR,)).result == Result.PASSED
    assert status(ACCEPTED, "limit", (ANY_ERROR,)).kind == Fault.STATUS, "an error without a name is still an error"


def test_memory_and_crashes_outrank_statuses() -> None:
    assert status(Outcome(ended=CallEnd.SIGNAL, signal=6), "open").kind == Fault.CRASH
    stray = Outcome(phase_one=161002, buffers={"out": BufferState(guard_before=4)})
    assert status(stray).kind == Fault.GUARD
    untouched = Outcome(phase_one=161002, buffers={"out": BufferState(unwritten=12)})
    assert status(untouched).result == Result.PASSED, "nothing has to be written after an error"


def test_a_raise_is_no_status() -> None:
    raised = Outcome(ended=CallEnd.RAISED, message="ValueError")
    assert status(raised).message == (
        "the call raised and no status came back, expected ACLNN_ERR_PARAM_INVALID as dim.range is broken"
    )


def test_open_constraints_are_never_a_fault_of_status() -> None:
    for outcome in (REFUSED, ACCEPTED, Outcome(ended=CallEnd.RAISED)):
        verdict = status(outcome, "open", (ANY_ERROR, SUCCESS))
        assert (verdict.result, verdict.kind) == (Result.SKIPPED, SkipReason.OPEN)
    assert status(REFUSED, "open").facts == {"status": "ACLNN_ERR_PARAM_INVALID"}


def test_where_accuracy_alone_is_withdrawn_a_refusal_is_a_fault_and_values_are_not_judged() -> None:
    def unasked() -> Verdict:
        raise AssertionError("values are judged")

    assert status(ACCEPTED, "accuracy", (SUCCESS,), judge=unasked).result == Result.PASSED
    refused = status(REFUSED, "accuracy", (SUCCESS,))
    assert (refused.result, refused.kind) == (Result.FAILED, Fault.STATUS)
    assert refused.message == (
        "phase one returned ACLNN_ERR_PARAM_INVALID (161002), expected ACLNN_SUCCESS as dim.range is broken"
    )


def test_without_statuses_acceptance_is_a_fact() -> None:
    verdict = status(Outcome(ended=CallEnd.RAISED), has_statuses=False)
    assert (verdict.result, verdict.kind) == (Result.OUT_OF_SCOPE, OutOfScope.STATUSES)
    assert verdict.facts == {"accepted": False}
    verdict = status(Outcome(), has_statuses=False)
    assert verdict.facts == {"accepted": True}
    assert verdict.message == "accepted by an implementation that returns no status: dim.range"


REJECTED = Outcome(ended=CallEnd.RAISED, message="ValueError", rejected=True)


@pytest.mark.parametrize(
    ("strength", "allowed", "passed"),
    [
        ("listed", INVALID, True),
        ("listed", (*INVALID, "ACLNN_ERR_INNER_TILING_ERROR"), True),
        ("limit", (ANY_ERROR,), True),
        ("limit", (ANY_ERROR, SUCCESS), False),
        ("open", (ANY_ERROR, SUCCESS), False),
    ],
)
def test_a_clear_rejection_passes_where_an_error_is_promised(
    strength: str, allowed: tuple[str, ...], *, passed: bool
) -> None:
    verdict = status(REJECTED, strength, allowed, has_statuses=False)
    assert (verdict.result, verdict.facts) == (Result.PASSED if passed else Result.OUT_OF_SCOPE, {"accepted": False})
    assert status(REJECTED, has_statuses=True).kind == Fault.STATUS, "a status was promised"


def test_a_rejection_that_wrote_where_it_must_not_is_a_fault() -> None:
    stray = Outcome(ended=CallEnd.RAISED, rejected=True, buffers={"out": BufferState(guard_after=4)})
    assert status(stray, has_statuses=False).kind == Fault.GUARD


def test_a_broken_call_that_is_accepted_and_writes_elsewhere_has_both_faults() -> None:
    stray = Outcome(phase_one=0, phase_two=0, buffers={"x": BufferState(changed=4)})
    verdict = status(stray)
    assert (verdict.kind, verdict.facts[ALSO_STATUS]) == (Fault.INPUT, SUCCESS)
    assert ALSO_STATUS not in status(stray, "limit", (ANY_ERROR, SUCCESS)).facts


LIMIT = (ANY_ERROR, SUCCESS)


def test_limits_that_are_not_enforced() -> None:
    assert status(REFUSED, "limit", LIMIT).facts == {"status": "ACLNN_ERR_PARAM_INVALID"}
    verdict = status(ACCEPTED, "limit", LIMIT, values)
    assert conclusion(verdict) == (Result.PASSED, "", "the limit of dim.range is not enforced; the values are right")
    assert verdict.facts[Observation.LIMIT.value] is True
    assert len(verdict.deviations) == 2
    verdict = status(ACCEPTED, "limit", LIMIT)
    assert conclusion(verdict) == (
        Result.SKIPPED,
        SkipReason.OPEN,
        "the limit of dim.range is not enforced; values were not judged",
    )


def test_wrong_values_beyond_a_limit() -> None:
    got = right() | {"dgammaOut": np.array([1, 2, 3], np.float32)}
    verdict = status(ACCEPTED, "limit", LIMIT, lambda: values(got=got))
    assert (verdict.result, verdict.kind) == (Result.FAILED, Fault.LIMIT_VALUE)
    assert verdict.message.startswith("dim.range is broken, the call succeeded, and dgammaOut[2] is 3, expected -3 ")
    found = fingerprint(verdict, operator="aclnnRmsNormGrad", check="status", clause="dim.range")
    assert found.text() == "aclnnRmsNormGrad | status | limit-value | dim.range | dgammaOut"


def test_the_judge_of_values_is_asked_for_a_success_alone() -> None:
    def never() -> Verdict:
        raise AssertionError

    assert status(REFUSED, "limit", LIMIT, never).result == Result.PASSED
    skipped = Verdict(result=Result.SKIPPED, kind=SkipReason.OPEN, message="all open")
    assert status(ACCEPTED, "limit", LIMIT, lambda: skipped).message.endswith("values were not judged: all open")
    crashed = Verdict(result=Result.ERROR, message="oracle")
    assert status(ACCEPTED, "limit", LIMIT, lambda: crashed).result == Result.ERROR
