"""The verdict on a call: one that the document supports, and one that breaks a constraint.

The order is that of cause and effect: how the call ended, its status, the shape and dtype of what came back, what was
never written, what was written that must not be, and only then the values. The first that fails is the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from numpy.typing import NDArray

from aclnn_cts.core.case import Tensor
from aclnn_cts.core.dtypes import COMPONENTS, components, numpy_dtype
from aclnn_cts.core.expected import Expected
from aclnn_cts.core.faults import Family, Fault
from aclnn_cts.core.fingerprint import Fingerprint
from aclnn_cts.core.outcome import (
    READ_OUTSIDE,
    STATUSES,
    SUCCESS,
    BufferState,
    CallEnd,
    Outcome,
    is_promised_status,
    status_name,
)
from aclnn_cts.core.printable import number_text
from aclnn_cts.core.verdict import (
    ACCEPTED_FACT,
    ALSO_STATUS,
    Deviation,
    Judged,
    Observation,
    OutOfScope,
    Result,
    SkipReason,
    Verdict,
    is_other_error_class,
)
from aclnn_cts.judgement.comparison import ComparedOutput, OutputComparison
from aclnn_cts.judgement.model import ComputeModel, weakest_basis
from aclnn_cts.judgement.operands import OperandFacts

OUTPUT_FACT = "output"
"""The key of `Verdict.facts` under which a fault names its output (or the input that changed)."""


def compared_outputs(
    *,
    expected: Expected,
    got: Mapping[str, NDArray[Any]],
    outputs: Mapping[str, Tensor],
    models: Mapping[str, ComputeModel],
    operands: Mapping[str, OperandFacts],
) -> list[ComparedOutput]:
    """The outputs of one call as `compare_all` takes them.

    - `expected`, `outputs`, `models`: by output parameter, what the oracle says, the argument's descriptor, and the
      compute model (`Precision.models`). Outputs that were passed as null stand in none of them.
    - `got`: what the outputs hold, in the storage dtype and the logical shape.
    - `operands`: by output, what the mode's operand format does to the inputs (`operands.known_operands`).

    Raises KeyError where `expected` or `models` lacks one of `outputs`.
    """
    return [
        ComparedOutput(
            output=name,
            got=components(got[name]),
            expected=expected[name],
            model=models[name],
            operands=operands.get(name),
            in_parts=tensor.dtype in COMPONENTS,
        )
        for name, tensor in outputs.items()
    ]


def judge_form(
    *,
    outcome: Outcome,
    got: Mapping[str, NDArray[Any]],
    outputs: Mapping[str, Tensor],
    allowed: tuple[str, ...] = (SUCCESS,),
    mode: str = "",
) -> Verdict | None:
    """What decides before the values do; None where they are to be judged. Arguments as of `compared_outputs`.

    - `allowed`: the statuses that conform. An allowed error is skipped as open: any status conforms there, and there
      are no values.
    - `mode`: the precision mode's name, for the verdict and the fingerprint.
    """
    verdict = ended_badly(outcome)
    if verdict is not None:
        return verdict
    status = SUCCESS if outcome.status is None else status_name(outcome.status)
    if outcome.ended == CallEnd.RAISED:
        return _fault(
            Fault.REJECTED, f"the implementation raised where {_promised(allowed)}{_said(outcome)}", mode=mode
        )
    if not is_promised_status(status, allowed):
        return _fault(Fault.REJECTED, f"{status_text(outcome)} where {_promised(allowed)}{_said(outcome)}", mode=mode)
    if status != SUCCESS:
        verdict = memory_fault(outcome, mode=mode)
        message = f"{status_text(outcome)}; the document leaves the status open, and there are no values to judge"
        return verdict or Verdict(
            result=Result.SKIPPED, kind=SkipReason.OPEN, message=message, mode=mode, facts={"status": status}
        )
    return (
        _wrong_shape(got, outputs, mode)
        or late_write(outcome, mode=mode)
        or _unwritten(outcome, outputs, mode)
        or memory_fault(outcome, mode=mode)
    )


def conclude(comparisons: Mapping[str, OutputComparison], models: Mapping[str, ComputeModel], mode: str) -> Verdict:
    """The verdict on the values of a call whose form is right, by output."""
    deviations = tuple(comparison.deviation for comparison in comparisons.values())
    faulty = [name for name, comparison in comparisons.items() if comparison.kind]
    basis = weakest_basis(models[name].basis for name in comparisons) if comparisons else ""
    if faulty:
        # A fault that no arithmetic explains says more than one that coarser arithmetic would.
        name = next((name for name in faulty if comparisons[name].kind != Fault.MODEL), faulty[0])
        others = [other for other in faulty if other != name]
        also = f"; also at fault: {', '.join(others)}" if others else ""
        return Verdict(
            result=Result.FAILED,
            kind=comparisons[name].kind,
            message=_value_message(comparisons[name], models[name]) + also,
            basis=models[name].basis,
            mode=mode,
            deviations=deviations,
            facts={OUTPUT_FACT: name},
        )
    return verdict_without_fault(deviations, basis=basis, mode=mode, left="the document leaves open")


def verdict_without_fault(
    deviations: tuple[Deviation, ...], *, basis: str, mode: str, left: str, facts: Mapping[str, Any] | None = None
) -> Verdict:
    """The verdict on outputs without a fault: a pass where at least half of the elements were compared.

    `left`: why elements were not, as `the document leaves open`.
    """
    elements = sum(deviation.elements for deviation in deviations)
    opened = sum(deviation.open for deviation in deviations)
    if 2 * opened > elements:
        message = f"{opened} of {elements} elements: {left}; too few were compared for a verdict"
        return Verdict(
            result=Result.SKIPPED,
            kind=SkipReason.OPEN,
            message=message,
            mode=mode,
            deviations=deviations,
            facts=facts or {},
        )
    return Verdict(
        result=Result.PASSED,
        basis=basis,
        mode=mode,
        judged=Judged.VALUES if elements else Judged.FORM,
        deviations=deviations,
        facts=facts or {},
    )


def _value_message(comparison: OutputComparison, model: ComputeModel) -> str:
    deviation = comparison.deviation
    beyond = f"{deviation.beyond} of {deviation.elements} elements at fault"
    text = f"{deviation.place} is {number_text(deviation.got, 9)}, expected {number_text(deviation.expected, 9)}"
    if comparison.kind == Fault.SPECIAL:
        return f"{text}; {beyond}"
    size = (
        "which must be exact"
        if deviation.bound == 0.0
        else f"± {deviation.bound:.3g}, an error of {deviation.error_ratio:.3g} times the bound"
    )
    text = f"{text} {size}; {beyond}"
    given = f"{model.describe()} (basis: {model.basis})"
    if comparison.kind == Fault.MODEL:
        return (
            f"{text}; coarser arithmetic in the promised formats would explain it, the compute model does not: {given}"
        )
    return f"{text}; compute model: {given}"


def ended_badly(outcome: Outcome) -> Verdict | None:
    """The verdict on a call that did not come back or was not run; None for one that returned or raised."""
    ended = outcome.ended
    if ended in (CallEnd.RETURNED, CallEnd.RAISED):
        return None
    said = _said(outcome)
    if ended == CallEnd.INEXPRESSIBLE:
        return Verdict(result=Result.SKIPPED, kind=SkipReason.INEXPRESSIBLE, message=outcome.message)
    if ended == CallEnd.NOT_RUN:
        return Verdict(result=Result.ERROR, message=f"the call was not run{said}")
    if ended == CallEnd.TIME_LIMIT:
        return _fault(Fault.HANG, f"the call did not come back within {outcome.seconds:.3g} s{said}")
    if READ_OUTSIDE in outcome.facts:
        name = str(outcome.facts[READ_OUTSIDE])
        message = f"{name}: the call read outside this input, where memory cannot be read"
        return _fault(Fault.READ, f"{message}{said}", output=name)
    how = {
        CallEnd.SIGNAL: f"the process died by signal {outcome.signal}",
        CallEnd.EXIT: "the process ended by itself",
        CallEnd.MEMORY_LIMIT: "the process grew beyond its memory limit",
        CallEnd.DEVICE_FAULT: "the device reported a fault",
    }
    if ended not in how:
        return Verdict(result=Result.ERROR, message=f"the call ended in an unknown way, {ended!r}{said}")
    return _fault(Fault.CRASH, f"{how[ended]} during the call{said}")


def memory_fault(outcome: Outcome, *, mode: str = "") -> Verdict | None:
    """The verdict on memory that the call must leave alone: guards, what lies between a view's elements, inputs.

    An output that the call wrote after its return comes first.
    """
    if (verdict := late_write(outcome, mode=mode)) is not None:
        return verdict
    for name, state in outcome.buffers.items():
        if state.guard_before or state.guard_after or state.gap:
            places = (
                (state.guard_before, "before its memory"),
                (state.guard_after, "behind its memory"),
                (state.gap, "inside its storage but outside its view"),
            )
            where = ", ".join(f"{count} bytes {place}" for count, place in places if count)
            return _fault(Fault.GUARD, f"{name}: the call changed {where}{_stray_text(state)}", output=name, mode=mode)
    for name, state in outcome.buffers.items():
        if state.changed:
            message = f"{name}: the call changed {state.changed} bytes of this input{_stray_text(state)}"
            return _fault(Fault.INPUT, message, output=name, mode=mode)
    return None


def late_write(outcome: Outcome, *, mode: str = "") -> Verdict | None:
    """The verdict on outputs that changed after the call had returned."""
    for name, state in outcome.buffers.items():
        if state.late:
            message = f"{name}: written after the call; its contents changed once the call had returned"
            return _fault(Fault.LATE, message, output=name, mode=mode)
    return None


def _stray_text(state: BufferState) -> str:
    """Where memory was changed first, and how; without the address, which differs from run to run."""
    stray = state.stray
    return f"; first at byte {stray.offset} of its storage: {stray.before} became {stray.after}" if stray else ""


def _wrong_shape(got: Mapping[str, NDArray[Any]], outputs: Mapping[str, Tensor], mode: str) -> Verdict | None:
    for name, tensor in outputs.items():
        array = got.get(name)
        if array is None:
            return _fault(Fault.SHAPE, f"{name}: the call returned no such output", output=name, mode=mode)
        if array.shape != tensor.shape:
            message = f"{name} has the shape {list(array.shape)}, expected {list(tensor.shape)}"
            return _fault(Fault.SHAPE, message, output=name, mode=mode)
        if array.dtype != numpy_dtype(tensor.dtype):
            message = f"{name} has the dtype {array.dtype}, expected {tensor.dtype} ({numpy_dtype(tensor.dtype)})"
            return _fault(Fault.DTYPE, message, output=name, mode=mode)
    return None


def _unwritten(outcome: Outcome, outputs: Mapping[str, Tensor], mode: str) -> Verdict | None:
    for name, tensor in outputs.items():
        state = outcome.buffers.get(name)
        if state is not None and state.unwritten:
            share = f"{state.unwritten} of {tensor.numel} elements"
            message = f"{name}: {share} were never written and still hold the fill pattern"
            return _fault(Fault.UNWRITTEN, message, output=name, mode=mode)
    return None


def status_text(outcome: Outcome) -> str:
    """Which phase returned which status, as `phase one returned ACLNN_ERR_PARAM_INVALID (161002)`."""
    phases = (
        ("phase one", outcome.phase_one),
        ("phase two", outcome.phase_two),
        ("synchronisation", outcome.synchronised),
    )
    given = [(phase, value) for phase, value in phases if value is not None]
    if not given:
        return "no status came back"
    phase, value = next(((phase, value) for phase, value in given if value), given[-1])
    name = f"aclError {value}" if phase == "synchronisation" and value else f"{status_name(value)} ({value})"
    return f"{phase} returned {name}"


def _promised(allowed: tuple[str, ...]) -> str:
    return f"the document promises {' or '.join(allowed)}"


def _said(outcome: Outcome) -> str:
    """The first line of the implementation's own message."""
    line = outcome.message.strip().partition("\n")[0].strip()
    return f": {line}" if line else ""


def _fault(kind: str, message: str, *, output: str = "", mode: str = "") -> Verdict:
    facts = {OUTPUT_FACT: output} if output else {}
    return Verdict(result=Result.FAILED, kind=kind, message=message, mode=mode, facts=facts)


def fingerprint(verdict: Verdict, *, operator: str, check: str, clause: str = "", dtype: str = "") -> Fingerprint:
    """What broke, as far as the verdict alone tells (`findings.fingerprint.with_whole_fingerprint` adds the rest).

    `clause` is the id of the one that was broken or put to the test, `dtype` the class that the caller sorts by
    (that of the first output, say).
    """
    return Fingerprint(
        operator=operator,
        check=check,
        fault=verdict.kind if verdict.result == Result.FAILED else "",
        clause=clause,
        output=str(verdict.facts.get(OUTPUT_FACT, "")),
        mode=verdict.mode,
        dtype=dtype,
    )


_OF_OUTPUTS = Fault.of(Family.VALUES, Family.OUTPUT)


def judge_status(
    *,
    outcome: Outcome,
    allowed: tuple[str, ...],
    strength: str,
    constraint: str,
    values: Callable[[], Verdict] | None = None,
    has_statuses: bool = True,
) -> Verdict:
    """Judge one call that breaks the constraint of that id.

    - `allowed`: the statuses that conform (`core.outcome.is_promised_status`).
    - `strength`: `listed`, `limit`, `open` or `accuracy`. Whatever it is, a crash, a hang, a stray write and a changed
      input are faults. What is listed is to be refused by phase one, where both phases were called. An open one is
      never a fault of status: it is skipped, and what came back is a fact. Where accuracy alone is withdrawn, success
      passes whatever the values.
    - `values`: judges the outputs of a success beyond a limit, or of an open call whose values the document says;
      None where no oracle can.
    - `has_statuses`: whether the adapter returns aclnn statuses. Without them a clear rejection (`Outcome.rejected`)
      passes where the document promises an error. Any other call is out of scope; whether it was accepted is a fact.
    """
    if (verdict := ended_badly(outcome)) is not None:
        return verdict
    if (of_memory := memory_fault(outcome)) is not None:
        verdict = _of_status(outcome, allowed, strength, constraint, values=None, has_statuses=has_statuses)
        if verdict.kind != Fault.STATUS:
            return of_memory
        return msgspec.structs.replace(of_memory, facts={**of_memory.facts, ALSO_STATUS: verdict.facts["status"]})
    return _of_status(outcome, allowed, strength, constraint, values=values, has_statuses=has_statuses)


def _of_status(
    outcome: Outcome,
    allowed: tuple[str, ...],
    strength: str,
    constraint: str,
    *,
    values: Callable[[], Verdict] | None,
    has_statuses: bool,
) -> Verdict:
    """On a call that came back and left memory alone; arguments as of `judge_status`."""
    raised = outcome.ended == CallEnd.RAISED
    if strength == "open" and values is not None and not raised and not outcome.status:
        return values()
    if not has_statuses:
        accepted = not raised and not outcome.status
        word = "accepted" if accepted else "rejected"
        message = f"{word} by an implementation that returns no status: {constraint}"
        facts: dict[str, Any] = {ACCEPTED_FACT: accepted}
        if outcome.rejected:
            if SUCCESS not in allowed:
                return Verdict(result=Result.PASSED, message=message, judged=Judged.STATUS, facts=facts)
            message = f"{message}; the document promises no error"
        return Verdict(result=Result.OUT_OF_SCOPE, kind=OutOfScope.STATUSES, message=message, facts=facts)
    status = None if raised or outcome.status is None else status_name(outcome.status)
    what = f"the call raised and {status_text(outcome)}" if raised else status_text(outcome)
    if strength == "open":
        message = f"{what}; the document leaves {constraint} open"
        return Verdict(result=Result.SKIPPED, kind=SkipReason.OPEN, message=message, facts={"status": status or "none"})
    if status is None or not is_promised_status(status, allowed):
        message = f"{what}, expected {' or '.join(allowed)} as {constraint} is broken"
        return Verdict(result=Result.FAILED, kind=Fault.STATUS, message=message, facts={"status": status or "none"})
    if strength == "listed" and outcome.phase_one == STATUSES[SUCCESS] and status != SUCCESS:
        # specs/interface.yaml, phases.6: the checks of the arguments belong to phase one, which returns their status.
        message = (
            f"phase one returned {SUCCESS}, and {what}; phase one checks the arguments, and {constraint} is broken"
        )
        return Verdict(result=Result.FAILED, kind=Fault.STATUS, message=message, facts={"status": status})
    if status == SUCCESS and strength == "limit":
        return _beyond_limit(constraint, values)
    returned: dict[str, Any] = {"status": status}
    if not is_other_error_class(status, allowed):
        return Verdict(result=Result.PASSED, judged=Judged.STATUS, facts=returned)
    returned[Observation.STATUS_CLASS.value] = True
    message = f"{what}, where {constraint} is broken and an argument error (161xxx) is suggested"
    return Verdict(result=Result.PASSED, judged=Judged.STATUS, message=message, facts=returned)


def _beyond_limit(constraint: str, values: Callable[[], Verdict] | None) -> Verdict:
    facts: dict[str, Any] = {"status": SUCCESS, Observation.LIMIT.value: True}
    message = f"the limit of {constraint} is not enforced"
    if values is None:
        return _nothing_known(f"{message}; values were not judged", facts)
    verdict = values()
    if verdict.result == Result.PASSED:
        return msgspec.structs.replace(verdict, message=f"{message}; the values are right", facts=facts)
    if verdict.result == Result.SKIPPED:
        return _nothing_known(f"{message}; values were not judged: {verdict.message}", facts)
    if verdict.result == Result.FAILED and verdict.kind in _OF_OUTPUTS:
        if OUTPUT_FACT in verdict.facts:
            facts[OUTPUT_FACT] = verdict.facts[OUTPUT_FACT]
        message = f"{constraint} is broken, the call succeeded, and {verdict.message}"
        return msgspec.structs.replace(verdict, kind=Fault.LIMIT_VALUE, message=message, facts=facts)
    return verdict


def _nothing_known(message: str, facts: Mapping[str, Any]) -> Verdict:
    """Beyond a limit any status conforms, so that one without values says nothing."""
    return Verdict(result=Result.SKIPPED, kind=SkipReason.OPEN, message=message, facts=facts)
